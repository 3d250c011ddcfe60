import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { Task } from '../../contracts/a2a/a2a.js';
import { AgentGetByIdResponse, SetDefaultTypeResponse } from '../../contracts/api/agents.js';
import { MessageCancelResponse } from '../../contracts/api/messages.js';
import { SessionCloseResponse, SessionInitResponse, SessionsInterruptResponse } from '../../contracts/api/sessions.js';
import { dispatched, echo, type RawAgent, silent } from '../setup/agent.js';
import type { ApiClient } from '../setup/platform/api-client.js';
import { joinAgent, registerAgent } from '../setup/platform/fleet.js';
import { PATHS } from '../setup/platform/paths.js';
import { type SharedPlatform, startPlatform } from '../setup/platform/platform.js';
import { until } from '../setup/until.js';

const QUEUE_WAIT_MS = 1_500;
/** Fits every test of this file but the one that goes to the bound. */
const MAX_IN_FLIGHT = 12;

let shared: SharedPlatform;
let client: ApiClient;

const join = (agentType: string, behaviour?: typeof echo, maxConcurrentSessions?: number): Promise<RawAgent> =>
  joinAgent(shared.platform, { instanceId: `${agentType}-1`, agentType, maxConcurrentSessions }, behaviour);
const to = (agentType: string) => ({ agent_type: agentType });

async function initSession(agentType: string): Promise<string> {
  return (await client.ok('/sessions/init', { agent_type: agentType }, SessionInitResponse)).session_id;
}

async function load(instanceId: string): Promise<number> {
  const { agent } = await client.ok('/agents/get_by_id', { instance_id: instanceId }, AgentGetByIdResponse);
  return agent.current_sessions;
}

describe.each(PATHS)('$way', ({ env }) => {
  beforeAll(async () => {
    shared = await startPlatform({
      ...env,
      QUEUE_WAIT_MS: String(QUEUE_WAIT_MS),
      TENANT_MAX_IN_FLIGHT: String(MAX_IN_FLIGHT),
    });
    client = shared.platform.client;
    await joinAgent(shared.platform, { instanceId: 'echo-1', agentType: 'echo', maxConcurrentSessions: 0 }, echo);
    return shared.dispose;
  });

  describe('sending', () => {
    test('a message in a session comes back completed with the agent’s answer', async () => {
      const sessionId = await initSession('echo');
      const task = await client.send('hello', { contextId: sessionId });
      expect(task.contextId).toBe(sessionId);
      expect(task.status.state).toBe('completed');
      const message = await client.message(task.id);
      expect(message).toMatchObject({ state: 'completed', assistant_output: 'echo: hello', instance_id: 'echo-1' });
      expect(message.session_id).toBe(sessionId);
    });

    test('a message without a session opens one of its own', async () => {
      const task = await client.send('alone', { metadata: to('echo') });
      expect(task.status.state).toBe('completed');
      expect(task.contextId).toMatch(/^ses_/);
    });

    test('a stream begins with the task, brings chunks in their order and ends after the final status', async () => {
      await join('chunky', (dispatch) => {
        for (let seq = 0; seq < 3; seq += 1) dispatch.chunk(seq, `part ${seq}`, seq === 2);
        dispatch.result('part 0part 1part 2', { chunk_count: 3 });
      });
      const events = [];
      for await (const event of client.stream('go', { metadata: to('chunky') })) events.push(event);
      expect(events[0]?.kind).toBe('task');
      const texts = events.flatMap((event) =>
        event.kind === 'artifact-update'
          ? event.artifact.parts.map((part) => (part.kind === 'text' ? part.text : ''))
          : [],
      );
      expect(texts.join('')).toContain('part 0part 1part 2');
      expect(events.at(-1)).toMatchObject({ kind: 'status-update', final: true, status: { state: 'completed' } });
    });

    test('the same messageId gives the same task, and it is dispatched once', async () => {
      const messageId = randomUUID();
      const first = await client.send('once', { messageId, metadata: to('echo') });
      const second = await client.send('once', { messageId, metadata: to('echo') });
      expect(second.id).toBe(first.id);
      const dispatches = await shared.database.query('SELECT 1 FROM dispatches WHERE message_id = $1', [first.id]);
      expect(dispatches).toHaveLength(1);
    });

    test('twenty sends of one messageId at the same time make one message', async () => {
      const messageId = randomUUID();
      const sends = Array.from({ length: 20 }, () => client.send('race', { messageId, metadata: to('echo') }));
      const ids = new Set((await Promise.all(sends)).map((task) => task.id));
      expect(ids.size).toBe(1);
    });

    test('the same messageId with other content is refused', async () => {
      const messageId = randomUUID();
      await client.send('this', { messageId, metadata: to('echo') });
      const { status, error } = await client.rpc('that', { messageId, metadata: to('echo') });
      expect(status).toBe(200);
      expect(error?.code).toBe(-32602);
      expect(JSON.stringify(error?.data)).toContain('IDEMPOTENCY_MISMATCH');
    });

    test('an agent’s error ends the message as failed with its code', async () => {
      await join('failing', (dispatch) => dispatch.error('HANDLER_ERROR', 'it broke'));
      const task = await client.send('try', { metadata: to('failing') });
      expect(task.status.state).toBe('failed');
      expect((await client.message(task.id)).error).toEqual({ code: 'HANDLER_ERROR', message: 'it broke' });
    });

    test('an agent that does not answer by the deadline fails the message with DEADLINE_EXCEEDED', async () => {
      await join('late', silent);
      const task = await client.send('now', { metadata: { ...to('late'), deadline_ms: 700 } });
      expect(task.status.state).toBe('failed');
      expect((await client.message(task.id)).error?.code).toBe('DEADLINE_EXCEEDED');
    });

    test('while its agents are away a message waits as submitted, then fails and says whom it waited for', async () => {
      for (const instanceId of ['away-1', 'away-2']) await registerAgent(client, { instanceId, agentType: 'away' });
      const waiting = await client.send('anyone?', { metadata: to('away'), blocking: false });
      expect(waiting).toMatchObject({ status: { state: 'submitted' }, metadata: { agent_type: 'away' } });
      const message = await client.untilState(waiting.id, 'failed');
      expect(message).toMatchObject({
        agent_type: 'away',
        instance_id: null,
        error: {
          code: 'TARGET_UNAVAILABLE',
          message: expect.stringMatching(/^Nobody took the message within \d.*: 2 offline\. Connect it again\.$/),
        },
      });
      expect(message.duration_ms).toBeGreaterThanOrEqual(QUEUE_WAIT_MS);
    });

    test('while its agent is full a message waits, and says so when it fails', async () => {
      const agent = await join('narrow', silent, 1);
      const held = await client.send('hold', { metadata: to('narrow'), blocking: false });
      const dispatch = dispatched(agent, await agent.nextOfType('dispatch'));
      const task = await client.send('me too', { metadata: { instance_id: 'narrow-1' } });
      expect(task.metadata?.error).toMatchObject({
        code: 'TARGET_UNAVAILABLE',
        message: expect.stringMatching(/the agent narrow-1: 1 full\. .*max_concurrent_sessions\.$/),
      });
      dispatch.result('done');
      await client.untilState(held.id, 'completed');
    });

    test('a message for a type that nobody ever registered fails at once, and names those that there are', async () => {
      const task = await client.send('anyone?', { metadata: to('nobody') });
      expect(task.status.state).toBe('failed');
      const { error, agent_type } = await client.message(task.id);
      expect(agent_type).toBe('nobody');
      expect(error).toMatchObject({
        code: 'TARGET_UNAVAILABLE',
        message: expect.stringMatching(/^No agent of the type nobody is registered\. Registered types: .*\becho\b/),
      });
    });

    test('a message that names no target goes to the default type of its tenant', async () => {
      expect((await client.rpc('hello')).error).toMatchObject({ code: -32602, data: { code: 'TARGET_REQUIRED' } });
      await client.ok('/agents/set_default', { agent_type: 'echo' }, SetDefaultTypeResponse);
      const task = await client.send('hello');
      expect(task).toMatchObject({ status: { state: 'completed' }, metadata: { instance_id: 'echo-1' } });
      expect((await client.send('again', { contextId: task.contextId })).metadata?.instance_id).toBe('echo-1');
      await client.ok('/agents/set_default', { agent_type: null }, SetDefaultTypeResponse);
    });

    test('a message that waits for an agent goes to the one that joins', async () => {
      await registerAgent(client, { instanceId: 'joiner-1', agentType: 'joiner' });
      const waiting = await client.send('soon', { metadata: to('joiner'), blocking: false });
      await join('joiner', echo);
      expect((await client.untilState(waiting.id, 'completed')).assistant_output).toBe('echo: soon');
    });
  });

  describe('canceling', () => {
    test('a cancel ends the message and reaches the agent at once', async () => {
      const agent = await join('holder');
      const task = await client.send('hold', { metadata: to('holder'), blocking: false });
      const dispatch = dispatched(agent, await agent.nextOfType('dispatch'));
      await client.ok('/messages/cancel', { message_id: task.id, reason: 'changed my mind' }, MessageCancelResponse);
      expect((await client.message(task.id)).state).toBe('canceled');
      const error = await agent.nextOfType('error');
      expect(error).toMatchObject({ in_reply_to: dispatch.frame.id, payload: { code: 'CANCELED' } });

      dispatch.result('too late');
      const late = await agent.nextOfType('error');
      expect(late.payload.code).toBe('DISPATCH_ALREADY_TERMINAL');
      expect((await client.message(task.id)).state).toBe('canceled');
      expect(await client.failure('/messages/cancel', { message_id: task.id })).toBe('409 ALREADY_TERMINAL');
    });

    test('an interrupt cancels what a session has in flight, and the session stays usable', async () => {
      const agent = await join('busy');
      const sessionId = await initSession('busy');
      const task = await client.send('one', { contextId: sessionId, blocking: false });
      await agent.nextOfType('dispatch');
      const interrupted = await client.ok('/sessions/interrupt', { ids: [sessionId] }, SessionsInterruptResponse);
      expect(interrupted).toMatchObject({ requested: 1, interrupted: 1, session_ids: [sessionId] });
      expect((await client.message(task.id)).state).toBe('canceled');
      await agent.next((frame) => frame.type === 'error' && frame.payload.code === 'CANCELED');

      const again = client.send('two', { contextId: sessionId });
      dispatched(agent, await agent.nextOfType('dispatch')).result('done');
      expect((await again).status.state).toBe('completed');
    });

    test('an interrupt does not count sessions that have ended', async () => {
      await join('over', echo);
      const ended = await initSession('over');
      await client.ok('/sessions/close', { session_id: ended }, SessionCloseResponse);
      const interrupt = (ids: string[]) => client.ok('/sessions/interrupt', { ids }, SessionsInterruptResponse);
      expect(await interrupt([ended])).toMatchObject({ requested: 1, interrupted: 0, session_ids: [] });
      const open = await initSession('over');
      expect(await interrupt([ended, open])).toMatchObject({ requested: 2, interrupted: 1, session_ids: [open] });
      expect(await client.failure('/sessions/interrupt', { ids: ['ses_unknown'] })).toBe('404 NOT_FOUND');
    });

    test('closing a session cancels what it has in flight and takes no more messages', async () => {
      const agent = await join('closing');
      const sessionId = await initSession('closing');
      const task = await client.send('work', { contextId: sessionId, blocking: false });
      await agent.nextOfType('dispatch');
      const closed = await client.ok('/sessions/close', { session_id: sessionId }, SessionCloseResponse);
      expect(closed.status).toBe('completed');
      expect((await client.message(task.id)).state).toBe('canceled');
      expect(await client.failure('/sessions/close', { session_id: sessionId })).toBe('409 SESSION_CLOSED');
      const { error } = await client.rpc('more', { contextId: sessionId });
      expect(error?.code).toBe(-32004);
      expect(JSON.stringify(error?.data)).toContain('SESSION_CLOSED');
      expect(await load('closing-1')).toBe(0);
    });
  });

  describe('bounds', () => {
    test('a full agent refuses another session, and its count returns to 0', async () => {
      await join('narrow', echo, 1);
      const sessionId = await initSession('narrow');
      expect(await load('narrow-1')).toBe(1);
      expect(await client.failure('/sessions/init', { instance_id: 'narrow-1' })).toBe('409 AGENT_AT_CAPACITY');
      await client.ok('/sessions/close', { session_id: sessionId }, SessionCloseResponse);
      expect(await load('narrow-1')).toBe(0);
      await client.send('implicit', { metadata: to('narrow') });
      expect(await load('narrow-1')).toBe(0);
    });

    test('beyond the tenant’s bound of messages in flight a send is 429, and taken again once one has ended', async () => {
      await join('sink', silent, 0);
      const held: string[] = [];
      const refused = await until(async () => {
        const answer = await client.rpc('fill', { metadata: to('sink'), blocking: false });
        if (answer.status === 429) return answer;
        held.push(Task.parse(answer.result).id);
        return undefined;
      });
      expect(refused.body).toMatchObject({ code: 'RATE_LIMITED' });
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(held.length).toBeGreaterThan(1);
      expect(held.length).toBeLessThanOrEqual(MAX_IN_FLIGHT);
      for (const id of held) await client.ok('/messages/cancel', { message_id: id }, MessageCancelResponse);
      expect((await client.send('again', { metadata: to('echo') })).status.state).toBe('completed');
    });
  });
});
