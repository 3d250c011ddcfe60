import { afterEach, describe, expect, inject, test } from 'vitest';
import type { Task } from '../../contracts/a2a/a2a.js';
import { AgentRegisterResponse } from '../../contracts/api/agents.js';
import { MessageCancelResponse, ResolveResponse } from '../../contracts/api/messages.js';
import { hostedAgent, message } from '../mesh/hosted/hosted-agent.js';
import { redisServer } from '../messages/bus/redis-server.js';
import { type Behaviour, dispatched, echo, type RawAgent, serve } from '../setup/agent.js';
import { CountedTemporal } from '../setup/platform/counted-temporal.js';
import { joinAgent } from '../setup/platform/fleet.js';
import { FAST_PATH } from '../setup/platform/paths.js';
import { startPlatform } from '../setup/platform/platform.js';
import type { TestPlatform } from '../setup/platform/platform-process.js';
import { TcpProxy } from '../setup/platform/tcp-proxy.js';
import { StreamReader } from '../setup/stream-reader.js';
import { until } from '../setup/until.js';

const redis = await redisServer();
const temporal = await CountedTemporal.to(inject('temporalAddress'));
/** Messages between nodes that are lost on the way to the process of that name: kinds, as they stand in the message. */
const lost = { caller: new Set<string>(), holder: new Set<string>() };

async function lossyRedis(to: keyof typeof lost): Promise<TcpProxy> {
  const arrives = (chunk: Buffer) => ![...lost[to]].some((kind) => chunk.includes(`"kind":"${kind}"`));
  return TcpProxy.to(redis.url, { arrives });
}

const wayToCaller = await lossyRedis('caller');
const wayToHolder = await lossyRedis('holder');
const shared = await startPlatform({
  ...FAST_PATH.env,
  REDIS_URL: wayToCaller.urlOf(redis.url),
  TEMPORAL_ADDRESS: temporal.address,
  QUEUE_WAIT_MS: '60000',
});
/** Takes the calls. */
const caller = shared.platform;
/** Holds the agents' sockets. */
const holder = await shared.startPeer({ env: { REDIS_URL: wayToHolder.urlOf(redis.url) } });
/** Takes calls, and has neither sockets nor workers. */
const front = await shared.startPeer({ roles: 'api', env: { FLEET_MESH_URL: holder.devJson().mesh_url } });

afterEach(() => {
  for (const kinds of Object.values(lost)) kinds.clear();
  wayToHolder.latencyMs = 0;
});

const to = (agentType: string) => ({ metadata: { agent_type: agentType } });
const paramsTo = (agentType: string) => ({
  message: { kind: 'message', messageId: crypto.randomUUID(), role: 'user', parts: [{ kind: 'text', text: 'go' }] },
  ...to(agentType),
});
const join = (agentType: string, behaviour?: Behaviour): Promise<RawAgent> =>
  joinAgent(holder, { instanceId: `${agentType}-1`, agentType }, behaviour);
const sentTo = (agent: RawAgent) => agent.received.filter(({ type }) => type === 'dispatch');

async function statesOf(messageId: string): Promise<string[]> {
  const rows = await shared.database.query<{ state: string }>(
    'SELECT state FROM dispatches WHERE message_id = $1 ORDER BY created_at',
    [messageId],
  );
  return rows.map(({ state }) => state);
}

describe('an agent whose socket another node holds', () => {
  test.each([
    ['a node with every role', caller],
    ['an api process', front],
  ])('answers what %s takes, and Temporal is not asked', async (_name, process: TestPlatform) => {
    const agent = await join('echo', echo);
    // The first one may come before the processes have found each other.
    await until(async () => temporal.about((await process.client.send('warm', to('echo'))).id).length === 0);
    const tasks: Task[] = [];
    for (const text of ['one', 'two', 'three']) tasks.push(await process.client.send(text, to('echo')));
    for (const task of tasks) {
      expect(task.status.state).toBe('completed');
      expect(task.artifacts?.[0]?.parts).toEqual([
        { kind: 'text', text: expect.stringContaining('one|two|three'.split('|')[tasks.indexOf(task)] ?? '') },
      ]);
      expect(await statesOf(task.id)).toEqual(['completed']);
    }
    const stream = new StreamReader(process.client, 'message/stream', paramsTo('echo'));
    await stream.done;
    expect(stream.events.at(-1)).toMatchObject({ final: true, status: { state: 'completed' } });
    const streamed = (stream.events[0] as Task).id;
    for (const id of [...tasks.map((task) => task.id), streamed]) expect(temporal.about(id)).toEqual([]);
    agent.close();
  });

  test('answers at once in a session, and what is too large for Redis', async () => {
    const agent = await join('large', echo);
    const first = await caller.client.send('open', to('large'));
    const text = 'x'.repeat(200_000);
    const second = await caller.client.send(text, { ...to('large'), contextId: first.contextId });
    expect(second.artifacts?.[0]?.parts).toEqual([{ kind: 'text', text: expect.stringContaining(text) }]);
    expect(temporal.about(second.id)).toEqual([]);
    agent.close();
  });

  test('is a hosted one, which an api process has a mesh node call', async () => {
    const server = await hostedAgent({ 'message/send': (reply) => reply.result(message('from afar')) });
    const hosted = { instance_id: 'far-1', agent_type: 'far', public_url: server.url, agent_card: {} };
    await caller.client.ok('/agents/register', hosted, AgentRegisterResponse);
    await until(async () => {
      const task = await front.client.send('hello', to('far'));
      expect(task.status.state).toBe('completed');
      return temporal.about(task.id).length === 0;
    });
  });

  test('is left to a workflow when it takes long, although the process that took the call dies', async () => {
    const agent = await join('thinker');
    const peer = await shared.startPeer();
    const task = await peer.client.send('think', { ...to('thinker'), blocking: false });
    const dispatch = dispatched(agent, await agent.nextOfType('dispatch'));
    await peer.kill9();
    await until(() => temporal.about(task.id).length > 0, { what: 'the workflow of the message' });
    dispatch.result('at last');
    await caller.client.untilState(task.id, 'completed');
    expect(await statesOf(task.id)).toEqual(['completed']);
    expect(sentTo(agent)).toHaveLength(1);
    agent.close();
  });

  test('hears of a cancel', async () => {
    const agent = await join('dreamer');
    const task = await front.client.send('dream', { ...to('dreamer'), blocking: false });
    const frame = await agent.nextOfType('dispatch');
    await caller.client.ok('/messages/cancel', { message_id: task.id }, MessageCancelResponse);
    expect(await agent.nextOfType('error')).toMatchObject({ in_reply_to: frame.id, payload: { code: 'CANCELED' } });
    agent.close();
  });

  test('asks a human, and goes on with the answer', async () => {
    const agent = await join('asker');
    const asking = caller.client.send('may I', to('asker'));
    dispatched(agent, await agent.nextOfType('dispatch')).ask({ kind: 'confirmation', title: 'May I?' });
    const asked = await asking;
    expect(asked.status.state).toBe('input-required');
    serve(agent, echo);
    await front.client.ok(`/messages/${asked.id}/resolve`, { resolution: 'confirmed' }, ResolveResponse);
    await front.client.untilState(asked.id, 'completed');
    agent.close();
  });
});

describe('a dispatch between two nodes', () => {
  test('is sent once although its first copies are lost', async () => {
    const agent = await join('lossy', echo);
    lost.holder.add('dispatch');
    const sending = caller.client.send('hello', to('lossy'));
    await until(() =>
      shared.database
        .query('SELECT 1 FROM dispatches WHERE agent_type = $1', ['lossy'])
        .then((rows) => rows.length > 0),
    );
    lost.holder.clear();
    const task = await sending;
    expect(task.status.state).toBe('completed');
    expect(sentTo(agent)).toHaveLength(1);
    agent.close();
  });

  test('is not sent when it comes after its node has said that it does not know it', async () => {
    const agent = await join('late', echo);
    wayToHolder.latencyMs = 9_000;
    const task = await caller.client.send('hello', to('late'));
    expect(task.status.state).toBe('completed');
    expect(await statesOf(task.id)).toEqual(['released', 'completed']);
    // What was forwarded arrives meanwhile, and is answered.
    wayToHolder.latencyMs = 0;
    const after = await until(
      async () => {
        const next = await caller.client.send('after', to('late'));
        return temporal.about(next.id).length === 0 ? next : undefined;
      },
      { timeoutMs: 60_000 },
    );
    expect(after.status.state).toBe('completed');
    const ofTask = sentTo(agent).filter(({ payload }) => JSON.stringify(payload).includes(task.id));
    expect(ofTask).toHaveLength(1);
    agent.close();
  });

  test('is answered from the record when every word of its node is lost', async () => {
    const agent = await join('mute', echo);
    for (const kind of ['dispatch_taken', 'dispatch_ended', 'dispatch_refused']) lost.caller.add(kind);
    const task = await caller.client.send('hello', to('mute'));
    expect(task.status.state).toBe('completed');
    expect(await statesOf(task.id)).toEqual(['completed']);
    expect(sentTo(agent)).toHaveLength(1);
    agent.close();
  });

  test('is routed again when the process that took the call dies before it was forwarded', async () => {
    const agent = await join('spared', echo);
    lost.holder.add('dispatch');
    const peer = await shared.startPeer();
    const task = await peer.client.send('hello', { ...to('spared'), blocking: false });
    await peer.kill9();
    await caller.client.untilState(task.id, 'completed', 60_000);
    expect(await statesOf(task.id)).toEqual(['released', 'completed']);
    expect(sentTo(agent)).toHaveLength(1);
    agent.close();
  });

  test('is lost with the node that has sent it', async () => {
    const node = await shared.startPeer();
    const agent = await joinAgent(node, { instanceId: 'doomed-1', agentType: 'doomed' });
    const sending = caller.client.send('hello', to('doomed'));
    await agent.nextOfType('dispatch');
    await node.kill9();
    expect((await sending).metadata?.error).toMatchObject({ code: 'AGENT_DISCONNECTED' });
    expect(sentTo(agent)).toHaveLength(1);
  });

  test('goes to another agent when its node takes nothing new', async () => {
    const node = await shared.startPeer();
    const leaving = await joinAgent(node, { instanceId: 'pair-1', agentType: 'pair' });
    const busy = caller.client.send('first', to('pair'));
    const dispatch = dispatched(leaving, await leaving.nextOfType('dispatch'));
    await joinAgent(holder, { instanceId: 'pair-2', agentType: 'pair' }, echo);
    const stopping = node.stop();
    await leaving.nextOfType('close_request');
    const tasks = await Promise.all([1, 2, 3, 4].map((n) => caller.client.send(`${n}`, to('pair'))));
    expect(tasks.map(({ status }) => status.state)).toEqual(Array(4).fill('completed'));
    dispatch.result('done');
    expect((await busy).status.state).toBe('completed');
    leaving.close();
    await stopping;
  });
});
