import { expect, test } from 'vitest';
import { joinOnRecord } from '../api/moving.js';
import { serveApi } from '../api/served-api.js';

const api = await serveApi();
await joinOnRecord(api, 'worker-1');

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
  expect(await sentWith(await api.tokenOf(['read'], 'planner'))).toEqual({
    sender_agent_type: 'planner',
    role: 'agent',
  });
  expect(await sentWith(await api.client.token())).toEqual({ sender_agent_type: null, role: 'user' });
});
