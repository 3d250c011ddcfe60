// @module-tag once
import { expect, test } from 'vitest';
import { AgentConnectionResponse } from '../../contracts/api/agents.js';
import { GetApprovalsResponse } from '../../contracts/api/policies/approvals.js';
import { SessionGetByIdResponse } from '../../contracts/api/sessions.js';
import { echo } from '../setup/agent.js';
import { fleetOn, initSession, to } from '../system/fixture.js';
import { operatorWith, tablesWith } from './eraser-fixture.js';

const { client, everyTenant, tenant_id, operatorEnv, join } = await fleetOn();
await join('echo', echo);
await join('asking', (dispatch) =>
  dispatch.ask({ kind: 'confirmation', title: 'Really?', prompt: 'private question' }),
);

const fleet = operatorWith(operatorEnv);
const erase = (...args: string[]) => fleet(...args, '--tenant', tenant_id);
const send = (text: string, type = 'echo', contextId?: string) =>
  client.send(text, { ...to(type), ...(contextId && { contextId }) });
/** No table has any of these any more. */
const expectGone = async (...texts: (string | undefined)[]) => {
  for (const text of texts) expect(await tablesWith(everyTenant, text ?? '')).toEqual([]);
};
const sessionOf = async (session_id: string) =>
  (await client.ok('/sessions/get_by_id', { session_id }, SessionGetByIdResponse)).session;

test('a message is erased with all that belongs to it; others of its session stay, and totals keep what they counted', async () => {
  const gone = await send('one secret word');
  const kept = await send('another word', 'echo', gone.contextId);
  const succeeded = async () => {
    const answer = await client.ok('/agents/get_connection', { instance_id: 'echo-1' }, AgentConnectionResponse);
    return answer.connection.dispatches_succeeded;
  };
  expect(await succeeded()).toBe(2);
  const { finished_at, removed } = await erase('messages', 'erase', '--message', gone.id);
  expect(finished_at).not.toBeNull();
  expect(removed).toMatchObject({ messages: 1, dispatches: 1, idempotency_keys: 1 });
  expect(removed.event_groups).toBeGreaterThanOrEqual(2);
  await expectGone(gone.id);
  expect(await client.failure('/messages/get_by_id', { message_id: gone.id })).toMatch(/^404/);
  expect((await client.message(kept.id)).state).toBe('completed');
  expect(await succeeded()).toBe(2);
});

test('a session ends, its message that waits for a human is canceled, and both go with its workflow', async () => {
  const waiting = await send('waiting secret', 'asking');
  const { removed } = await erase('sessions', 'erase', '--session', String(waiting.contextId));
  expect(removed).toMatchObject({ sessions: 1, messages: 1, input_requests: 1, workflows: 1 });
  await expectGone(waiting.id, waiting.contextId);
});

test('what is selected goes: sessions of a user, messages of a session or of a user; of decisions who and when stays', async () => {
  const userOf = (name: string) => `${name}@${tenant_id}`;
  const init = (name: string) => initSession(client, { user_id: userOf(name), agent_type: 'echo' });
  const [ada, bob, eve, joe] = [await init('ada'), await init('bob'), await init('eve'), await init('joe')];
  for (const session of [ada, bob]) await send('hello', 'echo', session);
  const [ofEve, ofJoe] = [await send('of eve', 'echo', eve), await send('of joe', 'echo', joe)];
  const { id } = await send('to be decided', 'asking');
  const comment = `private of ${tenant_id}`;
  expect((await client.post(`/messages/${id}/resolve`, { resolution: 'confirmed', comment })).status).toBe(200);
  const trail = async () =>
    (await client.ok('/messages/get_approvals', { message_id: id }, GetApprovalsResponse)).approvals;
  const [decision, ...others] = await trail();
  expect([decision, ...others]).toMatchObject([{ comment, ip: '127.0.0.1', resolution: 'confirmed' }]);

  const reports = await Promise.all([
    erase('sessions', 'erase', '--user', userOf('ada')),
    erase('messages', 'erase', '--session', eve),
    erase('messages', 'erase', '--user', userOf('joe')),
    erase('messages', 'erase', '--message', id),
  ]);
  expect(reports.map(({ removed }) => removed)).toMatchObject([
    { sessions: 1, messages: 1 },
    { messages: 1 },
    { messages: 1 },
    { messages: 1, input_decisions: 1 },
  ]);
  await expectGone(userOf('ada'), ada, ofEve.id, ofJoe.id, comment);
  expect((await sessionOf(bob)).status).toBe('active');
  expect(await sessionOf(eve)).toMatchObject({ status: 'active', user_id: userOf('eve') });
  const { comment: _, ip: __, title: ___, ...kept } = decision ?? {};
  const text = expect.any(String);
  // The message was at work, and canceled first.
  expect(await trail()).toEqual([{ ...kept, outcome: { state: 'failed', error_code: 'CANCELED', at: text } }]);
  expect(kept).toMatchObject({ principal: { type: 'credential' }, digest: text, decided_at: text });
});

test('by age only what is over goes: sessions that have ended with their messages, and messages', async () => {
  const [ended, active] = [(await send('in a session')).contextId, (await send('in a session')).contextId];
  expect((await client.post('/sessions/close', { session_id: ended })).status).toBe(200);
  const ofSessions = await erase('sessions', 'erase', '--older-than-days', '0');
  expect(ofSessions.removed).toMatchObject({ sessions: 1, messages: 1 });
  await expectGone(ended);
  expect((await sessionOf(String(active))).status).toBe('active');
  const [waiting, over] = [await send('still waiting', 'asking'), await send('over')];
  const ofMessages = await erase('messages', 'erase', '--older-than-days', '0', '--wait-seconds', '60');
  expect(ofMessages.finished_at).not.toBeNull();
  expect((await client.message(waiting.id)).state).toBe('input-required');
  await expectGone(over.id);
});
