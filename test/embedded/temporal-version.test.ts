import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { temporalBinary } from '../../embedded/temporal/binary.js';
import { versionProblem } from '../../embedded/temporal/version.js';
import { createLogger } from '../../runtime/logger.js';
import { scratch } from './host.js';

test.each<[output: string, problem: string | null]>([
  ['temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)', null],
  ['temporal version 0.0.0-DEV (Server 1.29.1, UI 2.42.1)', null],
  ['temporal version 1.9.0 (Server 1.31.0-rc.1, UI 2.49.1)', null],
  ['temporal version 1.3.0 (Server 1.27.1, UI 2.36.0)', 'has the server 1.27.1'],
  ['temporal version 2.0.0 (Server 2.0.0, UI 3.0.0)', 'has the server 2.0.0'],
  ['temporal version 9', 'has the server unknown'],
  ['tctl version 1.18', 'is not the Temporal CLI'],
])('%s', (output, problem) => {
  const found = versionProblem(output);
  if (problem === null) expect(found).toBeNull();
  else expect(found?.text).toContain(problem);
});

/** A program that says this of itself. */
async function program(folder: string, output: string): Promise<string> {
  const path = join(folder, 'temporal');
  await mkdir(folder, { recursive: true });
  await writeFile(path, `#!/bin/sh\necho '${output}'\n`);
  await chmod(path, 0o755);
  return path;
}

test('an old program on PATH ends the start with the remedy; one that the platform installed before is passed over', async () => {
  const { dir } = await scratch();
  const before = process.env.PATH;
  onTestFinished(() => {
    process.env.PATH = before;
  });
  const old = await program(join(dir, 'bin'), 'temporal version 1.3.0 (Server 1.27.1, UI 2.36.0)');
  process.env.PATH = `${join(dir, 'bin')}:/usr/bin:/bin`;
  const lines: string[] = [];
  const lookup = {
    cacheDir: join(dir, 'cache'),
    log: createLogger({ level: 'silent' }),
    onLine: (line: string) => lines.push(line),
  };
  await expect(temporalBinary(lookup)).rejects.toThrow(
    new RegExp(`^${old} has the server 1\\.27\\.1, .* Upgrade it .*TEMPORAL_CLI_PATH.*TEMPORAL_ADDRESS`),
  );
  const good = await program(join(dir, 'new'), 'temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)');
  process.env.PATH = `${join(dir, 'new')}:/usr/bin:/bin`;
  await program(lookup.cacheDir, 'temporal version 1.3.0 (Server 1.27.1, UI 2.36.0)');
  expect(await temporalBinary(lookup)).toBe(good);
});
