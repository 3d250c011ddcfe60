import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { AgentRegisterResponse } from '../../contracts/api/agents.js';
import { SessionGetByIdResponse, SessionInviteResponse } from '../../contracts/api/sessions.js';
import { GetEventsResponse } from '../../contracts/api/telemetry.js';
import { freePort } from '../../embedded/free-port.js';
import { httpServer } from '../runtime/loopback-server.js';
import { type Behaviour, echo, type RawAgent, silent } from '../setup/agent.js';
import type { SendOptions } from '../setup/platform/api-client.js';
import { joinAgent } from '../setup/platform/fleet.js';
import { until } from '../setup/until.js';
import { agentRow, dispatchesTo, fleetOnEach, hold, initSession, to, untilStatus } from './fixture.js';

interface Joining {
  behaviour?: Behaviour;
  max?: number;
  skills?: string[];
}

const freshType = () => `type-${randomUUID().slice(0, 8)}`;

describe.each(await fleetOnEach())('on the $way', ({ platform, client, database }) => {
  /** Connects an agent `{type}-{name}`; it echoes where nothing else is said. */
  const join = (agentType: string, name: string, { behaviour = echo, max = 0, skills = [] }: Joining = {}) =>
    joinAgent(
      platform,
      {
        instanceId: `${agentType}-${name}`,
        agentType,
        maxConcurrentSessions: max,
        skills: skills.map((id) => ({ id })),
      },
      behaviour,
    );
  /** Who answered a message that is sent now; the task’s state where nobody did. */
  const answerer = async (options: SendOptions): Promise<string> => {
    const task = await client.send('who?', options);
    return task.status.state === 'completed' ? String(task.metadata?.instance_id) : task.status.state;
  };
  const expectAnswers = async (options: SendOptions, instanceId: string) => {
    for (let sent = 0; sent < 2; sent += 1) expect(await answerer(options)).toBe(instanceId);
  };
  const joined = async (session_id: string) => {
    const { session } = await client.ok('/sessions/get_by_id', { session_id }, SessionGetByIdResponse);
    return session.agents.map(({ instance_id, join_reason }) => [instance_id, join_reason]);
  };
  /** What `agent.capacity_changed` said of an instance, oldest first. */
  const counts = async (instance_id: string) => {
    const query = { type: 'agent.capacity_changed', instance_id };
    const { events } = await client.ok('/telemetry/get_events', query, GetEventsResponse);
    return events.map(({ event }) => event.current_sessions).reverse();
  };
  const leave = async (agent: RawAgent) => {
    agent.close();
    await untilStatus(client, agent.instanceId, 'offline');
  };

  describe('a message without a session', () => {
    test('goes to the least loaded agent of its type, and of several idle ones to the longest idle', async () => {
      const type = freshType();
      const [a, b] = [await join(type, 'a', { behaviour: silent }), await join(type, 'b', { behaviour: silent })];
      const give = (agent: RawAgent) => hold(client, agent, to(type));
      const end = async ({ task, dispatch }: Awaited<ReturnType<typeof give>>) => {
        dispatch.result('done');
        return (await client.untilState(task.id, 'completed')).instance_id;
      };
      const [first, second, third] = [await give(a), await give(b), await give(a)];
      for (const one of [first, third]) await end(one);
      const fourth = await give(a);
      for (const one of [second, fourth]) await end(one);
      expect(await end(await give(b))).toBe(`${type}-b`);
    });

    test.each<[string, (agent: RawAgent, type: string) => unknown, string, number]>([
      ['is full', (agent, type) => hold(client, agent, to(type)), 'busy', 1],
      ['drains', (agent) => agent.send('heartbeat', { status: 'draining' }), 'draining', 0],
      ['reports that it is busy', (agent) => agent.send('heartbeat', { status: 'busy' }), 'busy', 0],
      ['reports all its sessions', (agent) => agent.send('heartbeat', { current_sessions: 2 }), 'busy', 2],
    ])('never goes to an agent that %s', async (_what, fill, status, max) => {
      const type = freshType();
      const agent = await join(type, 'a', { behaviour: silent, max });
      await fill(agent, type);
      await untilStatus(client, `${type}-a`, status);
      await join(type, 'b');
      await expectAnswers(to(type), `${type}-b`);
    });

    test('that waits for a busy agent goes to it with its next report', async () => {
      const type = freshType();
      const agent = await join(type, 'a');
      agent.send('heartbeat', { status: 'busy' });
      await untilStatus(client, `${type}-a`, 'busy');
      const waiting = await client.send('hello', { metadata: { instance_id: `${type}-a` }, blocking: false });
      const isUnrouted = 'SELECT 1 FROM running_messages WHERE message_id = $1 AND unrouted_since IS NOT NULL';
      await until(async () => (await database.query(isUnrouted, [waiting.id])).length > 0);
      expect(dispatchesTo(agent)).toEqual([]);
      agent.send('heartbeat', { status: 'available' });
      await client.untilState(waiting.id, 'completed');
    });

    test('goes to the instance or the skill that it names, and to nobody else', async () => {
      const type = freshType();
      await join(type, 'a', { skills: ['common'] });
      await join(type, 'b', { skills: ['common', 'rare'] });
      await expectAnswers({ metadata: { instance_id: `${type}-a` } }, `${type}-a`);
      await expectAnswers(to(type, { skill_id: 'rare' }), `${type}-b`);
      expect(await answerer({ metadata: { instance_id: `${type}-a`, agent_type: 'another' } })).toBe('failed');
      expect(await answerer(to(type, { skill_id: 'unheard of' }))).toBe('failed');
    });
  });

  describe('a session', () => {
    test('keeps its agent, whatever the load, also against an instance that a message names', async () => {
      const type = freshType();
      await join(type, 'a');
      const contextId = await initSession(client, { agent_type: type });
      await join(type, 'b');
      await expectAnswers({ contextId }, `${type}-a`);
      await expectAnswers({ contextId, metadata: { instance_id: `${type}-b` } }, `${type}-a`);
      expect(await joined(contextId)).toEqual([[`${type}-a`, 'init']]);
    });

    test('has one agent of each type, however many messages ask for one at once, and later ones go there', async () => {
      const [own, other] = [freshType(), freshType()];
      await join(own, 'a');
      for (const name of ['a', 'b', 'c']) await join(other, name);
      const contextId = await initSession(client, { agent_type: own });
      const answered = new Set(await Promise.all([1, 2, 3, 4, 5, 6].map(() => answerer({ contextId, ...to(other) }))));
      const [chosen = ''] = answered;
      expect(answered.size).toBe(1);
      await expectAnswers({ contextId, ...to(other) }, chosen);
      await expectAnswers({ contextId }, `${own}-a`);
      const agents = [
        [`${own}-a`, 'init'],
        [chosen, 'routed'],
      ];
      expect(await joined(contextId)).toEqual(agents);
    });

    test('sends messages for a type to the agent that was invited', async () => {
      const [own, other] = [freshType(), freshType()];
      for (const type of [own, other]) for (const name of ['a', 'b']) await join(type, name);
      const invited = { agent_type: other, instance_id: `${other}-b` };
      const contextId = await initSession(client, { instance_id: `${own}-a` });
      await client.ok('/sessions/invite', { session_id: contextId, ...invited }, SessionInviteResponse);
      await expectAnswers({ contextId, ...to(other) }, `${other}-b`);
      await expectAnswers({ contextId }, `${own}-a`);
      const unbound = await initSession(client);
      await client.ok('/sessions/invite', { session_id: unbound, ...invited }, SessionInviteResponse);
      expect(await answerer({ contextId: unbound })).toBe(`${other}-b`);
    });

    test.each([false, true])(
      'whose agent is gone gets another of its type, and stays with it (it joined later: %s)',
      async (later) => {
        const [own, type] = [freshType(), freshType()];
        if (later) await join(own, 'a');
        const a = await join(type, 'a');
        const contextId = await initSession(client, { agent_type: later ? own : type });
        const options = { contextId, ...(later && to(type)) };
        await expectAnswers(options, `${type}-a`);
        const b = await join(type, 'b');
        await leave(a);
        await expectAnswers(options, `${type}-b`);
        await join(type, 'a');
        expect(await answerer(options)).toBe(`${type}-b`);
        await leave(b);
        expect(await answerer(options)).toBe(`${type}-a`);
        await join(type, 'b');
        expect(await answerer(options)).toBe(`${type}-a`);
        if (later) return expect(await answerer({ contextId })).toBe(`${own}-a`);
        expect([await counts(`${type}-a`), await counts(`${type}-b`)]).toEqual([
          [1, 0, 1],
          [1, 0],
        ]);
        expect(await joined(contextId)).toEqual([
          [`${type}-b`, 'failover'],
          [`${type}-a`, 'failover'],
        ]);
      },
    );
  });

  describe('a hosted agent', () => {
    /** Registers one where this status is answered to all, or nobody listens. @returns how many asked it, and its port */
    const hosted = async (agent_type: string, name: string, status?: number) => {
      const server = await httpServer((_request, response) => response.writeHead(status ?? 500).end());
      const port = status ? server.port : await freePort();
      const agent_card = { name: 'x', version: '1', skills: [] };
      const body = {
        instance_id: `${agent_type}-${name}`,
        agent_type,
        public_url: `http://127.0.0.1:${port}/`,
        agent_card,
      };
      await client.ok('/agents/register', body, AgentRegisterResponse);
      return { asked: () => server.requests.length, port };
    };

    test('that cannot be reached is passed over, and the session stays with the next', async () => {
      const type = freshType();
      await hosted(type, 'a');
      const contextId = await initSession(client, { instance_id: `${type}-a` });
      await join(type, 'b');
      await expectAnswers({ contextId }, `${type}-b`);
      const agents = [
        [`${type}-a`, 'init'],
        [`${type}-b`, 'failover'],
      ];
      expect(await joined(contextId)).toEqual(agents);
    });

    test('that was reached and failed is not passed over, and nobody else gets the message', async () => {
      const type = freshType();
      const { asked } = await hosted(type, 'a', 503);
      const contextId = await initSession(client, { instance_id: `${type}-a` });
      const other = await join(type, 'b');
      expect(await answerer({ contextId })).toBe('failed');
      expect(asked()).toBe(1);
      expect(dispatchesTo(other)).toEqual([]);
    });

    test('that a message names is not replaced: it gets the message when it is back, also after it was given up as unhealthy', async () => {
      const type = freshType();
      const { port } = await hosted(type, 'a');
      const other = await join(type, 'b');
      const task = await client.send('hello', { metadata: { instance_id: `${type}-a` }, blocking: false });
      await untilStatus(client, `${type}-a`, 'unhealthy');
      await httpServer(async (request, response) => {
        const chunks: Buffer[] = [];
        for await (const chunk of request) chunks.push(chunk as Buffer);
        const { id } = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString()) : { id: null };
        const result = { kind: 'message', messageId: 'm', role: 'agent', parts: [{ kind: 'text', text: 'back' }] };
        response.setHeader('content-type', 'application/json').end(JSON.stringify({ jsonrpc: '2.0', id, result }));
      }, port);
      expect((await client.untilState(task.id, 'completed')).assistant_output).toBe('back');
      expect(await agentRow(client, `${type}-a`)).toMatchObject({ status: 'available', consecutive_failures: 0 });
      expect(dispatchesTo(other)).toEqual([]);
    });
  });
});
