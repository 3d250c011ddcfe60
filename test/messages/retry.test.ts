import { beforeEach, expect, test } from 'vitest';
import type { Caller } from '../../contracts/api/auth.js';
import { acceptDeps } from '../../messages/accept/accept.js';
import { askerOfMessage } from '../../messages/input/principals.js';
import { readMessage } from '../../messages/read/read.js';
import { type RetryRequest, retryMessage } from '../../messages/retry.js';
import type { PlatformError } from '../../runtime/errors.js';
import { freshDatabase } from '../setup/database.js';
import { RecordFixture, type Sent } from '../setup/record-fixture.js';

const database = await freshDatabase();
const db = database.db();
const fixture = new RecordFixture(database);
beforeEach(async () => {
  await fixture.reset();
  await fixture.agent('x');
});

const operator = (): Caller => ({ ...fixture.caller, credential_id: 'cred_operator', scopes: ['admin'] });
const retry = (request: RetryRequest, by = fixture.caller) => retryMessage(acceptDeps(fixture.core), by, request);
const refused = (request: RetryRequest, by = fixture.caller) =>
  retry(request, by).then(
    () => null,
    (error: PlatformError) => error.code,
  );

/** A message that no agent has had, and that was canceled. */
async function canceled(wish: Parameters<RecordFixture['queue']>[0] = { agent_type: 'worker' }): Promise<Sent> {
  const message = await fixture.queue(wish);
  await fixture.gateway.cancel(fixture.caller, message.message_id, 'test');
  return message;
}
const rowOf = async (id: string) => {
  const found = await db.tenant(fixture.tenantId, (tx) => readMessage(tx, fixture.tenantId, id));
  if (!found) throw new Error('no such message');
  return found.row;
};

test('a message that was canceled is sent again with its content, target and session', async () => {
  await fixture.setAgents('max_concurrent_sessions = 0');
  const first = await canceled();
  const again = await retry({ message_id: first.message_id }, operator());
  expect(again).toMatchObject({ session_id: first.session_id, retry_of: first.message_id });
  const [before, after] = [await rowOf(first.message_id), await rowOf(again.message_id)];
  expect(after).toMatchObject({ parts: before.parts, metadata: before.metadata, want_agent_type: 'worker' });
  expect(askerOfMessage(after).senders).toEqual(['cred_1', 'cred_operator']);
  expect((await fixture.gateway.get(fixture.caller, again.message_id)).retry_of).toBe(first.message_id);
});

test('while a retry runs it is given, and two at once make one', async () => {
  const { message_id } = await canceled();
  const [one, other] = await Promise.all([retry({ message_id }), retry({ message_id })]);
  expect(other).toEqual(one);
  expect(await retry({ message_id, idempotency_key: 'another' }, operator())).toEqual(one);
  await fixture.gateway.cancel(fixture.caller, one.message_id, 'test');
  expect((await retry({ message_id })).message_id).not.toBe(one.message_id);
});

test('one that an agent may have had is sent again only with confirm', async () => {
  const { message_id } = await fixture.send();
  await fixture.gateway.cancel(fixture.caller, message_id, 'test');
  expect(await refused({ message_id })).toBe('CONFLICT');
  expect(await retry({ message_id, confirm: true })).toMatchObject({ retry_of: message_id });
});

test('nothing else is sent again, and by nobody else', async () => {
  const { message_id } = await canceled();
  const reader: Caller = { ...operator(), scopes: ['read'] };
  expect(await refused({ message_id }, reader)).toBe('forbidden');
  const agent: Caller = { ...operator(), agent_type: 'worker', scopes: ['full'] };
  expect(await refused({ message_id }, agent)).toBe('NOT_FOUND');
  const running = await fixture.send();
  expect(await refused({ message_id: running.message_id, confirm: true })).toBe('CONFLICT');
});

test('a repeat with its key gives the same message, also once that and its session have ended', async () => {
  const { message_id, session_id } = await canceled();
  const request = { message_id, idempotency_key: 'once' };
  const made = await retry(request);
  await fixture.gateway.cancel(fixture.caller, made.message_id, 'test');
  await database.query("UPDATE sessions SET status = 'expired' WHERE session_id = $1", [session_id]);
  expect(await retry(request)).toEqual(made);
  expect((await retry({ message_id, idempotency_key: 'another' })).message_id).not.toBe(made.message_id);
});

test('of an ended session another one is opened, of the same user', async () => {
  const { message_id, session_id } = await canceled({ agent_type: 'worker', user_id: 'u' });
  await database.query("UPDATE sessions SET status = 'expired' WHERE session_id = $1", [session_id]);
  const again = await retry({ message_id });
  expect(again.session_id).not.toBe(session_id);
  expect((await rowOf(again.message_id)).user_id).toBe('u');
});
