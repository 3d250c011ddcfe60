import { expect, test } from 'vitest';
import type { Task } from '../../../../contracts/a2a/a2a.js';
import { ResolveResponse } from '../../../../contracts/api/messages.js';
import { echo } from '../../../setup/agent.js';
import { registerAgent } from '../../../setup/platform/fleet.js';
import { startPlatform } from '../../../setup/platform/platform.js';
import { SmallVolume } from '../../../setup/small-volume.js';
import { until } from '../../../setup/until.js';
import { byText, joinType, to } from '../../../system/fixture.js';

const volume = SmallVolume.mount(64);
/** It brings its own Temporal, whose database is in the data directory. */
const { platform, database } = await startPlatform({ TEMPORAL_ADDRESS: '' }, { dataDir: volume.path });
const { client } = platform;

test('while the disk of Temporal is full, messages go on, also those that wait for agents or people; their workflows start once there is room', async () => {
  await joinType(platform, 'worker', echo);
  await joinType(platform, 'asker', byText());
  await registerAgent(client, { instanceId: 'later-1', agentType: 'later' });
  volume.fill();
  const waiting: Task[] = [];
  for (let sent = 0; sent < 50; sent += 1) {
    waiting.push(await client.send('wait', { ...to('later'), blocking: false }));
    expect((await client.send('hello', to('worker'))).status.state).toBe('completed');
  }
  const [answered, asked] = [await client.send('ask', to('asker')), await client.send('ask', to('asker'))];
  await joinType(platform, 'later', echo);
  for (const { id } of waiting) await client.untilState(id, 'completed', 120_000);
  await client.ok(`/messages/${answered.id}/resolve`, { resolution: 'confirmed' }, ResolveResponse);
  expect((await client.untilState(answered.id, 'completed')).assistant_output).toBe('ask: confirmed');
  const watched = 'SELECT 1 FROM running_messages WHERE message_id = $1 AND supervised_at IS NOT NULL';
  const isWatched = async () => (await database.query(watched, [asked.id])).length > 0;
  expect(await isWatched()).toBe(false);
  volume.empty();
  await until(isWatched, { timeoutMs: 120_000, what: 'the workflow of the question' });
}, 240_000);
