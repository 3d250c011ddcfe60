import { expect, test } from 'vitest';
import { MessagesGetResponse, MessagesPendingResponse } from '../../contracts/api/messages.js';
import { SessionInitResponse, SessionsGetResponse } from '../../contracts/api/sessions.js';
import { newId, traceparentOf, uuidOf } from '../../runtime/ids.js';
import { joinOnRecord } from '../api/moving.js';
import { serveApi } from '../api/served-api.js';
import { acceptCalls } from './accept-calls.js';

const api = await serveApi();
await joinOnRecord(api, 'worker-1');
const { client } = api;

const send = (user_id?: string, options: object = {}) =>
  client.send('hi', { blocking: false, metadata: { agent_type: 'worker', ...(user_id && { user_id }) }, ...options });
const refusal = async (metadata: object, options: object = {}) => {
  const { error } = await client.rpc('hi', { blocking: false, metadata: { ...metadata }, ...options });
  return error && `${error.code} ${error.message}`;
};
const listed = async (filter: object) =>
  (await client.ok('/messages/get', filter, MessagesGetResponse)).messages.map(({ message_id }) => message_id);
const sessionsOf = async (filter: object) =>
  (await client.ok('/sessions/get', filter, SessionsGetResponse)).sessions.map(({ session_id }) => session_id);

test('a message belongs to the user that it is sent for, and so does the session that it opens', async () => {
  const task = await send('ann', { messageId: 'm-1' });
  const [{ credential_id = '' } = {}] = await api.database.query<{ credential_id: string }>(
    'SELECT credential_id FROM messages WHERE message_id = $1',
    [task.id],
  );
  const sent_by = { type: 'credential', id: credential_id };
  expect(await client.message(task.id)).toMatchObject({ user_id: 'ann', sent_by, client_message_id: 'm-1' });
  expect(await listed({ user_id: 'ann', credential_id, client_message_id: 'm-1' })).toEqual([task.id]);
  expect(await listed({ user_id: 'ann', credential_id: 'another' })).toEqual([]);
  expect(await listed({ user_id: 'ann', client_message_id: 'm-1', state: 'submitted' })).toEqual([task.id]);
  expect(await listed({ user_id: 'ann', client_message_id: 'm-2', state: 'submitted' })).toEqual([]);
  expect(await sessionsOf({ user_id: 'ann', credential_id })).toEqual([task.contextId]);
  expect(await sessionsOf({ user_id: 'ann', credential_id: 'another' })).toEqual([]);
  const { sessions } = await client.ok('/sessions/get', { user_id: 'ann' }, SessionsGetResponse);
  expect(sessions).toMatchObject([{ user_id: 'ann', sent_by }]);
  const pending = { user_id: 'ann', credential_id };
  expect((await client.ok('/messages/pending', pending, MessagesPendingResponse)).total).toBe(0);
});

test('in a session of a user every message is that user’s, and one for another is refused', async () => {
  const { session_id } = await client.ok('/sessions/init', { user_id: 'bob' }, SessionInitResponse);
  const task = await send(undefined, { contextId: session_id });
  expect(await client.message(task.id)).toMatchObject({ user_id: 'bob' });
  expect(await refusal({ agent_type: 'worker', user_id: 'eve' }, { contextId: session_id })).toMatch(
    /^-32602 metadata\.user_id: .* another user/,
  );
  const named = await send('bob', { contextId: 'room-of-bob' });
  expect(await sessionsOf({ user_id: 'bob' })).toEqual(expect.arrayContaining([session_id, named.contextId]));
  const anybody = await client.ok('/sessions/init', {}, SessionInitResponse);
  const within = await send('bob', { contextId: anybody.session_id });
  expect(await client.message(within.id)).toMatchObject({ user_id: 'bob' });
  expect(await sessionsOf({ user_id: 'bob' })).not.toContain(anybody.session_id);
});

test('the same messageId for another user is another message', async () => {
  const [one, again, other, none] = [
    await send('cid', { messageId: 'same' }),
    await send('cid', { messageId: 'same' }),
    await send('dan', { messageId: 'same' }),
    await send(undefined, { messageId: 'same' }),
  ];
  expect(again.id).toBe(one.id);
  expect(new Set([one.id, other.id, none.id]).size).toBe(3);
  // No part of the key can pass for another.
  expect((await send(undefined, { messageId: '3/cidsame' })).id).not.toBe(one.id);
});

test('both spellings of a member count, and members that name no agent are refused', async () => {
  const task = await client.send('hi', { blocking: false, metadata: { agentType: 'worker', userId: 'fay', other: 1 } });
  expect(await client.message(task.id)).toMatchObject({ agent_type: 'worker', user_id: 'fay' });
  expect((await client.rpc('hi', { blocking: false, metadata: { instanceId: 'none-such' } })).result).toMatchObject({
    status: { state: 'failed' },
  });
  const sent = {
    message: {
      messageId: 'v1',
      role: 'ROLE_USER',
      parts: [{ text: 'hi' }],
      metadata: { userId: 'fay', skillId: 'none' },
    },
    configuration: { returnImmediately: true },
  };
  const { result } = await client.call('SendMessage', sent, '1.0');
  expect(result).toMatchObject({ task: { status: { state: 'TASK_STATE_FAILED' } } });
  expect(await refusal({ agentType: 'worker', agent_type: 'other' })).toMatch(/^-32602 .*agentType.*agent_type/);
  for (const name of ['agent', 'target', 'type'])
    expect(await refusal({ [name]: 'worker' })).toMatch(new RegExp(`^-32602 .*metadata\\.${name}: .*use agent_type`));
  expect(await refusal({ agent_type: 'worker', user_id: 'x'.repeat(257) })).toMatch(/^-32602 .*user_id/);
});

const { database, one } = await acceptCalls();

test('what an agent sends while it works keeps the user of its work', async () => {
  await one.agent('planner-1', { agent_type: 'planner', max_concurrent_sessions: 0 });
  const work = await one.send({ agent_type: 'planner', user_id: 'gus' });
  const userOf = (id: string) => database.value('SELECT user_id FROM messages WHERE message_id = $1', [id]);
  const trace = work.message_id.slice(4).replaceAll('-', '');
  const traceparent = traceparentOf(trace, uuidOf(work.dispatch_id));
  const within = { sender: 'planner', traceparent };
  const sent = await one.send({ agent_type: 'worker' }, within);
  expect(await userOf(sent.message_id)).toBe('gus');
  const received = "SELECT payload ->> 'role' FROM events WHERE session_id = $1 AND event_type = 'message.received'";
  const roles = [work, sent].map(({ session_id }) => database.value(received, [session_id]));
  expect(await Promise.all(roles)).toEqual(['user', 'agent']);
  expect(await database.value('SELECT user_id FROM sessions WHERE session_id = $1', [sent.session_id])).toBe('gus');
  // A span of the agent's own stands between.
  const own = traceparentOf(trace, uuidOf(sent.dispatch_id));
  expect(await userOf((await one.send({ agent_type: 'worker' }, { ...within, traceparent: own })).message_id)).toBe(
    'gus',
  );
  expect((await one.send({ agent_type: 'worker', user_id: 'gus' }, within)).verdict).not.toBe('other_user');
  expect((await one.send({ agent_type: 'worker', user_id: 'eve' }, within)).verdict).toBe('other_user');
  const ofEve = await one.send({ agent_type: 'worker', user_id: 'eve' });
  expect((await one.send({ agent_type: 'worker' }, { ...within, contextId: ofEve.session_id })).verdict).toBe(
    'other_user',
  );
  // Another agent that knows the trace does not work on it.
  expect(
    await userOf((await one.send({ agent_type: 'worker' }, { sender: 'other', traceparent })).message_id),
  ).toBeNull();
});

test('what an agent sends is for no user that its work does not name', async () => {
  await one.agent('editor-1', { agent_type: 'editor', max_concurrent_sessions: 0 });
  const work = await one.send({ agent_type: 'editor', user_id: 'hal' });
  const sendAs = (wish: object, options: object = {}) =>
    one.send({ agent_type: 'worker', ...wish }, { sender: 'editor', ...options });
  const userOf = async ({ message_id }: { message_id: string }) =>
    database.value('SELECT user_id FROM messages WHERE message_id = $1', [message_id]);
  // Without a trace nothing says that it works for the user.
  expect((await sendAs({ user_id: 'hal' })).verdict).toBe('other_user');
  expect(await userOf(await sendAs({}))).toBeNull();
  expect(await userOf(await sendAs({ user_id: 'hal' }, { contextId: work.session_id }))).toBe('hal');
  expect((await sendAs({ user_id: 'ida' }, { contextId: work.session_id })).verdict).toBe('other_user');

  // Work of several users in one trace: nothing tells which, unless the message says so.
  const trace = work.message_id.slice(4).replaceAll('-', '');
  const within = (span: string) => ({ traceparent: traceparentOf(trace, uuidOf(span)) });
  const own = within(newId('dsp'));
  const other = await one.send({ agent_type: 'editor', user_id: 'ann' }, own);
  expect(await userOf(await sendAs({}, own))).toBeNull();
  expect(await userOf(await sendAs({ user_id: 'hal' }, own))).toBe('hal');
  expect((await sendAs({ user_id: 'ida' }, own)).verdict).toBe('other_user');
  expect(await userOf(await sendAs({}, within(other.dispatch_id)))).toBe('ann');
  expect((await sendAs({ user_id: 'hal' }, within(other.dispatch_id))).verdict).toBe('other_user');
  // Nor where some of it is for no user.
  await one.answer(other);
  expect(await userOf(await sendAs({}, own))).toBe('hal');
  await one.send({ agent_type: 'editor' }, own);
  expect(await userOf(await sendAs({}, own))).toBeNull();
});

test('a session without a user, opened while a message of a limited token comes, takes no such message', async () => {
  const { session_id: contextId } = await one.send({ agent_type: 'worker' });
  const send = (options: object) => one.send({ agent_type: 'worker' }, { contextId, ...options });
  expect((await send({ limitedTo: 'eve' })).verdict).toBe('no_session');
  expect((await send({})).verdict).not.toBe('no_session');
});
