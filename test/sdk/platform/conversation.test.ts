import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { textOf } from '../../../contracts/a2a/text.js';
import { conversationOf } from '../../../sdk/adapters/ai.js';
import { type AgentOptions, type AgentTask, FleetClient, type Task } from '../../../sdk/index.js';
import { sharedPlatform } from '../../setup/platform/shared-platform.js';
import { gate, until } from '../../setup/until.js';
import { join, sdkOn } from './fixture.js';

const { platform } = await sharedPlatform();
const { agentOf } = sdkOn(platform.devJson);
const { base_url: url, client_id: clientId, client_secret: clientSecret } = platform.devJson();
const client = new FleetClient({ url, clientId, clientSecret });
afterAll(() => client.destroy());

const answerOf = ({ artifacts = [] }: Task) => artifacts.map(({ parts }) => textOf(parts)).join('');
const to = (agentType: string, more: object = {}) => ({ agentType, ...more });
const recordOf = async (message_id: string) =>
  (await client.post('/messages/get_by_id', { message_id })).message as { state: string; error?: { message: string } };

test('the conversation of the AI SDK is what was said, and then the message', async () => {
  const agent = agentOf('talker').onMessage(async (task) => JSON.stringify(await conversationOf(task)));
  await agent.connect();
  const { session_id } = await client.post('/sessions/init', { agent_type: 'talker' });
  const first = answerOf(await client.send('one', { contextId: String(session_id) }));
  expect(JSON.parse(first)).toEqual([{ role: 'user', content: 'one' }]);
  expect(JSON.parse(answerOf(await client.send('two', { contextId: String(session_id) })))).toEqual([
    { role: 'user', content: 'one' },
    { role: 'assistant', content: first },
    { role: 'user', content: 'two' },
  ]);
});

test.each(['connected', 'hosted'])(
  'a %s agent reads the conversation so far, and whose session it is',
  async (mode) => {
    const type = `historian-${mode}`;
    const agent = agentOf(type).onMessage(async (task) => {
      if (!task.text.startsWith('history')) return `answer to ${task.text}`;
      const limit = Number(task.text.split(' ')[1]);
      const turns = await task.history(limit ? { limit } : {});
      return JSON.stringify([
        task.userId,
        ...turns.map(({ role, text, agentType = '' }) => `${role}${agentType}: ${text}`),
      ]);
    });
    await join(agent, mode);
    const { session_id } = await client.post('/sessions/init', { agent_type: type, user_id: 'ann' });
    const contextId = String(session_id);
    for (const text of ['one', 'two']) await client.send(text, { contextId });
    await client.send('elsewhere', to(type));
    const turns = ['user: one', `agent${type}: answer to one`, 'user: two', `agent${type}: answer to two`];
    expect(JSON.parse(answerOf(await client.send('history', { contextId })))).toEqual(['ann', ...turns]);
    expect(JSON.parse(answerOf(await client.send('history 2', { contextId }))).slice(1, 3)).toEqual(turns.slice(2));
  },
);

test('messages that came after it hide no earlier ones from a task', async () => {
  const release = gate();
  await agentOf('slow-reader')
    .onMessage(async (task) => {
      if (task.text !== 'read') return task.text;
      await release.promise;
      return JSON.stringify((await task.history({ limit: 2 })).map(({ text }) => text));
    })
    .connect();
  const { session_id } = await client.post('/sessions/init', { agent_type: 'slow-reader' });
  const contextId = String(session_id);
  for (const text of ['zero', 'one', 'two']) await client.send(text, { contextId });
  const { id } = await client.send('read', { contextId, blocking: false });
  for (const text of ['after 1', 'after 2', 'after 3', 'after 4']) await client.send(text, { contextId });
  release.open();
  const { assistantOutput } = await client.messages.waitFor(id);
  expect(JSON.parse(assistantOutput)).toEqual(['one', 'one', 'two', 'two']);
});

test('what a task sends has its trace, no more time than it has, and ends with it', async () => {
  const seen: AgentTask[] = [];
  await agentOf('inner')
    .onMessage((task) => {
      seen.push(task);
      return task.text === 'wait' ? new Promise<string>(() => undefined) : `inner ${task.text}`;
    })
    .connect();
  await agentOf('outer')
    .onMessage(async (task) => {
      const sent = await task.client.send(task.text, to('inner', { metadata: { own: 1 } }));
      let streamed = '';
      for await (const event of task.client.stream('again', to('inner')))
        if (event.kind === 'artifact-update') streamed += textOf(event.artifact.parts);
      return `${answerOf(sent)}, ${streamed}`;
    })
    .connect();
  const task = await client.send('hello', to('outer', { deadlineMs: 20_000 }));
  expect(answerOf(task)).toBe('inner hello, inner again');
  const { trace_id } = task.metadata as { trace_id: string };
  expect(seen.map(({ traceparent }) => traceparent.split('-')[1])).toEqual([trace_id, trace_id]);
  expect(seen[0]?.metadata).toMatchObject({ own: 1, hops: 1 });
  for (const { deadlineMs } of seen) expect(deadlineMs).toBeLessThanOrEqual(20_000);

  const waiting = await client.send('wait', { ...to('outer'), blocking: false });
  await until(() => seen.length === 3);
  await client.post('/messages/cancel', { message_id: waiting.id });
  expect((await recordOf(waiting.id)).state).toBe('canceled');
});

test('agents that send to each other in a loop come to an end that says why', async () => {
  const received: string[] = [];
  for (const [type, other] of [
    ['ping', 'pong'],
    ['pong', 'ping'],
  ] as const)
    await agentOf(type, { maxConcurrentSessions: 0 })
      .onMessage(async (task) => {
        received.push(type);
        const { id, status } = await task.client.send(task.text, to(other));
        if (status.state === 'completed') return 'done';
        throw new Error((await recordOf(id)).error?.message);
      })
      .connect();
  const { id } = await client.send('x', to('ping'));
  expect((await recordOf(id)).error?.message).toMatch(/metadata\.hops: the message came through 16 agents/);
  expect(received).toHaveLength(17);
});

/** What an agent without `task.client` sends with: its own token, and what it says of itself. */
test.each([
  ['pass on their traceparent, and wait for each other', true, ({ traceparent }: AgentTask) => ({ traceparent })],
  ['say nothing, and do not wait', false, () => ({ blocking: false })],
])('so do agents that count nothing: they %s', async (_what, isExact, options) => {
  const { base_url: url, agent_client_id: clientId, agent_client_secret: clientSecret } = platform.devJson();
  const received: string[] = [];
  const refusals: string[] = [];
  for (const [type, other] of [
    ['tick', 'tock'],
    ['tock', 'tick'],
  ] as const) {
    const own = new FleetClient({ url, clientId, clientSecret, agentType: type });
    onTestFinished(() => own.destroy());
    await agentOf(type, { maxConcurrentSessions: 0 })
      .onMessage(async (task) => {
        received.push(type);
        await own.send('on', to(other, options(task))).catch((error: Error) => refusals.push(error.message));
      })
      .connect();
  }
  await client.send('x', to('tick'));
  await until(() => refusals.length > 0);
  expect(refusals[0]).toMatch(/metadata\.hops: the message came through 16 agents/);
  // While an earlier message of the loop is still at work, the next may be counted as sent for that one.
  expect(received.length).toBeGreaterThanOrEqual(17);
  if (isExact) expect(received).toHaveLength(17);
});

test('an agent that answers many at once is in no loop, however deep others are', async () => {
  const { base_url: url, agent_client_id: clientId, agent_client_secret: clientSecret } = platform.devJson();
  const own = new FleetClient({ url, clientId, clientSecret, agentType: 'asker' });
  onTestFinished(() => own.destroy());
  await agentOf('asker', { maxConcurrentSessions: 0 })
    .onMessage(async (task) => {
      if (task.text === 'deep')
        await until(() => answers.length === 20); // at work meanwhile
      else answers.push((await own.send('x', to('replier'))).status.state);
    })
    .connect();
  await agentOf('replier', { maxConcurrentSessions: 0 })
    .onMessage(() => 'done')
    .connect();
  const answers: string[] = [];
  const deep = client.send('deep', to('asker', { hops: 16 }));
  await Promise.all(Array.from({ length: 20 }, () => client.send('ask', to('asker'))));
  expect((await deep).status.state).toBe('completed');
  expect(answers).toEqual(Array.from({ length: 20 }, () => 'completed'));
});

describe('a message whose agent is lost', () => {
  /** Two agents of a type. What `hold` is told is the first task; it never ends there, and its agent leaves without it. */
  async function lostOnce(type: string, options: Partial<AgentOptions>, skill: boolean) {
    const tasks: AgentTask[] = [];
    const agents = ['1', '2'].map((n) => agentOf(type, { instanceId: `${type}-${n}`, ...options }));
    for (const agent of agents) {
      const handler = (task: AgentTask) => {
        tasks.push(task);
        if (tasks.length > 1) return `done by attempt ${task.attempt}`;
        void agent.close(0).catch(() => undefined);
        return new Promise<string>(() => undefined);
      };
      agent.skill({ id: 'pay', idempotent: skill }, handler).onMessage(handler);
      await agent.connect();
    }
    return tasks;
  }

  test.each([
    ['an idempotent skill', {}, true, { skillId: 'pay' }],
    ['an idempotent agent, without a skill', { idempotent: true }, false, {}],
  ])('is dispatched again, under the same key: %s', async (_what, options, skill, metadata) => {
    const type = skill ? 'payer' : 'careful';
    const tasks = await lostOnce(type, options, skill);
    const sent = await client.send('go', to(type, metadata));
    expect(answerOf(sent)).toBe('done by attempt 2');
    const [first, second] = tasks;
    expect(second?.idempotencyKey).toBe(first?.idempotencyKey);
    expect(second?.dispatchId).not.toBe(first?.dispatchId);
    expect(second?.deadlineMs).toBeLessThan(first?.deadlineMs ?? 0); // of both together
    const events = await client.post('/telemetry/get_events', { message_id: sent.id, type: 'message.error' });
    expect(events.events).toEqual([]);
  });

  test('begins its stream anew, and says so', async () => {
    let attempts = 0;
    for (const n of ['1', '2']) {
      const agent = agentOf('reciter', { instanceId: `reciter-${n}`, idempotent: true });
      agent.onMessage(async function* () {
        attempts += 1;
        yield `attempt ${attempts}`;
        if (attempts > 1) return;
        await begun.promise;
        void agent.close(0).catch(() => undefined);
        await new Promise<never>(() => undefined);
      });
      await agent.connect();
    }
    const begun = gate();
    const shown: string[] = [];
    for await (const event of client.stream('go', to('reciter'))) {
      if (event.kind === 'artifact-update') shown.push(textOf(event.artifact.parts));
      if (event.kind === 'status-update' && event.metadata?.restarted === true) shown.push('anew');
      if (shown.length > 0) begun.open();
    }
    expect(shown).toEqual(['attempt 1', 'anew', 'attempt 2']);
  });
});
