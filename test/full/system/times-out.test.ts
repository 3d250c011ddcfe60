import { expect, test } from 'vitest';
import { AgentGetByIdResponse } from '../../../contracts/api/agents.js';
import { MessageCancelResponse } from '../../../contracts/api/messages.js';
import { SessionGetByIdResponse } from '../../../contracts/api/sessions.js';
import { silent } from '../../setup/agent.js';
import { registerAgent } from '../../setup/platform/fleet.js';
import { startPlatform } from '../../setup/platform/platform.js';
import { until } from '../../setup/until.js';
import { hold, initSession, joinType, looksOf, to } from '../../system/fixture.js';

const shared = await startPlatform({ QUEUE_WAIT_MS: '1000', WATCH_AFTER_MS: '0' });
const { platform } = shared;
const { client } = platform;
const { workflowOf } = looksOf(shared);

test.each<[string, string, object, () => Promise<unknown>, RegExp]>([
  [
    'whose agents are away',
    'away',
    {},
    async () => {
      for (const instanceId of ['away-1', 'away-2']) await registerAgent(client, { instanceId, agentType: 'away' });
    },
    /^Nobody took the message within \d.*: 2 offline\. Connect it again\.$/,
  ],
  [
    'whose agent is full',
    'full',
    { queue_wait_ms: 1_000 },
    async () => hold(client, await joinType(platform, 'full', silent, 1), to('full')),
    /^Nobody took the message .*: 1 full\. .*max_concurrent_sessions or max_concurrent_tasks\.$/,
  ],
])(
  'a message %s waits as submitted, then fails and says whom it waited for',
  async (_what, type, given, prepare, says) => {
    await prepare();
    const waiting = await client.send('anyone?', { ...to(type, given), blocking: false });
    expect(waiting).toMatchObject({ status: { state: 'submitted' }, metadata: { agent_type: type } });
    const { agent_type, instance_id, error } = await client.untilState(waiting.id, 'failed');
    expect({ agent_type, instance_id, error }).toEqual({
      agent_type: type,
      instance_id: null,
      error: { code: 'TARGET_UNAVAILABLE', message: expect.stringMatching(says) },
    });
    const result = await workflowOf(waiting.id).result();
    expect(result).toMatchObject({ state: 'failed', error: { code: 'TARGET_UNAVAILABLE' } });
  },
);

test('an idle session expires and gives its slot back; one with a message in flight does not', async () => {
  const agent = await joinType(platform, 'idle');
  const init = () => initSession(client, { instance_id: 'idle-1', idle_timeout_seconds: 1 });
  const session = async (session_id: string) =>
    (await client.ok('/sessions/get_by_id', { session_id }, SessionGetByIdResponse)).session;
  const working = await init();
  const { task } = await hold(client, agent, { contextId: working });
  const idle = await init();
  await until(async () => (await session(idle)).status === 'expired', { what: 'the idle session to expire' });
  expect((await session(idle)).ended_at).not.toBeNull();
  expect((await client.rpc('hello?', { contextId: idle })).error?.code).toBe(-32004);
  expect((await session(working)).status).toBe('active');
  await client.ok('/messages/cancel', { message_id: task.id }, MessageCancelResponse);
  await until(async () => (await session(working)).status === 'expired', { what: 'the other session to expire' });
  const { agent: row } = await client.ok('/agents/get_by_id', { instance_id: 'idle-1' }, AgentGetByIdResponse);
  expect(row.current_sessions).toBe(0);
});
