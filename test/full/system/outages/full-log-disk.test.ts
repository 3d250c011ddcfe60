import { expect, test } from 'vitest';
import type { Task } from '../../../../contracts/a2a/a2a.js';
import { type Dispatched, serve } from '../../../setup/agent.js';
import { joinAgent } from '../../../setup/platform/fleet.js';
import { startPlatform } from '../../../setup/platform/platform.js';
import { SmallVolume } from '../../../setup/small-volume.js';
import { until } from '../../../setup/until.js';

const volume = SmallVolume.mount(8);
const { platform, database } = await startPlatform({ FLEET_LOG_LEVEL: 'debug' }, { dataDir: volume.path });
const { client } = platform;

test('while the disk of the data directory is full, all goes on but the log, and the process stops in order', async () => {
  const agent = await joinAgent(platform, { instanceId: 'worker-1', agentType: 'worker', maxConcurrentSessions: 0 });
  const held = new Map<string, Dispatched>();
  serve(agent, (dispatch) =>
    dispatch.text.startsWith('hold') ? void held.set(dispatch.text, dispatch) : dispatch.result('done'),
  );
  const to = { metadata: { agent_type: 'worker' } };
  const holding: Task = await client.send('hold', { ...to, blocking: false });
  await until(() => held.size === 1, { what: 'the dispatch' });

  volume.fill();
  const logged = platform.log().length;
  for (let sent = 0; sent < 20; sent += 1)
    expect(await client.send('hello', to)).toMatchObject({ status: { state: 'completed' } });
  held.get('hold')?.result('late');
  await client.untilState(holding.id, 'completed');
  expect(platform.log().length - logged).toBeLessThan(4_096);
  await platform.stop(); // rejects unless it ends with 0

  volume.empty();
  await platform.start();
  expect(await client.message(holding.id)).toMatchObject({ state: 'completed' });
  expect(await database.query(`SELECT 1 FROM messages WHERE state <> 'completed'`)).toEqual([]);
});
