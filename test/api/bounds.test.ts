import { expect, test } from 'vitest';
import { MessageGetByIdResponse, MessagesGetResponse } from '../../contracts/api/messages.js';
import { createDispatches } from '../../messages/dispatch/dispatch-store.js';
import { stepAndTake } from '../setup/take.js';
import { until } from '../setup/until.js';
import { waitingMessages } from '../setup/waiting-messages.js';
import { ASKS, answerMessage, COMPLETED, joinOnRecord } from './moving.js';
import { serveApi } from './served-api.js';

const [IN_FLIGHT, QUEUED, WAITING] = [4, 6, 20];

const api = await serveApi({ tenantMaxInFlight: IN_FLIGHT, tenantMaxQueued: QUEUED, tenantMaxWaiting: WAITING });
await joinOnRecord(api, 'worker-1');

test('messages that wait for input leave the bounds of the others alone', async () => {
  for (let sent = 0; sent < 2 * IN_FLIGHT; sent += 1) {
    const { id } = await api.client.send('ask', { blocking: false });
    await answerMessage(api, id, ASKS);
    expect((await api.client.message(id)).state).toBe('input-required');
  }
  expect((await api.client.rpc('one more', { blocking: false })).status).toBe(200);
});

test('beyond what agents may have messages wait, and beyond what may wait new ones are 429', async () => {
  const tenant_id = await api.otherTenant();
  await joinOnRecord(api, 'worker-1', tenant_id);
  const client = await api.clientOf(tenant_id, ['read']);
  const ids: string[] = [];
  for (let sent = 0; sent < IN_FLIGHT + 1; sent += 1) ids.push((await client.send('work', { blocking: false })).id);
  const stepped = [];
  for (const message_id of ids)
    stepped.push(await stepAndTake(api.core, { tenant_id, message_id }, { meshId: 'mesh_test' }));
  expect(stepped.map(({ open }) => open !== null)).toEqual([...Array(IN_FLIGHT).fill(true), false]);
  const last = ids.at(-1) ?? '';
  const waits = async () =>
    (await client.ok('/messages/get_by_id', { message_id: last }, MessageGetByIdResponse)).message.waits_for;
  expect(await waits()).toMatchObject({ kind: 'quota', ahead: 0, online: true });
  // An agent that ends one has room for the next.
  const first = stepped[0]?.open;
  if (!first) throw new Error('no agent has the first message');
  await createDispatches(api.core).end(first, COMPLETED, first.epoch);
  expect((await stepAndTake(api.core, { tenant_id, message_id: last })).open).not.toBeNull();
  await api.database.query("UPDATE agents SET status = 'busy' WHERE tenant_id = $1", [tenant_id]);
  for (let sent = 0; sent < QUEUED; sent += 1) await client.send('queue', { blocking: false });
  const error = expect.stringContaining(`${QUEUED} messages that wait for agents`);
  const refused = await until(async () => {
    const answer = await client.rpc('one more', { blocking: false });
    return answer.status === 429 ? answer : undefined; // they are counted once a second
  });
  expect(refused).toMatchObject({ body: { code: 'RATE_LIMITED', error } });
  expect(refused.headers.get('retry-after')).toBe('1');
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
    `UPDATE idempotency_keys k SET idempotency_key = idempotency_key($1, c.credential_id, NULL, '', m.client_message_id)
       FROM credentials c, messages m WHERE k.tenant_id = uuid_of($1) AND c.tenant_id = $1 AND m.tenant_id = $1 AND m.message_id = 'msg_' || k.message_id`,
    [tenantId],
  );
  const again = await client.rpc('other content', { messageId: 'waiting-1', blocking: false });
  expect(again.error?.data).toEqual({ code: 'IDEMPOTENCY_MISMATCH' });
});

test('a token with as many open calls as it may have gets 429, and room again when one ends', async () => {
  const bounded = await serveApi({ openCallsPerToken: 1 });
  await joinOnRecord(bounded, 'worker-1');
  const { client } = bounded;
  await client.token(); // the calls below share it
  const first = client.rpc('wait', { blocking: true });
  const sent = async () => (await client.ok('/messages/get', {}, MessagesGetResponse)).messages.length > 0;
  await until(sent, { what: 'the call that waits' });
  const refused = await until(async () => {
    const answer = await client.rpc('another', { blocking: false });
    return answer.status === 429 ? answer : undefined;
  });
  expect(refused).toMatchObject({ body: { code: 'RATE_LIMITED', error: expect.stringContaining('This token') } });
  expect(refused.headers.get('retry-after')).toBe('5');
  const { messages } = await client.ok('/messages/get', {}, MessagesGetResponse);
  for (const { message_id } of messages) await client.post('/messages/cancel', { message_id });
  await first;
  await until(async () => (await client.rpc('another', { blocking: false })).status === 200, { what: 'room' });
});
