import { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import type { Task } from '../../../contracts/a2a/a2a.js';
import { AgentRegisterResponse } from '../../../contracts/api/agents.js';
import { MessageCancelResponse } from '../../../contracts/api/messages.js';
import { LIMITS } from '../../../contracts/limits.js';
import { redisServer } from '../../messages/bus/redis-server.js';
import { policyFor } from '../../policies/policy-fixture.js';
import { type Behaviour, type Dispatched, dispatched, echo, type RawAgent, serve } from '../../setup/agent.js';
import { joinAgent } from '../../setup/platform/fleet.js';
import { startPlatform } from '../../setup/platform/platform.js';
import type { TestPlatform } from '../../setup/platform/platform-process.js';
import { assembled, StreamReader } from '../../setup/stream-reader.js';
import { until } from '../../setup/until.js';

const redis = await redisServer();
const shared = await startPlatform({ REDIS_URL: redis.url, QUEUE_WAIT_MS: '60000' });
/** Three nodes with every role; a test that kills one starts it again. */
const a = shared.platform;
const [b, c] = await Promise.all([shared.startPeer(), shared.startPeer()]);

/** Less than a node trusts what it has read without asking again: a change that is seen sooner was announced. */
const ANNOUNCED_MS = 4_000;

const to = (agentType: string) => ({ metadata: { agent_type: agentType } });
const messageTo = (agentType: string) => ({
  message: { kind: 'message', messageId: crypto.randomUUID(), role: 'user', parts: [{ kind: 'text', text: 'go' }] },
  ...to(agentType),
});

async function join(node: TestPlatform, agentType: string, behaviour?: Behaviour): Promise<RawAgent> {
  return joinAgent(node, { instanceId: `${agentType}-1`, agentType }, behaviour);
}

/** An agent that says a word when the test says so. */
class Speaker {
  readonly dispatch: Promise<Dispatched>;
  #seq = 0;

  constructor(agent: RawAgent) {
    this.dispatch = agent.nextOfType('dispatch', 60_000).then((frame) => dispatched(agent, frame));
  }

  async say(...words: string[]): Promise<void> {
    const dispatch = await this.dispatch;
    for (const word of words) dispatch.chunk(this.#seq++, word);
  }
}

describe('an agent on one node, its callers on others', () => {
  test('is sent to, streams, and hears of a cancel', async () => {
    const agent = await join(b, 'remote');
    const streaming = new Speaker(agent);
    const stream = new StreamReader(a.client, 'message/stream', messageTo('remote'));
    await streaming.say('one ', 'two ');
    await stream.has(3);
    await streaming.say('three');
    (await streaming.dispatch).result('', { chunk_count: 3 });
    await stream.done;
    expect([...assembled(stream.events).values()]).toEqual(['one two three']);
    expect(stream.events.filter((event) => event.kind === 'artifact-update')).toHaveLength(3);

    const task = await c.client.send('to be canceled', { ...to('remote'), blocking: false });
    const frame = await agent.nextOfType('dispatch');
    await a.client.ok('/messages/cancel', { message_id: task.id }, MessageCancelResponse);
    const canceled = await agent.nextOfType('error');
    expect([canceled.in_reply_to, canceled.payload.code]).toEqual([frame.id, 'CANCELED']);
    serve(agent, echo);
    expect((await a.client.send('hello', to('remote'))).status.state).toBe('completed');
    agent.close();
  }, 120_000);

  test('is found at once on a node that was added', async () => {
    const added = await shared.startPeer();
    const agent = await join(added, 'newcomer', echo);
    for (const node of [a, b]) expect((await node.client.send('hello', to('newcomer'))).status.state).toBe('completed');
    agent.close();
    await added.stop();
  }, 120_000);
});

test('a policy and a guard that one node changes hold at the others, also when they are taken back', async () => {
  const agent = await join(b, 'governed', echo);
  const states = () =>
    Promise.all([a, b, c].map(async ({ client }) => (await client.send('hello', to('governed'))).status.state));
  const untilAll = (state: string, what: string) =>
    until(async () => (await states()).every((one) => one === state), { timeoutMs: ANNOUNCED_MS, what });
  expect(await states()).toEqual(['completed', 'completed', 'completed']);
  const policy = { scope: 'admission' as const, decision: 'deny' as const, match: { agent_types: ['governed'] } };
  const { policy_id } = await policyFor(a.client, policy);
  await untilAll('failed', 'the new policy everywhere');
  await c.client.post('/policies/delete_policy', { policy_id });
  await untilAll('completed', 'its end everywhere');
  const limits = (max_message_bytes: number) =>
    b.client.post('/policies/update_guard', { guard: 'limits', config: { max_message_bytes } });
  await limits(10);
  await untilAll('failed', 'the changed guard everywhere');
  await limits(LIMITS.messagePartsBytes);
  await untilAll('completed', 'the guard as it was everywhere');
  agent.close();
}, 120_000);

describe('a node that is killed', () => {
  test('fails what its agents had with AGENT_DISCONNECTED, and they go on at another', async () => {
    const agent = await join(b, 'orphan');
    const tasks = await Promise.all(
      [a, c].map((node) => node.client.send('work', { ...to('orphan'), blocking: false })),
    );
    await agent.nextOfType('dispatch', 60_000);
    await agent.nextOfType('dispatch', 60_000);
    await b.kill9();
    const waiting = c.client.send('after', to('orphan'));
    for (const task of tasks) {
      const message = await a.client.untilState(task.id, 'failed', 60_000);
      expect(message.error?.code).toBe('AGENT_DISCONNECTED');
    }
    await agent.closed;
    const registration = { instance_id: 'orphan-1', agent_type: 'orphan', deployment_mode: 'connected' };
    const { connect_url } = await c.client.ok('/agents/register', registration, AgentRegisterResponse);
    expect(connect_url).toContain(new URL(c.devJson().mesh_url).host);
    const back = await join(c, 'orphan', echo);
    expect((await waiting).status.state).toBe('completed');
    expect((await a.client.send('again', to('orphan'))).status.state).toBe('completed');
    back.close();
    await b.start();
  }, 240_000);

  test('leaves its streams to be gone on with at another node, without a gap or a repeat', async () => {
    const agent = await join(b, 'speaker');
    const speaker = new Speaker(agent);
    const first = new StreamReader(a.client, 'message/stream', messageTo('speaker'));
    await speaker.say('one ', 'two ');
    await until(() => assembled(first.events).size === 1 && first.events.filter(isChunk).length === 2);
    await a.kill9();
    await first.done;
    expect(first.broken).toBe(true);
    await speaker.say('three ');
    const task = { id: (first.events[0] as Task).id };
    const second = new StreamReader(c.client, 'tasks/resubscribe', task, first.lastEventId);
    await second.has(1);
    await speaker.say('four');
    (await speaker.dispatch).result('', { chunk_count: 4 });
    await second.done;
    const spoken = [...first.events, ...second.events].filter(isChunk);
    expect(spoken.map(textOfChunk)).toEqual(['one ', 'two ', 'three ', 'four']);
    expect(second.events[0]).toMatchObject({ kind: 'artifact-update', append: true });
    expect(second.events.at(-1)).toMatchObject({ final: true, status: { state: 'completed' } });
    const late = new StreamReader(b.client, 'tasks/resubscribe', task, first.lastEventId);
    await late.done;
    expect(late.events).toEqual(second.events);
    agent.close();
    await a.start();
  }, 240_000);
});

const isChunk = (event: StreamReader['events'][number]) => event.kind === 'artifact-update';
const textOfChunk = (event: StreamReader['events'][number]) =>
  event.kind === 'artifact-update' && event.artifact.parts[0]?.kind === 'text' ? event.artifact.parts[0].text : '';

test('without Redis sends end, streams tell the end from the record, and with it again they stream', async () => {
  const agent = await join(b, 'steady');
  const speaker = new Speaker(agent);
  const stream = new StreamReader(a.client, 'message/stream', messageTo('steady'));
  await speaker.say('one ');
  await stream.has(2);
  await redis.kill();
  await speaker.say('two');
  (await speaker.dispatch).result('', { chunk_count: 2 });
  await stream.done;
  expect([...assembled(stream.events).values()]).toEqual(['one two']);
  expect(stream.events.at(-1)).toMatchObject({ final: true, status: { state: 'completed' } });
  const task = { id: (stream.events[0] as Task).id };
  const resumed = new StreamReader(c.client, 'tasks/resubscribe', task, stream.seen[1]?.id);
  await resumed.done;
  expect([...assembled([...stream.events.slice(0, 2), ...resumed.events]).values()]).toEqual(['one two']);

  serve(agent, echo);
  expect((await a.client.send('hello', to('steady'))).status.state).toBe('completed');
  expect([a.ended, b.ended, c.ended]).toEqual([undefined, undefined, undefined]);
  await redis.start();
  const redisState = async () => ((await a.client.get('/health')).body as { checks: { redis: string } }).checks.redis;
  await until(async () => (await redisState()) === 'ok');
  const again = await join(b, 'back');
  const next = new Speaker(again);
  const after = new StreamReader(c.client, 'message/stream', messageTo('back'));
  await next.say('streamed');
  await until(() => after.events.some(isChunk));
  (await next.dispatch).result('', { chunk_count: 1 });
  await after.done;
  for (const socket of [agent, again]) socket.close();
}, 120_000);

test('with a full Redis sends and streams end all the same', async () => {
  const operator = new Redis(redis.url);
  const agent = await join(b, 'roomy', echo);
  await operator.config('SET', 'maxmemory', '1');
  try {
    expect((await a.client.send('hello', to('roomy'))).status.state).toBe('completed');
    const stream = new StreamReader(a.client, 'message/stream', messageTo('roomy'));
    await stream.done;
    expect(stream.events.at(-1)).toMatchObject({ final: true, status: { state: 'completed' } });
    expect([...assembled(stream.events).values()]).toEqual(['echo: go']);
  } finally {
    await operator.config('SET', 'maxmemory', '0');
    operator.disconnect();
    agent.close();
  }
}, 120_000);
