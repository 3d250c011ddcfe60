import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createLogger, newLogCounts } from '../../runtime/logger.js';
import { SmallVolume } from '../setup/small-volume.js';
import { until } from '../setup/until.js';

const VOLUME_MB = 4;
/** More than waits in memory. */
const LINES = 5_000;

test('lines that a full disk does not take wait, those beyond 1 MiB are dropped and counted, and the log goes on', async () => {
  const volume = SmallVolume.mount(VOLUME_MB);
  const file = join(volume.path, 'logs', 'platform.log');
  const counts = newLogCounts();
  const log = createLogger({ file, counts });
  const lines = () => readFileSync(file, 'utf8').trimEnd().split('\n');
  log.info({ line: -1 }, 'before');
  volume.fill();
  for (let line = 0; line < LINES; line += 1) log.warn({ line, text: 'x'.repeat(400) }, 'while it is full');
  const dropped = counts.dropped();
  expect(dropped).toBeGreaterThan(0);
  expect(dropped).toBeLessThan(LINES);
  expect(counts.lines.warn).toBe(LINES);

  volume.empty();
  await until(() => lines().some((line) => line.includes('the log can be written again')), { what: 'the log' });
  log.info('afterwards');
  const written = lines().map((line) => JSON.parse(line) as { msg: string; line?: number; dropped?: number });
  // In order, none torn.
  expect(written.slice(0, -2).map(({ line }) => line)).toEqual(
    Array.from({ length: LINES - dropped + 1 }, (_, index) => index - 1),
  );
  expect(written.slice(-2)).toMatchObject([{ dropped }, { msg: 'afterwards' }]);
});
