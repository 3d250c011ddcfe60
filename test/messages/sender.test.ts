import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ServedApi, serveApi } from '../api/served-api.js';
import { freshDatabase } from '../setup/database.js';

let api: ServedApi;
beforeAll(async () => {
  api = await serveApi(await freshDatabase());
  const agent = { instance_id: 'worker-1', agent_type: 'worker', deployment_mode: 'connected' };
  const answer = await api.client.post('/agents/register', agent);
  expect(answer.status).toBe(200);
});
afterAll(() => api.close());

/** The columns of a message that was sent with this token. */
async function sentWith(token: string) {
  const message = { kind: 'message', messageId: token.slice(-32), role: 'user', parts: [{ kind: 'text', text: 'hi' }] };
  const params = { message, metadata: { agent_type: 'worker' }, configuration: { blocking: false } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/send', params });
  const answer = await api.client.raw('/send', body, {
    'content-type': 'application/json',
    authorization: `Bearer ${token}`,
  });
  const message_id = (answer.body as { result: { id: string } }).result.id;
  const [row] = await api.database.query<{ sender_agent_type: string | null; role: string }>(
    `SELECT m.sender_agent_type, e.payload ->> 'role' AS role FROM messages m JOIN events e USING (tenant_id, session_id)
      WHERE m.message_id = $1 AND e.event_type = 'message.received'`,
    [message_id],
  );
  return row;
}

test('the record says which agent sent a message, by the claim of its token', async () => {
  const credential = await api.credentialOf(api.tenantId, ['read'], ['planner']);
  const body = JSON.stringify({ ...credential, agent_type: 'planner' });
  const answer = await api.client.raw('/auth/get_token', body, { 'content-type': 'application/json' });
  const token = (answer.body as { token: string }).token;
  expect(await sentWith(token)).toEqual({ sender_agent_type: 'planner', role: 'agent' });
  expect(await sentWith(await api.client.token())).toEqual({ sender_agent_type: null, role: 'user' });
});
