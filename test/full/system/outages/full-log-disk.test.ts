import { expect, test } from 'vitest';
import type { Dispatched } from '../../../setup/agent.js';
import { startPlatform } from '../../../setup/platform/platform.js';
import { SmallVolume } from '../../../setup/small-volume.js';
import { until } from '../../../setup/until.js';
import { byText, joinType, to } from '../../../system/fixture.js';

const volume = SmallVolume.mount(8);
const { platform, database } = await startPlatform({ FLEET_LOG_LEVEL: 'debug' }, { dataDir: volume.path });
const { client } = platform;

test('while the disk of the data directory is full, all goes on but the log, and the process stops in order', async () => {
  const held: Dispatched[] = [];
  await joinType(platform, 'worker', byText(held));
  const holding = await client.send('hold', { ...to('worker'), blocking: false });
  await until(() => held.length === 1, { what: 'the dispatch' });

  volume.fill();
  const logged = platform.log().length;
  for (let sent = 0; sent < 20; sent += 1)
    expect(await client.send('hello', to('worker'))).toMatchObject({ status: { state: 'completed' } });
  held[0]?.result('late');
  await client.untilState(holding.id, 'completed');
  expect(platform.log().length - logged).toBeLessThan(4_096);
  await platform.stop(); // rejects unless it ends with 0

  volume.empty();
  await platform.start();
  expect(await client.message(holding.id)).toMatchObject({ state: 'completed' });
  expect(await database.query(`SELECT 1 FROM messages WHERE state <> 'completed'`)).toEqual([]);
});
