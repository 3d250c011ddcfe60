import { expect, test } from 'vitest';
import type { Task } from '../../../../contracts/a2a/a2a.js';
import { echo } from '../../../setup/agent.js';
import { joinAgent, registerAgent } from '../../../setup/platform/fleet.js';
import { FAST_PATH } from '../../../setup/platform/paths.js';
import { startPlatform } from '../../../setup/platform/platform.js';
import { SmallVolume } from '../../../setup/small-volume.js';
import { until } from '../../../setup/until.js';

const volume = SmallVolume.mount(64);
/** It brings its own Temporal, whose database is in the data directory. */
const { platform, database } = await startPlatform(
  { ...FAST_PATH.env, TEMPORAL_ADDRESS: '' },
  { dataDir: volume.path },
);
const { client } = platform;

test('while the disk of Temporal is full, quick messages are answered, and those that need a workflow wait for room', async () => {
  await joinAgent(platform, { instanceId: 'worker-1', agentType: 'worker', maxConcurrentSessions: 0 }, echo);
  const agentType = 'later';
  await registerAgent(client, { instanceId: 'later-1', agentType });
  volume.fill();
  const waiting: Task[] = [];
  for (let sent = 0; sent < 50; sent += 1) {
    waiting.push(await client.send('wait', { metadata: { agent_type: agentType }, blocking: false }));
    const quick = await client.send('hello', { metadata: { agent_type: 'worker' } });
    expect(quick.status.state).toBe('completed');
  }
  await joinAgent(platform, { instanceId: 'later-1', agentType, maxConcurrentSessions: 0 }, echo);
  const repeated = () => database.query('SELECT 1 FROM running_messages WHERE lease_epoch > 1');
  await until(async () => (await repeated()).length > 0, { timeoutMs: 60_000, what: 'starts that are repeated' });
  volume.empty();
  for (const { id } of waiting) await client.untilState(id, 'completed', 120_000);
}, 240_000);
