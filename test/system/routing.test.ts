import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Task } from '../../contracts/a2a/a2a.js';
import { AgentGetByIdResponse, AgentRegisterResponse, DisallowTypeResponse } from '../../contracts/api/agents.js';
import { SessionGetByIdResponse, SessionInitResponse, SessionInviteResponse } from '../../contracts/api/sessions.js';
import { GetEventsResponse } from '../../contracts/api/telemetry.js';
import { freePort } from '../../embedded/free-port.js';
import { httpServer } from '../runtime/loopback-server.js';
import { type Behaviour, type Dispatched, dispatched, echo, type RawAgent, silent } from '../setup/agent.js';
import type { ApiClient, SendOptions } from '../setup/platform/api-client.js';
import { joinAgent } from '../setup/platform/fleet.js';
import { PATHS } from '../setup/platform/paths.js';
import { type SharedPlatform, startPlatform } from '../setup/platform/platform.js';
import { until } from '../setup/until.js';

let shared: SharedPlatform;
let client: ApiClient;

interface Joining {
  behaviour?: Behaviour;
  max?: number;
  skills?: string[];
}

const freshType = () => `type-${randomUUID().slice(0, 8)}`;

/** Connects an agent `{type}-{name}`; it echoes where nothing else is said. */
function join(
  agentType: string,
  name: string,
  { behaviour = echo, max = 0, skills = [] }: Joining = {},
): Promise<RawAgent> {
  const options = {
    instanceId: `${agentType}-${name}`,
    agentType,
    maxConcurrentSessions: max,
    skills: skills.map((id) => ({ id })),
  };
  return joinAgent(shared.platform, options, behaviour);
}

/** Sends without waiting for the answer, and waits for the dispatch. */
async function hold(agent: RawAgent, options: SendOptions): Promise<{ task: Task; dispatch: Dispatched }> {
  const task = await client.send('hold', { ...options, blocking: false });
  const frame = await agent.next(
    ({ type, payload }) =>
      type === 'dispatch' && (payload as unknown as Dispatched['payload']).session_context.message_id === task.id,
  );
  return { task, dispatch: dispatched(agent, frame) };
}

/** Who answered a message that is sent now; the task’s state where nobody did. */
async function answerer(options: SendOptions): Promise<string> {
  const task = await client.send('who?', options);
  return task.status.state === 'completed' ? String(task.metadata?.instance_id) : task.status.state;
}
async function init(body: object = {}): Promise<string> {
  return (await client.ok('/sessions/init', body, SessionInitResponse)).session_id;
}
async function joined(sessionId: string): Promise<[string, string][]> {
  const { session } = await client.ok('/sessions/get_by_id', { session_id: sessionId }, SessionGetByIdResponse);
  return session.agents.map(({ instance_id, join_reason }) => [instance_id, join_reason]);
}
async function agentRow(instance_id: string) {
  return (await client.ok('/agents/get_by_id', { instance_id }, AgentGetByIdResponse)).agent;
}
/** What `agent.capacity_changed` said of an instance, oldest first. */
async function counts(instance_id: string): Promise<unknown[]> {
  const query = { type: 'agent.capacity_changed', page_size: 100 };
  const { events } = await client.ok('/telemetry/get_events', query, GetEventsResponse);
  const own = events.filter(({ event }) => event.instance_id === instance_id);
  return own.map(({ event }) => event.current_sessions).reverse();
}
async function leave(agent: RawAgent): Promise<void> {
  agent.close();
  await until(async () => (await agentRow(agent.instanceId)).status === 'offline', { what: 'the agent to be offline' });
}
const to = (agent_type: string, more: object = {}) => ({ metadata: { agent_type, ...more } });

describe.each(PATHS)('$way', ({ env }) => {
  beforeAll(async () => {
    shared = await startPlatform({ ...env, QUEUE_WAIT_MS: '1500', OUTBOUND_ALLOW_CIDRS: '127.0.0.0/8' });
    client = shared.platform.client;
    return shared.dispose;
  });

  describe('a message without a session', () => {
    test('goes to the least loaded agent of its type, and of several idle ones to the longest idle', async () => {
      const type = freshType();
      const agents = [await join(type, 'a', { behaviour: silent }), await join(type, 'b', { behaviour: silent })];
      const [a, b] = agents as [RawAgent, RawAgent];
      const first = await hold(a, to(type));
      const second = await hold(b, to(type));
      const third = await hold(a, to(type));
      first.dispatch.result('done');
      third.dispatch.result('done');
      await client.untilState(third.task.id, 'completed');
      const fourth = await hold(a, to(type));
      second.dispatch.result('done');
      fourth.dispatch.result('done');
      await client.untilState(second.task.id, 'completed');
      await client.untilState(fourth.task.id, 'completed');
      const fifth = await hold(b, to(type));
      fifth.dispatch.result('done');
      expect((await client.untilState(fifth.task.id, 'completed')).instance_id).toBe(`${type}-b`);
    });

    test('never goes to a full agent, nor to one that drains', async () => {
      const type = freshType();
      const narrow = await join(type, 'a', { behaviour: silent, max: 1 });
      const held = await hold(narrow, to(type));
      expect((await agentRow(`${type}-a`)).status).toBe('busy');
      const wide = await join(type, 'b');
      for (let sent = 0; sent < 3; sent += 1) expect(await answerer(to(type))).toBe(`${type}-b`);
      held.dispatch.result('done');
      await client.untilState(held.task.id, 'completed');
      narrow.send('heartbeat', { status: 'draining' });
      await until(async () => (await agentRow(`${type}-a`)).status === 'draining');
      for (let sent = 0; sent < 3; sent += 1) expect(await answerer(to(type))).toBe(`${type}-b`);
      wide.close();
    });

    test('goes to the instance or the skill that it names, and to nobody else', async () => {
      const type = freshType();
      const a = await join(type, 'a', { skills: ['common'] });
      await join(type, 'b', { skills: ['common', 'rare'] });
      for (let sent = 0; sent < 3; sent += 1) {
        expect(await answerer({ metadata: { instance_id: `${type}-a` } })).toBe(`${type}-a`);
        expect(await answerer(to(type, { skill_id: 'rare' }))).toBe(`${type}-b`);
      }
      expect(await answerer({ metadata: { instance_id: `${type}-a`, agent_type: 'another' } })).toBe('failed');
      expect(await answerer(to(type, { skill_id: 'unheard of' }))).toBe('failed');
      await leave(a);
      expect(await answerer({ metadata: { instance_id: `${type}-a` } })).toBe('failed');
    });
  });

  describe('a session', () => {
    test('keeps its agent, whatever the load, also against an instance that a message names', async () => {
      const type = freshType();
      await join(type, 'a');
      const sessionId = await init({ agent_type: type });
      await join(type, 'b');
      for (let sent = 0; sent < 3; sent += 1) expect(await answerer({ contextId: sessionId })).toBe(`${type}-a`);
      expect(await answerer({ contextId: sessionId, metadata: { instance_id: `${type}-b` } })).toBe(`${type}-a`);
      expect(await joined(sessionId)).toEqual([[`${type}-a`, 'init']]);
    });

    test('has one agent of each type: a message for another one makes it join, and later ones go there', async () => {
      const [own, other] = [freshType(), freshType()];
      await join(own, 'a');
      await join(other, 'a');
      await join(other, 'b');
      const sessionId = await init({ agent_type: own });
      const chosen = await answerer({ contextId: sessionId, ...to(other) });
      for (let sent = 0; sent < 3; sent += 1) {
        expect(await answerer({ contextId: sessionId, ...to(other) })).toBe(chosen);
        expect(await answerer({ contextId: sessionId })).toBe(`${own}-a`);
      }
      expect(await joined(sessionId)).toEqual([
        [`${own}-a`, 'init'],
        [chosen, 'routed'],
      ]);
    });

    test('sends messages for a type to the agent that was invited', async () => {
      const [own, other] = [freshType(), freshType()];
      for (const type of [own, other]) for (const name of ['a', 'b']) await join(type, name);
      const sessionId = await init({ instance_id: `${own}-a` });
      const body = { session_id: sessionId, agent_type: other, instance_id: `${other}-b` };
      await client.ok('/sessions/invite', body, SessionInviteResponse);
      for (let sent = 0; sent < 3; sent += 1) {
        expect(await answerer({ contextId: sessionId, ...to(other) })).toBe(`${other}-b`);
        expect(await answerer({ contextId: sessionId })).toBe(`${own}-a`);
      }
      const unbound = await init();
      await client.ok('/sessions/invite', { ...body, session_id: unbound }, SessionInviteResponse);
      expect(await answerer({ contextId: unbound })).toBe(`${other}-b`);
    });

    test('has several messages at work at once, on one place of its agent', async () => {
      const type = freshType();
      const agent = await join(type, 'a', { behaviour: silent, max: 1 });
      const sessionId = await init({ agent_type: type });
      const held = await Promise.all([1, 2, 3].map(() => hold(agent, { contextId: sessionId })));
      expect(await agentRow(`${type}-a`)).toMatchObject({ current_sessions: 1, status: 'busy' });
      for (const { dispatch } of held.toReversed()) dispatch.result('done');
      for (const { task } of held) await client.untilState(task.id, 'completed');
      await client.post('/sessions/close', { session_id: sessionId });
    });

    test('gets one agent of a type, however many messages ask for one at once', async () => {
      const [own, other] = [freshType(), freshType()];
      await join(own, 'a');
      for (const name of ['a', 'b', 'c']) await join(other, name);
      const sessionId = await init({ agent_type: own });
      const options = { contextId: sessionId, ...to(other) };
      const answered = await Promise.all(Array.from({ length: 6 }, () => answerer(options)));
      expect(new Set(answered).size).toBe(1);
      expect(await joined(sessionId)).toHaveLength(2);
    });

    test('whose agent is gone gets another of its type, for the next messages too, and back', async () => {
      const type = freshType();
      const a = await join(type, 'a');
      const sessionId = await init({ agent_type: type });
      const b = await join(type, 'b');
      await leave(a);
      for (let sent = 0; sent < 2; sent += 1) expect(await answerer({ contextId: sessionId })).toBe(`${type}-b`);
      expect((await agentRow(`${type}-b`)).current_sessions).toBe(1);
      await join(type, 'a');
      expect(await answerer({ contextId: sessionId })).toBe(`${type}-b`);
      await leave(b);
      expect(await answerer({ contextId: sessionId })).toBe(`${type}-a`);
      await join(type, 'b');
      expect(await answerer({ contextId: sessionId })).toBe(`${type}-a`);
      expect([await counts(`${type}-a`), await counts(`${type}-b`)]).toEqual([
        [1, 0, 1],
        [1, 0],
      ]);
      expect(await joined(sessionId)).toEqual([
        [`${type}-b`, 'failover'],
        [`${type}-a`, 'failover'],
      ]);
    });

    test('replaces the agent of another type as well, and stays with the newest', async () => {
      const [own, other] = [freshType(), freshType()];
      await join(own, 'a');
      const a = await join(other, 'a');
      const sessionId = await init({ agent_type: own });
      const options = { contextId: sessionId, ...to(other) };
      expect(await answerer(options)).toBe(`${other}-a`);
      const b = await join(other, 'b');
      await leave(a);
      expect(await answerer(options)).toBe(`${other}-b`);
      await join(other, 'a');
      await leave(b);
      expect(await answerer(options)).toBe(`${other}-a`);
      await join(other, 'b');
      for (let sent = 0; sent < 3; sent += 1) expect(await answerer(options)).toBe(`${other}-a`);
      expect(await answerer({ contextId: sessionId })).toBe(`${own}-a`);
    });

    test('takes no invitation once it has ended', async () => {
      const type = freshType();
      await join(type, 'a');
      const sessionId = await init({ agent_type: type });
      await client.post('/sessions/close', { session_id: sessionId });
      const body = { session_id: sessionId, agent_type: type };
      expect(await client.failure('/sessions/invite', body)).toBe('409 SESSION_CLOSED');
    });
  });

  describe('a hosted agent', () => {
    const card = { name: 'x', version: '1', skills: [] };

    /** Registers a hosted agent where this status is answered to all, or nobody listens. */
    async function hosted(agentType: string, name: string, status: number | null): Promise<() => number> {
      const server = await httpServer((_request, response) => response.writeHead(status ?? 500).end());
      const public_url = status === null ? `http://127.0.0.1:${await freePort()}/` : `${server.url}/`;
      const body = { instance_id: `${agentType}-${name}`, agent_type: agentType, public_url, agent_card: card };
      await client.ok('/agents/register', body, AgentRegisterResponse);
      return () => server.requests.length;
    }

    test('that cannot be reached is passed over, and the session stays with the next', async () => {
      const type = freshType();
      await hosted(type, 'a', null);
      const sessionId = await init({ instance_id: `${type}-a` });
      await join(type, 'b');
      expect(await answerer({ contextId: sessionId })).toBe(`${type}-b`);
      expect(await joined(sessionId)).toEqual([
        [`${type}-a`, 'init'],
        [`${type}-b`, 'failover'],
      ]);
      expect(await answerer({ contextId: sessionId })).toBe(`${type}-b`);
    });

    test('that was reached and failed is not passed over, and nobody else gets the message', async () => {
      const type = freshType();
      const asked = await hosted(type, 'a', 503);
      const sessionId = await init({ instance_id: `${type}-a` });
      const other = await join(type, 'b');
      expect(await answerer({ contextId: sessionId })).toBe('failed');
      expect(asked()).toBe(1);
      expect(other.received.filter((frame) => frame.type === 'dispatch')).toEqual([]);
    });

    test('that a message names and that cannot be reached is not replaced', async () => {
      const type = freshType();
      await hosted(type, 'a', null);
      await join(type, 'b');
      expect(await answerer({ metadata: { instance_id: `${type}-a` } })).toBe('failed');
    });
  });

  test('a type that is disallowed finishes what it has, then its sockets close, and it cannot come back', async () => {
    const type = freshType();
    const busy = await join(type, 'a', { behaviour: silent });
    const idle = await join(type, 'b', { behaviour: silent });
    const held = await hold(busy, { metadata: { instance_id: `${type}-a` } });
    const answer = await client.ok('/agents/disallow_type', { agent_type: type }, DisallowTypeResponse);
    expect(answer.deregistered_count).toBe(2);
    expect((await idle.closed).code).toBe(4410);
    expect(await answerer(to(type))).toBe('failed');
    held.dispatch.result('done');
    await client.untilState(held.task.id, 'completed');
    expect((await busy.closed).code).toBe(4410);
    await expect(join(type, 'a')).rejects.toThrow('403');
  });
});
