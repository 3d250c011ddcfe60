import { expect, test } from 'vitest';
import { Task } from '../../../contracts/a2a/a2a.js';
import { MessageCancelResponse } from '../../../contracts/api/messages.js';
import { SessionGetByIdResponse } from '../../../contracts/api/sessions.js';
import { echo, silent } from '../../setup/agent.js';
import { registerAgent } from '../../setup/platform/fleet.js';
import { until } from '../../setup/until.js';
import { agentRow, fleetOn, hold, initSession, to } from '../../system/fixture.js';

const { client, join, workflowOf, dispatchStates } = await fleetOn('impatient');

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
    async () => hold(client, await join('full', silent, 1), to('full')),
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

test('a message whose agent stays away fails with AGENT_DISCONNECTED, and nobody else gets it', async () => {
  const agent = await join('gone');
  const { task } = await hold(client, agent, to('gone'));
  await registerAgent(client, { instanceId: 'gone-2', agentType: 'gone' });
  agent.kill();
  expect((await client.untilState(task.id, 'failed')).error?.code).toBe('AGENT_DISCONNECTED');
  expect(await dispatchStates(task.id)).toEqual(['lost']);
});

test('a question that nobody answers fails its message with APPROVAL_EXPIRED', async () => {
  await join('asker', (dispatch) => dispatch.ask({ kind: 'confirmation', title: 'Anybody?' }));
  const task = await client.send('ask', to('asker'));
  expect(task.status.state).toBe('input-required');
  expect((await client.untilState(task.id, 'failed')).error?.code).toBe('APPROVAL_EXPIRED');
  expect(await client.failure(`/messages/${task.id}/resolve`, { resolution: 'confirmed' })).toMatch(/^4(09|10) /);
});

test('an idle session expires and gives its slot back; one with a message in flight does not', async () => {
  const agent = await join('idle');
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
  expect((await agentRow(client, 'idle-1')).current_sessions).toBe(0);
});

test('what agents may not have waits; beyond the bound of that a send is 429, and taken again once one has ended', async () => {
  await join('echo', echo);
  await join('sink', silent);
  const held: Task[] = [];
  const refused = await until(async () => {
    const answer = await client.rpc('fill', { ...to('sink', { queue_wait_ms: 60_000 }), blocking: false });
    if (answer.status === 429) return answer;
    held.push(Task.parse(answer.result));
    return undefined;
  });
  expect(refused.body).toMatchObject({ code: 'RATE_LIMITED' });
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  const states = held.map(({ status }) => status.state);
  expect([states[0], states.at(-1)]).toEqual(['working', 'submitted']);
  for (const { id } of held) await client.ok('/messages/cancel', { message_id: id }, MessageCancelResponse);
  const again = await until(async () => {
    const answer = await client.rpc('again', to('echo'));
    return answer.status === 429 ? undefined : Task.parse(answer.result); // they are counted once a second
  });
  expect(again.status.state).toBe('completed');
});
