import { expect, test } from 'vitest';
import { waitingMessages } from '../setup/waiting-messages.js';
import { ASKS, answerMessage, joinOnRecord } from './moving.js';
import { serveApi } from './served-api.js';

const IN_FLIGHT = 4;
const WAITING = 20;

const api = await serveApi({ tenantMaxInFlight: IN_FLIGHT, tenantMaxWaiting: WAITING });
await joinOnRecord(api, 'worker-1');

test('messages that wait for input leave the bound of messages in flight alone', async () => {
  const asked: string[] = [];
  for (let sent = 0; sent < 2 * IN_FLIGHT; sent += 1) {
    const { id } = await api.client.send('ask', { blocking: false });
    await answerMessage(api, id, ASKS);
    asked.push(id);
  }
  expect((await api.client.message(asked[0] ?? '')).state).toBe('input-required');
  for (let sent = 0; sent < IN_FLIGHT; sent += 1) await api.client.send('work', { blocking: false });
  const refused = await api.client.rpc('one more', { blocking: false });
  const error = expect.stringContaining(`${IN_FLIGHT} messages in flight`);
  expect(refused).toMatchObject({ status: 429, body: { code: 'RATE_LIMITED', error } });
  expect(refused.headers.get('retry-after')).toBe('1');
  // What waits may still be answered, though it is at work again then.
  const answer = await api.client.post(`/messages/${asked[0]}/resolve`, { resolution: 'confirmed' });
  expect(answer.status).toBe(200);
});

test('at the bound of messages that wait new ones are 429, and what was sent before is found', async () => {
  const tenantId = await api.otherTenant();
  await joinOnRecord(api, 'worker-1', tenantId);
  await waitingMessages(api.database, tenantId, WAITING);
  const client = await api.clientOf(tenantId, ['read']);
  for (let sent = 0; sent < 2; sent += 1) {
    const refused = await client.rpc('hello', { blocking: false });
    const error = expect.stringContaining('/messages/pending');
    expect(refused).toMatchObject({ status: 429, body: { code: 'RATE_LIMITED', error } });
    expect(refused.headers.get('retry-after')).toBe('5');
  }
  await api.database.query(
    `UPDATE idempotency_keys k SET idempotency_key = idempotency_key($1, c.credential_id, '', m.client_message_id)
       FROM credentials c, messages m WHERE k.tenant_id = uuid_of($1) AND c.tenant_id = $1 AND m.tenant_id = $1 AND m.message_id = 'msg_' || k.message_id`,
    [tenantId],
  );
  const again = await client.rpc('other content', { messageId: 'waiting-1', blocking: false });
  expect(again.error?.data).toEqual({ code: 'IDEMPOTENCY_MISMATCH' });
});
