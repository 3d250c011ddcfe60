// @module-tag once
import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { AgentGetByIdResponse } from '../../contracts/api/agents.js';
import { MessageCancelResponse, MessagesPendingResponse, ResolveResponse } from '../../contracts/api/messages.js';
import { SessionCloseResponse, SessionsInterruptResponse } from '../../contracts/api/sessions.js';
import { echo } from '../setup/agent.js';
import { until } from '../setup/until.js';
import { byText, dispatchesTo, fleetOn, hold, initSession, to } from './fixture.js';

const { client, database, join, dispatchStates } = await fleetOn();

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

test('the same messageId gives the same task, which is dispatched once', async () => {
  await join('once', echo);
  const options = { messageId: randomUUID(), ...to('once') };
  const first = await client.send('once', options);
  const repeats = await Promise.all([1, 2, 3].map(() => client.send('once', options)));
  expect(repeats.map(({ id }) => id)).toEqual([first.id, first.id, first.id]);
  expect(await dispatchStates(first.id)).toEqual(['completed']);
});

test('a message that waits for a busy agent goes to it with its next report', async () => {
  const agent = await join('reporting', echo);
  agent.send('heartbeat', { status: 'busy' });
  const status = async () => {
    const { agent: row } = await client.ok('/agents/get_by_id', { instance_id: 'reporting-1' }, AgentGetByIdResponse);
    return row.status;
  };
  await until(async () => (await status()) === 'busy', { what: 'the report' });
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
