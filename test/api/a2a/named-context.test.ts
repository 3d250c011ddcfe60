import { expect, test } from 'vitest';
import { SessionGetByIdResponse } from '../../../contracts/api/sessions.js';
import { joinOnRecord } from '../moving.js';
import { serveApi } from '../served-api.js';

const api = await serveApi();
await joinOnRecord(api, 'worker-1');

const NAME = 'conversation-7:b';
const taskIn = async (contextId: string, client = api.client) => {
  const { result, error } = await client.rpc('hello', { contextId, blocking: false });
  return result ?? error;
};

test('a context that the caller names opens one session of that name, however many messages come at once', async () => {
  const tasks = await Promise.all(Array.from({ length: 6 }, () => taskIn(NAME)));
  expect(tasks.map((task) => (task as { contextId?: string }).contextId)).toEqual(Array(6).fill(NAME));
  const { session } = await api.client.ok('/sessions/get_by_id', { session_id: NAME }, SessionGetByIdResponse);
  expect(session).toMatchObject({ session_id: NAME, status: 'active' });
  const created = await api.client.post('/telemetry/get_events', { session_id: NAME, type: 'session.created' });
  expect(created.body).toMatchObject({ count: 1 });
  expect(await taskIn(NAME)).toMatchObject({ contextId: NAME });
});

test('each tenant has contexts of its own', async () => {
  const otherTenant = await api.otherTenant();
  await joinOnRecord(api, 'worker-1', otherTenant);
  const other = await api.clientOf(otherTenant, ['full']);
  expect((await other.post('/sessions/get_by_id', { session_id: NAME })).status).toBe(404);
  expect(await taskIn(NAME, other)).toMatchObject({ contextId: NAME });
  const { body } = await other.post('/messages/get', { session_id: NAME });
  expect(body).toMatchObject({ count: 1 });
});

test('a session that has ended takes no message under its name', async () => {
  await taskIn('ended');
  await api.client.post('/sessions/close', { session_id: 'ended' });
  expect(await taskIn('ended')).toMatchObject({ code: -32004, data: { code: 'SESSION_CLOSED' } });
});

test.each(['ses_01', '-x', 'a b', 'ü', 'x'.repeat(129)])('%j names no new context', async (contextId) => {
  expect(await taskIn(contextId)).toMatchObject({ code: -32602, data: { code: 'NOT_FOUND' } });
});
