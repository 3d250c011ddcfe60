// @module-tag once
import { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import type { StreamEvent, Task } from '../../../contracts/a2a/a2a.js';
import { AgentRegisterResponse } from '../../../contracts/api/agents.js';
import { ResolveResponse } from '../../../contracts/api/messages.js';
import { ToolResult } from '../../../contracts/api/tools.js';
import { LIMITS } from '../../../contracts/limits.js';
import { hostedAgent, message } from '../../mesh/hosted/hosted-agent.js';
import { ask, take } from '../../mesh/tools/tool-fixture.js';
import { redisServer } from '../../messages/bus/redis-server.js';
import { policyFor } from '../../policy/policy-fixture.js';
import { type Dispatched, dispatched, echo, type RawAgent, serve } from '../../setup/agent.js';
import { joinAgent, openSocket, registerAgent } from '../../setup/platform/fleet.js';
import { startPlatform } from '../../setup/platform/platform.js';
import { TcpProxy } from '../../setup/platform/tcp-proxy.js';
import { assembled, StreamReader } from '../../setup/stream-reader.js';
import { until } from '../../setup/until.js';
import { dispatchesTo, joinType, looksOf, to } from '../../system/fixture.js';

const redis = await redisServer();
/** Kinds of messages between nodes that are lost on the way to node b. */
const lost = new Set<string>();
const arrives = (chunk: Buffer) => ![...lost].some((kind) => chunk.includes(`"kind":"${kind}"`));
const wayToB = await TcpProxy.to(redis.url, { arrives });
const shared = await startPlatform({ REDIS_URL: redis.url, QUEUE_WAIT_MS: '60000' });
const { hasWorkflow, dispatchStates } = looksOf(shared);
/** Three nodes with every role; a test that kills one starts it again. */
const a = shared.platform;
const [b, c] = await Promise.all([
  shared.startPeer({ env: { REDIS_URL: wayToB.urlOf(redis.url) } }),
  shared.startPeer(),
]);
/** Takes calls, and has neither sockets nor workers. */
const front = await shared.startPeer({ roles: 'api', env: { FLEET_MESH_URL: b.devJson().mesh_url } });

/** Less than a node trusts what it has read without asking again: a change that is seen sooner was announced. */
const ANNOUNCED_MS = 4_000;

const messageTo = (agentType: string) => ({
  message: { kind: 'message', messageId: crypto.randomUUID(), role: 'user', parts: [{ kind: 'text', text: 'go' }] },
  ...to(agentType),
});

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

  async end(): Promise<void> {
    (await this.dispatch).result('', { chunk_count: this.#seq });
  }
}

describe('an agent whose socket another node holds', () => {
  test('answers what an api process takes, without a workflow, and what is too large for Redis', async () => {
    const agent = await joinType(b, 'echo', echo);
    // The first one may come before the processes have found each other.
    await until(async () => !(await hasWorkflow((await front.client.send('warm', to('echo'))).id)));
    const opened = await front.client.send('open', to('echo'));
    const text = 'x'.repeat(200_000);
    const large = await front.client.send(text, { contextId: opened.contextId });
    expect(large.artifacts?.[0]?.parts).toEqual([{ kind: 'text', text: expect.stringContaining(text) }]);
    for (const { id } of [opened, large])
      expect([await hasWorkflow(id), await dispatchStates(id)]).toEqual([false, ['completed']]);
    agent.close();
  });

  test('is a hosted one, which an api process has a mesh node call', async () => {
    const server = await hostedAgent({ 'message/send': (reply) => reply.result(message('from afar')) });
    const hosted = { instance_id: 'far-1', agent_type: 'far', public_url: server.url, agent_card: {} };
    await a.client.ok('/agents/register', hosted, AgentRegisterResponse);
    await until(async () => {
      const task = await front.client.send('hello', to('far'));
      expect(task.status.state).toBe('completed');
      return !(await hasWorkflow(task.id));
    });
  });

  test('asks a human, and goes on with the answer', async () => {
    const agent = await joinType(b, 'asker');
    const asking = a.client.send('may I', to('asker'));
    dispatched(agent, await agent.nextOfType('dispatch')).ask({ kind: 'confirmation', title: 'May I?' });
    const asked = await asking;
    expect(asked.status.state).toBe('input-required');
    serve(agent, echo);
    await front.client.ok(`/messages/${asked.id}/resolve`, { resolution: 'confirmed' }, ResolveResponse);
    await c.client.untilState(asked.id, 'completed');
    agent.close();
  });

  test('gets a dispatch once although its first copies are lost', async () => {
    const agent = await joinType(b, 'lossy', echo);
    lost.add('dispatch');
    const sending = a.client.send('hello', to('lossy'));
    const sent = () => shared.database.query('SELECT 1 FROM dispatches WHERE agent_type = $1', ['lossy']);
    await until(async () => (await sent()).length > 0);
    lost.clear();
    expect((await sending).status.state).toBe('completed');
    expect(dispatchesTo(agent)).toHaveLength(1);
    agent.close();
  });

  test('answers tool calls, by socket and by HTTP, until its node dies', async () => {
    const near = await joinType(a, 'calls');
    const node = await shared.startPeer();
    await registerAgent(node.client, { instanceId: 'tools-1', agentType: 'tools' });
    const far = await openSocket(node, 'tools-1');
    await far.hello({ tools: ['t'] });
    const bySocket = ask(near, { tool: 't', arguments: { x: 1 } });
    (await take(far, 't')).result({ ok: true, result: 1 });
    expect(await bySocket).toEqual({ ok: true, result: 1 });
    const byHttp = a.client.ok('/tools/call', { tool: 't' }, ToolResult);
    (await take(far, 't')).result({ ok: true, result: 2 });
    expect(await byHttp).toEqual({ ok: true, result: 2 });
    const lostCall = ask(near, { tool: 't', deadline_ms: 600_000 });
    await take(far, 't');
    await node.kill9();
    expect(await lostCall).toMatchObject({ error: { code: 'TARGET_UNAVAILABLE', retryable: false } });
    near.close();
  }, 120_000);

  test('is found at once on a node that was added, and another is found when that node takes nothing new', async () => {
    const added = await shared.startPeer();
    const leaving = await joinType(added, 'pair');
    const busy = a.client.send('first', to('pair'));
    const dispatch = dispatched(leaving, await leaving.nextOfType('dispatch'));
    const next = await joinAgent(b, { instanceId: 'pair-2', agentType: 'pair' }, echo);
    const stopping = added.stop();
    await leaving.nextOfType('close_request');
    const tasks = await Promise.all([1, 2, 3, 4].map((n) => a.client.send(`${n}`, to('pair'))));
    expect(tasks.map(({ status }) => status.state)).toEqual(Array(4).fill('completed'));
    dispatch.result('done');
    expect((await busy).status.state).toBe('completed');
    for (const socket of [leaving, next]) socket.close();
    await stopping;
  }, 120_000);
});

test('a policy and a guard that one node changes hold at the others, also when they are taken back', async () => {
  const agent = await joinType(b, 'governed', echo);
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

const isChunk = (event: StreamEvent) => event.kind === 'artifact-update';
const textOfChunk = (event: StreamEvent) =>
  event.kind === 'artifact-update' && event.artifact.parts[0]?.kind === 'text' ? event.artifact.parts[0].text : '';

describe('a node that is killed', () => {
  test('fails what its agents had with AGENT_DISCONNECTED, and they go on at another', async () => {
    const agent = await joinType(b, 'orphan');
    const work = { ...to('orphan'), blocking: false };
    const tasks = await Promise.all([a, c].map((node) => node.client.send('work', work)));
    await until(() => dispatchesTo(agent).length === 2, { what: 'both dispatches' });
    await b.kill9();
    const waiting = c.client.send('after', to('orphan'));
    for (const { id } of tasks) {
      const { error } = await a.client.untilState(id, 'failed', 60_000);
      expect(error?.code).toBe('AGENT_DISCONNECTED');
    }
    const registration = { instance_id: 'orphan-1', agent_type: 'orphan', deployment_mode: 'connected' };
    const { connect_url } = await c.client.ok('/agents/register', registration, AgentRegisterResponse);
    expect(connect_url).toContain(new URL(c.devJson().mesh_url).host);
    const back = await joinType(c, 'orphan', echo);
    expect((await waiting).status.state).toBe('completed');
    expect((await a.client.send('again', to('orphan'))).status.state).toBe('completed');
    back.close();
    await b.start();
  }, 240_000);

  test('leaves its streams to be gone on with at another node, without a gap or a repeat', async () => {
    const agent = await joinType(b, 'speaker');
    const speaker = new Speaker(agent);
    const first = new StreamReader(a.client, 'message/stream', messageTo('speaker'));
    await speaker.say('one ', 'two ');
    await until(() => first.events.filter(isChunk).length === 2);
    await a.kill9();
    await first.done;
    expect(first.broken).toBe(true);
    await speaker.say('three ');
    const task = { id: (first.events[0] as Task).id };
    const second = new StreamReader(c.client, 'tasks/resubscribe', task, first.lastEventId);
    await second.has(1);
    await speaker.say('four');
    await speaker.end();
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

test('without Redis sends end, streams tell the end from the record, and with it again they stream', async () => {
  const agent = await joinType(b, 'steady');
  const speaker = new Speaker(agent);
  const stream = new StreamReader(a.client, 'message/stream', messageTo('steady'));
  await speaker.say('one ');
  await stream.has(2);
  await redis.kill();
  await speaker.say('two');
  await speaker.end();
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
  const again = await joinType(b, 'back');
  const next = new Speaker(again);
  const after = new StreamReader(c.client, 'message/stream', messageTo('back'));
  await next.say('streamed');
  await until(() => after.events.some(isChunk));
  await next.end();
  await after.done;
  for (const socket of [agent, again]) socket.close();
}, 120_000);

test('with a full Redis sends and streams end all the same', async () => {
  const operator = new Redis(redis.url);
  const agent = await joinType(b, 'roomy', echo);
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
