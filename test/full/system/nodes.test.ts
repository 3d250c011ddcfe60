// @module-tag once
import { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import type { Task } from '../../../contracts/a2a/a2a.js';
import { AgentRegisterResponse } from '../../../contracts/api/agents.js';
import { LIMITS } from '../../../contracts/limits.js';
import { hostedAgent, message } from '../../mesh/hosted/hosted-agent.js';
import { redisServer } from '../../messages/bus/redis-server.js';
import { policyFor } from '../../policy/policy-fixture.js';
import { dispatched, echo, serve } from '../../setup/agent.js';
import { joinAgent } from '../../setup/platform/fleet.js';
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
/** Three nodes with every role. */
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

test('without Redis sends end, streams tell the end from the record, and with it again they stream', async () => {
  const agent = await joinType(b, 'steady');
  const stream = new StreamReader(a.client, 'message/stream', messageTo('steady'));
  const dispatch = dispatched(agent, await agent.nextOfType('dispatch', 60_000));
  dispatch.chunk(0, 'one ');
  await stream.has(2);
  await redis.kill();
  dispatch.chunk(1, 'two');
  dispatch.result('', { chunk_count: 2 });
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
  const after = new StreamReader(c.client, 'message/stream', messageTo('back'));
  const next = dispatched(again, await again.nextOfType('dispatch', 60_000));
  next.chunk(0, 'streamed');
  await until(() => after.events.some(({ kind }) => kind === 'artifact-update'));
  next.result('', { chunk_count: 1 });
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
