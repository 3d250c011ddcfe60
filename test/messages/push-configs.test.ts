import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { rpcErrorOf } from '../../api/send/rpc-error.js';
import { PUSH_LIMITS, PushNotificationConfig } from '../../contracts/a2a/a2a.js';
import { lockForPush, putPushConfig } from '../../deliveries/push/push-config-store.js';
import { createPushConfigs } from '../../deliveries/push/push-configs.js';
import { createOutbound } from '../../http/outbound.js';
import type { AcceptHook } from '../../messages/accept/accept-transaction.js';
import { newId } from '../../runtime/ids.js';
import { createSecrets } from '../../runtime/secrets.js';
import { cleanUp } from '../setup/clean-up.js';
import { callerOf, insertAgent, insertTenant, messageCore, textMessage } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { createGateway } from '../setup/gateway.js';
import { RowLock } from '../setup/row-lock.js';
import { until } from '../setup/until.js';

const URL_1 = 'https://receiver.example/one';
const database = await freshDatabase();
const db = database.db();
const outbound = createOutbound({ allowCidrs: [] });
cleanUp(() => outbound.close());
const secrets = createSecrets(randomBytes(32).toString('base64'));
const configs = createPushConfigs({ db, outbound, secrets, expect: () => undefined });
const gateway = createGateway(messageCore(db));
const caller = callerOf(await insertTenant(database));
await insertAgent(database, { tenant_id: caller.tenant_id, instance_id: 'worker-1', status: 'offline' });

async function task(push?: AcceptHook, fields: Parameters<typeof textMessage>[1] = {}): Promise<string> {
  const context = { method: 'message/send' as const, ...(push && { hook: push }) };
  return (await gateway.accept(caller, { message: textMessage('hello', fields) }, context)).message_id;
}

const due = (taskId: string) =>
  database.column('SELECT state FROM push_changes WHERE message_id = $1 ORDER BY sequence', [taskId]);
/** The transactions that wait for a lock, by when they began. */
const blocked = () =>
  database.column<string>(
    `SELECT xact_start::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
  );

const cancel = (taskId: string) => gateway.cancel(caller, taskId, 'by the test');
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 0,
    (error: unknown) => rpcErrorOf(error)?.rpcCode ?? Promise.reject(error),
  );

test('a config is set, read and listed without its secrets, which are not readable in the database either', async () => {
  const id = await task();
  const authentication = { schemes: ['Bearer'], credentials: 'credential-in-clear' };
  const given = { id: 'a', url: URL_1, token: 'token-in-clear', authentication };
  expect(await configs.set(caller, id, given, '0.3')).toEqual(given);
  const shown = { id: 'a', url: URL_1, authentication: { schemes: ['Bearer'] } };
  expect(await configs.get(caller, id, 'a')).toEqual(shown);
  expect(await configs.list(caller, id)).toEqual({ configs: [shown], nextPageToken: '' });
  const [row] = await database.query<{ secrets: Buffer; whole: string }>(
    'SELECT c.secrets, c::text AS whole FROM push_configs c WHERE message_id = $1',
    [id],
  );
  for (const secret of [given.token, authentication.credentials]) {
    expect(row?.secrets.includes(secret)).toBe(false);
    expect(row?.whole).not.toContain(secret);
  }
});

test('without an id it has the id of the task, and a repeat replaces it', async () => {
  const id = await task();
  await configs.set(caller, id, { url: URL_1 }, '0.3');
  expect(await configs.set(caller, id, { id: '', url: `${URL_1}/again` }, '1.0')).toEqual({
    id,
    url: `${URL_1}/again`,
  });
  expect(await configs.list(caller, id)).toEqual({ configs: [{ id, url: `${URL_1}/again` }], nextPageToken: '' });
});

test('several are listed in pages, the oldest first; get without an id gives one of them', async () => {
  const id = await task();
  for (const name of ['c', 'a', 'b']) await configs.set(caller, id, { id: name, url: URL_1 }, '0.3');
  const first = await configs.list(caller, id, { pageSize: 2 });
  expect(first.configs.map((config) => config.id)).toEqual(['c', 'a']);
  const second = await configs.list(caller, id, { pageSize: 2, pageToken: first.nextPageToken });
  expect(second).toEqual({ configs: [{ id: 'b', url: URL_1 }], nextPageToken: '' });
  expect((await configs.get(caller, id)).id).toBe('c');
  expect((await configs.get(caller, id, 'default')).id).toBe('c');
  expect(await codeOf(configs.list(caller, id, { pageToken: 'other' }))).toBe(-32602);
});

test('deleting is idempotent and drops what was still to be told', async () => {
  const id = await task();
  await configs.set(caller, id, { id: 'a', url: URL_1 }, '0.3');
  await cancel(id);
  expect(await due(id)).toEqual(['canceled']);
  await configs.delete(caller, id, 'a');
  await configs.delete(caller, id, 'a');
  expect(await due(id)).toEqual([]);
  expect(await codeOf(configs.get(caller, id, 'a'))).toBe(-32001);
  expect(await configs.list(caller, id)).toEqual({ configs: [], nextPageToken: '' });
});

test('an unknown task is -32001 everywhere, another tenant sees no other', async () => {
  const other = { ...caller, tenant_id: newId('ten') };
  const id = await task();
  for (const [who, what] of [
    [caller, 'msg_unknown'],
    [other, id],
  ] as const) {
    expect(await codeOf(configs.set(who, what, { url: URL_1 }, '0.3'))).toBe(-32001);
    expect(await codeOf(configs.get(who, what))).toBe(-32001);
    expect(await codeOf(configs.list(who, what))).toBe(-32001);
    expect(await codeOf(configs.delete(who, what, 'a'))).toBe(-32001);
  }
});

test.each([
  '',
  'receiver',
  'file:///etc/passwd',
  'https://user:word@receiver.example/',
  'http://127.0.0.1:1/',
  'http://[::ffff:7f00:1]/',
])('the URL %j is -32602', async (url) => {
  const id = await task();
  expect(await codeOf(configs.set(caller, id, { url }, '0.3'))).toBe(-32602);
  expect((await configs.list(caller, id)).configs).toEqual([]);
});

test('a task takes 16 configs, and then only new values for them', async () => {
  const id = await task();
  const ids = Array.from({ length: PUSH_LIMITS.configsPerTask }, (_, index) => `c${index}`);
  for (const name of ids) await configs.set(caller, id, { id: name, url: URL_1 }, '0.3');
  expect(await codeOf(configs.set(caller, id, { id: 'one more', url: URL_1 }, '0.3'))).toBe(-32602);
  await configs.set(caller, id, { id: 'c0', url: `${URL_1}/new` }, '0.3');
  expect((await configs.list(caller, id)).configs).toHaveLength(16);
});

test.each([
  [true, { token: 'a b~' }],
  [false, { token: 'a\r\nx: y' }],
  [false, { authentication: { schemes: ['Bearer'], credentials: 'ü' } }],
  [false, { authentication: { schemes: ['Bearer x'] } }],
  [false, { authentication: { schemes: [] } }],
  [false, { token: 'x'.repeat(PUSH_LIMITS.secretChars + 1) }],
])('what can stand in a header, and nothing else, is taken by the schema: %s', (fits, config) => {
  expect(PushNotificationConfig.safeParse({ url: URL_1, ...config }).success).toBe(fits);
});

test('a config that comes with a message is there before the first change; a repeat of the message adds nothing', async () => {
  const push = configs.prepare({ url: URL_1, token: 't' }, '1.0');
  const messageId = newId('req');
  const id = await task(push, { messageId });
  expect(await task(configs.prepare({ id: 'late', url: URL_1 }, '1.0'), { messageId })).toBe(id);
  expect(await configs.list(caller, id)).toEqual({ configs: [{ id, url: URL_1 }], nextPageToken: '' });
  await cancel(id);
  expect(await due(id)).toEqual(['canceled']);
});

test('a task that has ended takes a config, and nothing is told', async () => {
  const id = await task();
  await cancel(id);
  await configs.set(caller, id, { url: URL_1 }, '0.3');
  expect((await configs.get(caller, id)).id).toBe(id);
  expect(await due(id)).toEqual([]);
});

test('a change of state waits for a config that is being set, and is told to it', async () => {
  const id = await task();
  const of = { tenant_id: caller.tenant_id, message_id: id };
  const config = { config_id: 'a', url: URL_1, schemes: [], secrets: null, protocol_version: '0.3' as const };
  const ending = await db.tenant(caller.tenant_id, async (tx) => {
    await lockForPush(tx, of);
    await putPushConfig(tx, of, config);
    const canceled = cancel(id);
    await until(async () => (await blocked()).length > 0, { what: 'the cancel that waits for the lock' });
    return { canceled };
  });
  await ending.canceled;
  expect(await due(id)).toEqual(['canceled']);
});

test('a message that brings a config waits for its session as any other, longer than one transaction waits', async () => {
  const sessionId = newId('ses');
  await database.query(
    `INSERT INTO sessions (tenant_id, session_id, explicit, status, idle_timeout_seconds)
     VALUES ($1, $2, false, 'active', 3600)`,
    [caller.tenant_id, sessionId],
  );
  const closing = await RowLock.on(database.url, 'SELECT 1 FROM sessions WHERE session_id = $1', [sessionId]);
  const accepted = task(configs.prepare({ url: URL_1 }, '1.0'), { contextId: sessionId });
  accepted.catch(() => undefined); // looked at below
  const transactions = new Set<string>();
  const isSecond = async () => {
    for (const began of await blocked()) transactions.add(began);
    return transactions.size > 1;
  };
  await until(isSecond, { what: 'the second transaction that waits' });
  await closing.release();
  expect((await configs.list(caller, await accepted)).configs).toHaveLength(1);
});
