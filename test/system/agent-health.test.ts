import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { AgentGetByIdResponse, AgentRegisterResponse } from '../../contracts/api/agents.js';
import { MessagesGetResponse, ResolveResponse } from '../../contracts/api/messages.js';
import { SessionInitResponse } from '../../contracts/api/sessions.js';
import { GetEventsResponse } from '../../contracts/api/telemetry.js';
import { freePort } from '../../embedded/free-port.js';
import { httpServer } from '../runtime/loopback-server.js';
import { type Behaviour, dispatched, echo, type RawAgent, silent } from '../setup/agent.js';
import type { ApiClient } from '../setup/platform/api-client.js';
import { joinAgent } from '../setup/platform/fleet.js';
import { PATHS } from '../setup/platform/paths.js';
import { type SharedPlatform, startPlatform } from '../setup/platform/platform.js';
import { until } from '../setup/until.js';

let shared: SharedPlatform;
let client: ApiClient;

const fresh = () => `type-${randomUUID().slice(0, 8)}`;
const agentRow = async (instance_id: string) =>
  (await client.ok('/agents/get_by_id', { instance_id }, AgentGetByIdResponse)).agent;
const join = (agentType: string, name: string, behaviour: Behaviour, max = 0): Promise<RawAgent> =>
  joinAgent(shared.platform, { instanceId: `${agentType}-${name}`, agentType, maxConcurrentSessions: max }, behaviour);
const to = (agent_type: string, more: object = {}) => ({ metadata: { agent_type, ...more } });

describe.each(PATHS)('$way', ({ env }) => {
  beforeAll(async () => {
    shared = await startPlatform({ ...env, OUTBOUND_ALLOW_CIDRS: '127.0.0.0/8', QUEUE_WAIT_MS: '12000' });
    client = shared.platform.client;
    return shared.dispose;
  });

  describe('a hosted agent that refuses connections', () => {
    const answer = { kind: 'message', messageId: 'm1', role: 'agent', parts: [{ kind: 'text', text: 'back' }] };

    test.each([
      ['names', (type: string) => ({ metadata: { instance_id: `${type}-a` } })],
      ['names the type of', (type: string) => to(type)],
    ])(
      'gets the message that %s it as soon as it is back, also when it was given up as unhealthy',
      async (_, target) => {
        const type = fresh();
        const port = await freePort();
        const body = {
          instance_id: `${type}-a`,
          agent_type: type,
          public_url: `http://127.0.0.1:${port}/`,
          agent_card: { name: 'x', version: '1', skills: [] },
        };
        await client.ok('/agents/register', body, AgentRegisterResponse);
        const task = await client.send('hello', { ...target(type), blocking: false });
        await until(async () => (await agentRow(`${type}-a`)).status === 'unhealthy', { what: 'three refusals' });
        await httpServer((request, response) => {
          const chunks: Buffer[] = [];
          request.on('data', (chunk: Buffer) => chunks.push(chunk));
          request.on('end', () => {
            const id = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString()).id : null;
            response.writeHead(200, { 'content-type': 'application/json' });
            response.end(JSON.stringify({ jsonrpc: '2.0', id, result: answer }));
          });
        }, port);
        expect((await client.untilState(task.id, 'completed')).assistant_output).toBe('back');
        expect(await agentRow(`${type}-a`)).toMatchObject({ status: 'available', consecutive_failures: 0 });
      },
    );
  });

  describe('an agent that reports busy', () => {
    test('gets no new work until its next report, and then what has waited for it', async () => {
      const type = fresh();
      const agent = await join(type, 'a', echo);
      agent.send('heartbeat', { status: 'busy' });
      await until(async () => (await agentRow(`${type}-a`)).status === 'busy');
      const waiting = await client.send('hello', { metadata: { instance_id: `${type}-a` }, blocking: false });
      await until(async () => {
        const [row] = await shared.database.query('SELECT unrouted_since FROM running_messages WHERE message_id = $1', [
          waiting.id,
        ]);
        return row?.unrouted_since;
      });
      const other = await join(type, 'b', echo);
      for (let sent = 0; sent < 3; sent += 1) {
        expect((await client.send('hello', to(type))).metadata?.instance_id).toBe(`${type}-b`);
      }
      other.close();
      agent.send('heartbeat', { status: 'available' });
      await client.untilState(waiting.id, 'completed');
      await until(async () => (await agentRow(`${type}-b`)).status === 'offline');
      expect((await client.send('hello', to(type))).metadata?.instance_id).toBe(`${type}-a`);
    });

    test('or as many sessions as it may have, gets none either', async () => {
      const type = fresh();
      const agent = await join(type, 'a', echo, 2);
      await join(type, 'b', echo);
      agent.send('heartbeat', { current_sessions: 2 });
      await until(async () => (await agentRow(`${type}-a`)).current_sessions === 2);
      expect((await agentRow(`${type}-a`)).status).toBe('busy');
      for (let sent = 0; sent < 3; sent += 1) {
        expect((await client.send('hello', to(type))).metadata?.instance_id).toBe(`${type}-b`);
      }
    });
  });

  test('three deadlines in a row take a connected agent off the routes, and its next report brings it back', async () => {
    const type = fresh();
    const agent = await join(type, 'a', silent);
    for (let sent = 0; sent < 3; sent += 1) {
      const task = await client.send('hello', to(type, { deadline_ms: 300 }));
      expect(task.status.state).toBe('failed');
    }
    expect(await agentRow(`${type}-a`)).toMatchObject({ status: 'unhealthy', consecutive_failures: 3 });
    const query = { type: 'agent.health_changed', instance_id: `${type}-a` };
    const { events } = await client.ok('/telemetry/get_events', query, GetEventsResponse);
    expect(events.map(({ event }) => event.status)).toEqual(['unhealthy', 'available']);
    const waiting = await client.send('hello', { ...to(type), blocking: false });
    agent.send('heartbeat', { status: 'available' });
    const frame = await agent.next(({ type: of, payload }) => {
      const { message_id } = (payload.session_context ?? {}) as { message_id?: string };
      return of === 'dispatch' && message_id === waiting.id;
    });
    dispatched(agent, frame).result('done');
    await client.untilState(waiting.id, 'completed');
  });

  test('a decision goes ahead of the work that waits for its agent', async () => {
    const type = fresh();
    const order: string[] = [];
    const agent = await join(type, 'a', silent, 1);
    const next = async () => {
      const dispatch = dispatched(agent, await agent.nextOfType('dispatch'));
      order.push(dispatch.text);
      return dispatch;
    };
    const { session_id } = await client.ok('/sessions/init', { agent_type: type }, SessionInitResponse);
    const asking = await client.send('asking', { contextId: session_id, blocking: false });
    (await next()).ask({ kind: 'confirmation', title: 'Really?' });
    await client.untilState(asking.id, 'input-required');
    const running = await client.send('running', { ...to(type), blocking: false });
    const dispatch = await next();
    const waiting = await client.send('waiting', { ...to(type), blocking: false });
    await client.ok(`/messages/${asking.id}/resolve`, { resolution: 'confirmed' }, ResolveResponse);
    const isUnrouted = async (id: string) =>
      (await shared.database.query('SELECT unrouted_since FROM running_messages WHERE message_id = $1', [id]))[0]
        ?.unrouted_since;
    for (const { id } of [waiting, asking]) await until(() => isUnrouted(id));
    dispatch.result('done');
    (await next()).result('decided');
    await client.untilState(asking.id, 'completed');
    await client.post('/sessions/close', { session_id });
    (await next()).result('done');
    for (const { id } of [running, waiting]) await client.untilState(id, 'completed');
    expect(order).toEqual(['asking', 'running', 'asking', 'waiting']);
  });

  describe('why a message failed', () => {
    /** The lines of the log that tell of a message's end. */
    const linesOf = (messageId: string) =>
      shared.platform
        .log()
        .split('\n')
        .filter((line) => line.includes(messageId) && /"message (failed|canceled)"/.test(line))
        .map((line) => JSON.parse(line) as Record<string, unknown>);

    test('is one line of the log with all ids, whoever ended it', async () => {
      const type = fresh();
      const agent = await join(type, 'a', (dispatch) => dispatch.error('HANDLER_ERROR', 'no luck'));
      const failed = await client.send('hello', to(type));
      expect(failed.status.state).toBe('failed');
      const [line] = await until(() => (linesOf(failed.id).length > 0 ? linesOf(failed.id) : undefined));
      const { tenant_id } = shared.platform.devJson();
      expect(line).toMatchObject({
        msg: 'message failed',
        tenant_id,
        session_id: failed.contextId,
        dispatch_id: expect.stringMatching(/^dsp_/),
        workflow_id: `message:${tenant_id}:${failed.id}`,
        agent_type: type,
        instance_id: `${type}-a`,
        code: 'HANDLER_ERROR',
      });
      agent.close();
      await until(async () => (await agentRow(`${type}-a`)).status === 'offline');
      const canceled = await client.send('hello', { ...to(type), blocking: false });
      await client.post('/messages/cancel', { message_id: canceled.id });
      await until(() => linesOf(canceled.id).length > 0);
      expect([linesOf(failed.id).length, linesOf(canceled.id).length]).toEqual([1, 1]);
      const { messages } = await client.ok('/messages/get', { agent_type: type }, MessagesGetResponse);
      expect(messages.map(({ message_id }) => message_id)).toEqual([canceled.id, failed.id]);
    });

    test('stands in the Temporal UI: result, current details and the filter FleetError', async () => {
      const type = fresh();
      await join(type, 'a', silent);
      // Longer than the fast path keeps a message to itself.
      const task = await client.send('hello', to(type, { deadline_ms: 4_000 }));
      expect(task.status.state).toBe('failed');
      const { tenant_id } = shared.platform.devJson();
      const workflowId = `message:${tenant_id}:${task.id}`;
      const handle = shared.temporal.workflow.getHandle(workflowId);
      expect(await handle.result()).toEqual({
        state: 'failed',
        error: { code: 'DEADLINE_EXCEEDED', message: 'The agent did not answer in time.' },
      });
      const { currentDetails } = await handle.query<{ currentDetails?: string }>('__temporal_workflow_metadata');
      expect(currentDetails).toMatch(/failed.*DEADLINE_EXCEEDED.*did not answer in time/);
      const query = `FleetError = "DEADLINE_EXCEEDED" AND FleetAgentType = "${type}"`;
      const found = await until(async () => {
        const ids: string[] = [];
        for await (const info of shared.temporal.workflow.list({ query })) ids.push(info.workflowId);
        return ids.length > 0 ? ids : undefined;
      });
      expect(found).toEqual([workflowId]);
      expect(linesOf(task.id)).toHaveLength(1);
    });

    test('stands there for a message that found no agent, too', async () => {
      const type = fresh();
      (await join(type, 'a', echo)).send('heartbeat', { status: 'busy' });
      await until(async () => (await agentRow(`${type}-a`)).status === 'busy');
      const task = await client.send('hello', to(type));
      expect(task.status.state).toBe('failed');
      const { tenant_id } = shared.platform.devJson();
      const handle = shared.temporal.workflow.getHandle(`message:${tenant_id}:${task.id}`);
      expect(await handle.result()).toMatchObject({ state: 'failed', error: { code: 'TARGET_UNAVAILABLE' } });
      await until(() => linesOf(task.id).length > 0);
      expect(linesOf(task.id)).toMatchObject([{ code: 'TARGET_UNAVAILABLE' }]);
    });
  });
});
