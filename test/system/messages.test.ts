// @module-tag once
import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { HealthResponse } from '../../contracts/api/health.js';
import { MessageCancelResponse, MessagesPendingResponse, ResolveResponse } from '../../contracts/api/messages.js';
import { SessionCloseResponse, SessionsInterruptResponse } from '../../contracts/api/sessions.js';
import { type Behaviour, dispatched, echo, silent } from '../setup/agent.js';
import { openSocket, registerAgent } from '../setup/platform/fleet.js';
import { until } from '../setup/until.js';
import { agentRow, byText, dispatchesTo, fleetOn, hold, initSession, to, untilStatus } from './fixture.js';

const { platform, client, database, join, dispatchStates } = await fleetOn();

test('health says that every part is there', async () => {
  const { status, body } = await client.get('/health');
  const checks = { database: 'ok', temporal: 'ok', mesh: 'ok' };
  expect([status, HealthResponse.parse(body)]).toMatchObject([200, { status: 'ok', checks }]);
});

test('a message is answered, in its session or in one that it opens', async () => {
  await join('echo', echo);
  const sessionId = await initSession(client, { agent_type: 'echo' });
  const task = await client.send('hello', { contextId: sessionId });
  expect(task).toMatchObject({ contextId: sessionId, status: { state: 'completed' } });
  const record = {
    state: 'completed',
    session_id: sessionId,
    assistant_output: 'echo: hello',
    instance_id: 'echo-1',
  };
  expect(await client.message(task.id)).toMatchObject(record);
  const alone = await client.send('alone', to('echo'));
  expect(alone).toMatchObject({ contextId: expect.stringMatching(/^ses_/), status: { state: 'completed' } });
});

test('a stream begins with the task, brings chunks in their order and ends after the final status', async () => {
  await join('chunky', (dispatch) => {
    for (let seq = 0; seq < 3; seq += 1) dispatch.chunk(seq, `part ${seq}`, seq === 2);
    dispatch.result('part 0part 1part 2', { chunk_count: 3 });
  });
  const events = [];
  for await (const event of client.stream('go', to('chunky'))) events.push(event);
  expect(events[0]?.kind).toBe('task');
  const parts = events.flatMap((event) => (event.kind === 'artifact-update' ? event.artifact.parts : []));
  expect(parts.map((part) => (part.kind === 'text' ? part.text : '')).join('')).toBe('part 0part 1part 2');
  expect(events.at(-1)).toMatchObject({ kind: 'status-update', final: true, status: { state: 'completed' } });
});

test('the same messageId gives the same task, which is dispatched once', async () => {
  await join('once', echo);
  const options = { messageId: randomUUID(), ...to('once') };
  const first = await client.send('once', options);
  const repeats = await Promise.all([1, 2, 3].map(() => client.send('once', options)));
  expect(repeats.map(({ id }) => id)).toEqual([first.id, first.id, first.id]);
  expect(await dispatchStates(first.id)).toEqual(['completed']);
});

test.each<[string, Behaviour, number | undefined, object]>([
  ['HANDLER_ERROR', (dispatch) => dispatch.error('HANDLER_ERROR', 'it broke'), undefined, { message: 'it broke' }],
  ['DEADLINE_EXCEEDED', silent, 300, {}],
])(
  'a message that its agent fails, or does not answer in time, has failed with %s',
  async (code, does, limit, more) => {
    const type = code.toLowerCase();
    await join(type, does);
    const task = await client.send('try', to(type, { deadline_ms: limit }));
    expect(task.status.state).toBe('failed');
    expect((await client.message(task.id)).error).toMatchObject({ code, ...more });
  },
);

test('a message that waits for an agent goes to the one that joins', async () => {
  await registerAgent(client, { instanceId: 'joiner-1', agentType: 'joiner' });
  const waiting = await client.send('soon', { ...to('joiner'), blocking: false });
  expect(waiting).toMatchObject({ status: { state: 'submitted' }, metadata: { agent_type: 'joiner' } });
  await join('joiner', echo);
  expect((await client.untilState(waiting.id, 'completed')).assistant_output).toBe('echo: soon');
});

test('a message that waits for a busy agent goes to it with its next report', async () => {
  const agent = await join('reporting', echo);
  agent.send('heartbeat', { status: 'busy' });
  await untilStatus(client, 'reporting-1', 'busy');
  const waiting = await client.send('soon', { metadata: { instance_id: 'reporting-1' }, blocking: false });
  const unrouted = 'SELECT 1 FROM running_messages WHERE message_id = $1 AND unrouted_since IS NOT NULL';
  await until(async () => (await database.query(unrouted, [waiting.id])).length > 0, { what: 'its wait' });
  expect(dispatchesTo(agent)).toEqual([]);
  agent.send('heartbeat', { status: 'available' });
  await client.untilState(waiting.id, 'completed');
});

test('what an agent asks is pending until it is resolved, once; the agent then goes on', async () => {
  await join('asking', byText());
  const task = await client.send('ask', to('asking'));
  expect(task.status.state).toBe('input-required');
  const { messages } = await client.ok('/messages/pending', { session_id: task.contextId }, MessagesPendingResponse);
  const input_request = { kind: 'confirmation', source: 'agent', title: 'Really?' };
  expect(messages).toMatchObject([{ message_id: task.id, input_request }]);
  const path = `/messages/${task.id}/resolve`;
  const resolved = await client.ok(path, { resolution: 'confirmed' }, ResolveResponse);
  expect(resolved).toMatchObject({ message_id: task.id, resolution: 'confirmed' });
  expect((await client.untilState(task.id, 'completed')).assistant_output).toBe('ask: confirmed');
  expect(await client.failure(path, { resolution: 'confirmed' })).toMatch(/^409 /);
});

test('a cancel ends the message and reaches the agent at once, whose answer is too late', async () => {
  const agent = await join('holder');
  const { task, dispatch } = await hold(client, agent, to('holder'));
  await client.ok('/messages/cancel', { message_id: task.id, reason: 'changed my mind' }, MessageCancelResponse);
  expect((await client.message(task.id)).state).toBe('canceled');
  const notice = await agent.nextOfType('error');
  expect(notice).toMatchObject({ in_reply_to: dispatch.frame.id, payload: { code: 'CANCELED' } });
  dispatch.result('too late');
  expect((await agent.nextOfType('error')).payload.code).toBe('DISPATCH_ALREADY_TERMINAL');
  expect((await client.message(task.id)).state).toBe('canceled');
  expect(await client.failure('/messages/cancel', { message_id: task.id })).toBe('409 ALREADY_TERMINAL');
});

test('an interrupt cancels what a session has in flight, which stays usable; sessions that have ended do not count', async () => {
  const agent = await join('busy');
  const [ended, open] = [await initSession(client), await initSession(client, { agent_type: 'busy' })];
  await client.ok('/sessions/close', { session_id: ended }, SessionCloseResponse);
  const { task } = await hold(client, agent, { contextId: open });
  const answer = await client.ok('/sessions/interrupt', { ids: [ended, open] }, SessionsInterruptResponse);
  expect(answer).toMatchObject({ requested: 2, interrupted: 1, session_ids: [open] });
  expect((await client.message(task.id)).state).toBe('canceled');
  await agent.next((frame) => frame.type === 'error' && frame.payload.code === 'CANCELED');
  const again = await hold(client, agent, { contextId: open });
  again.dispatch.result('done');
  await client.untilState(again.task.id, 'completed');
  expect(await client.failure('/sessions/interrupt', { ids: ['ses_unknown'] })).toBe('404 NOT_FOUND');
});

test('a session that is closed cancels what it has in flight, takes no more messages and frees its agent', async () => {
  const agent = await join('closing', undefined, 1);
  const sessionId = await initSession(client, { agent_type: 'closing', reserve: true });
  expect((await agentRow(client, 'closing-1')).current_sessions).toBe(1);
  expect(await client.failure('/sessions/init', { instance_id: 'closing-1', reserve: true })).toBe(
    '409 AGENT_AT_CAPACITY',
  );
  const { task } = await hold(client, agent, { contextId: sessionId });
  const closed = await client.ok('/sessions/close', { session_id: sessionId }, SessionCloseResponse);
  expect(closed.status).toBe('completed');
  expect((await client.message(task.id)).state).toBe('canceled');
  expect(await client.failure('/sessions/close', { session_id: sessionId })).toBe('409 SESSION_CLOSED');
  const { error } = await client.rpc('more', { contextId: sessionId });
  expect(error).toMatchObject({ code: -32004, data: { code: 'SESSION_CLOSED' } });
  expect((await agentRow(client, 'closing-1')).current_sessions).toBe(0);
});

test('an agent that lost its socket resumes with its token, and is sent what it does not hold', async () => {
  const agent = await join('steady');
  const [resent, kept] = [await hold(client, agent, to('steady')), await hold(client, agent, to('steady'))];
  const resume_token = agent.received[0]?.payload.resume_token;
  agent.kill();
  await agent.closed;
  const back = await openSocket(platform, 'steady-1');
  const inflight = [{ dispatch_id: kept.dispatch.payload.dispatch_id, last_seq: -1 }];
  const welcome = await back.hello({ resume_token, inflight });
  const replayed_dispatches = [resent.dispatch.payload.dispatch_id];
  expect(welcome).toMatchObject({ resumed: true, replayed_dispatches });
  const replay = dispatched(back, await back.nextOfType('dispatch'));
  expect(replay.frame.id).toBe(resent.dispatch.frame.id);
  replay.result('after all');
  for (const answer of ['kept', 'second', 'third']) dispatched(back, kept.dispatch.frame).result(answer);
  expect((await client.untilState(resent.task.id, 'completed')).assistant_output).toBe('after all');
  expect((await client.untilState(kept.task.id, 'completed')).assistant_output).toBe('kept');
  const { session_id } = await client.message(kept.task.id);
  const rows = await database.query("SELECT 1 FROM events WHERE session_id = $1 AND event_type = 'message.completed'", [
    session_id,
  ]);
  expect(rows).toHaveLength(1);
});

test('an agent that comes back without its token has lost its message by then, and answers nobody any more', async () => {
  const agent = await join('amnesiac');
  const { task, dispatch } = await hold(client, agent, to('amnesiac'));
  agent.kill();
  await agent.closed;
  const back = await openSocket(platform, 'amnesiac-1');
  expect((await back.hello()).resumed).toBe(false);
  const { state, error } = await client.message(task.id);
  expect([state, error?.code]).toEqual(['failed', 'AGENT_DISCONNECTED']);
  dispatched(back, dispatch.frame).result('too late');
  expect((await back.nextOfType('error')).payload.code).toMatch(/^(DISPATCH_ALREADY_TERMINAL|UNKNOWN_DISPATCH)$/);
  expect((await client.message(task.id)).state).toBe('failed');
});
