import { expect, test } from 'vitest';
import type { Statement } from '../../db/connections/statement.js';
import { inKeyOrder } from '../../db/pages/page.js';
import { openDb } from '../../db/pool.js';
import { newId } from '../../runtime/ids.js';
import { createLogger } from '../../runtime/logger.js';
import { cleanUp } from '../setup/clean-up.js';
import { freshDatabase } from '../setup/database.js';
import { TcpProxy } from '../setup/platform/tcp-proxy.js';
import { until } from '../setup/until.js';

/** Gives each call back; one with `fail` raises, one with `sleep` takes that many seconds first. */
const ECHO = `
  CREATE OR REPLACE FUNCTION echo_calls(calls jsonb, wait_for_locks boolean) RETURNS SETOF jsonb LANGUAGE plpgsql AS $$
  DECLARE
    one jsonb;
  BEGIN
    FOR one IN SELECT jsonb_array_elements(calls) LOOP
      IF one ? 'fail' THEN RAISE EXCEPTION 'told to fail' USING ERRCODE = 'P0042'; END IF;
      PERFORM pg_sleep((one ->> 'sleep')::numeric);
      RETURN NEXT one;
    END LOOP;
  END $$`;

const statement = (name: string, text: string): Statement<unknown> => ({ name, text });
const tenant_id = newId('ten');
const echo = statement('echo_calls', 'SELECT * FROM echo_calls($1, $2)');

const database = await freshDatabase();
await database.query(ECHO);
const db = openDb({ url: database.url, max: 2, log: createLogger({ level: 'silent' }) });
cleanUp(() => db.close());

test('calls that come together each get their own row, and one that fails fails alone', async () => {
  const calls = Array.from({ length: 40 }, (_, place) =>
    place === 7 ? { tenant_id, place, fail: true } : { tenant_id, place },
  );
  const results = await Promise.allSettled(calls.map((call) => db.batch(echo, call)));
  const failed = results.filter(({ status }) => status === 'rejected');
  expect(failed).toMatchObject([{ reason: { code: 'P0042' } }]);
  expect(results.map((result) => (result.status === 'fulfilled' ? result.value : calls[7]))).toEqual(calls);
});

test('a statement that cannot be parsed fails, and its connection goes on to serve', async () => {
  const broken = statement('broken', 'SELECT * FROM no_such_function($1, $2)');
  for (let turn = 0; turn < 5; turn += 1) {
    await expect(db.batch(broken, { tenant_id })).rejects.toMatchObject({ code: '42883' });
    expect(await db.batch(echo, { tenant_id, turn })).toEqual({ tenant_id, turn });
  }
});

test('a connection that is lost in the middle is SERVICE_UNAVAILABLE, and the next call has another', async () => {
  const lost = expect(db.batch(echo, { tenant_id, sleep: 60 })).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
  const ended = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event = 'PgSleep'`;
  await until(async () => (await database.query(ended)).length > 0, { what: 'the call to be asleep' });
  await lost;
  expect(await db.batch(echo, { tenant_id, after: 1 })).toEqual({ tenant_id, after: 1 });
});

test('of connections that go silent one call learns, and those that follow have new ones', async () => {
  const path = await TcpProxy.to(database.url);
  const url = path.urlOf(database.url);
  const remote = openDb({ url, max: 4, timeoutMs: 1_000, log: createLogger({ level: 'silent' }) });
  cleanUp(() => remote.close());
  const read = () => remote.tenant(tenant_id, (tx) => tx.query('SELECT pg_sleep(0.2)'));
  await Promise.all([read(), read()]); // two connections, which are idle then
  path.silence();
  path.isSilent = false;
  await expect(read()).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
  expect(await Promise.all([read(), read()])).toHaveLength(2);
});

test('a list that takes too long says so, also where the settings allow a statement less than a list', async () => {
  const hasty = openDb({ url: database.url, max: 2, timeoutMs: 3_000, log: createLogger({ level: 'silent' }) });
  cleanUp(() => hasty.close());
  const slow = inKeyOrder(hasty, tenant_id, (tx) => tx.query('SELECT pg_sleep(30)'));
  await expect(slow).rejects.toMatchObject({ code: 'REQUEST_TIMEOUT' });
});

test('a renewal ends in time as a whole, not each of its statements', async () => {
  const db = openDb({ url: database.url, max: 2, renewalMs: 2_000, log: createLogger({ level: 'silent' }) });
  cleanUp(() => db.close());
  const statement = 'SELECT pg_sleep(0.7)';
  const renewed = db.renewal(async (tx) => {
    for (let n = 0; n < 20; n += 1) await tx.query(statement);
  });
  await expect(renewed).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
  expect(await db.renewal((tx) => tx.query('SELECT 1 AS one'))).toEqual([{ one: 1 }]);
});

test('a renewal that the server cuts is as transient as one that this process cuts', async () => {
  const cut = db.renewal(async (tx) => {
    await tx.query('SET LOCAL statement_timeout = 50');
    await tx.query('SELECT pg_sleep(1)');
  });
  await expect(cut).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
  expect(await db.renewal((tx) => tx.query('SELECT 1 AS one'))).toEqual([{ one: 1 }]);
});

test('what the server has no room for is SERVICE_UNAVAILABLE, and its connection goes on to serve', async () => {
  const full = "DO $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$";
  const pid = () => db.tenant(tenant_id, (tx) => tx.query('SELECT pg_backend_pid()'));
  const before = await pid();
  const refused = { code: 'SERVICE_UNAVAILABLE', headers: { 'Retry-After': '10' } };
  await expect(db.tenant(tenant_id, (tx) => tx.query(full))).rejects.toMatchObject(refused);
  expect(await pid()).toEqual(before);
});

test('a function whose columns a newer version has changed is planned again', async () => {
  expect(await db.batch(echo, { tenant_id, before: 1 })).toEqual({ tenant_id, before: 1 });
  await database.query(`DROP FUNCTION echo_calls;
    CREATE FUNCTION echo_calls(calls jsonb, wait_for_locks boolean, OUT one jsonb, OUT more integer) RETURNS SETOF record
      LANGUAGE sql AS $$ SELECT item, 1 FROM jsonb_array_elements(calls) AS item $$`);
  const calls = [1, 2, 3].map((call) => ({ tenant_id, call }));
  expect(await Promise.all(calls.map((call) => db.batch(echo, call)))).toEqual(calls);
});

test('a named statement of a transaction is planned again where a newer version has changed its columns', async () => {
  await database.query('CREATE TABLE notes (note text); GRANT SELECT ON notes TO fleet_system');
  const read = () => db.system((tx) => tx.query('SELECT * FROM notes', [], 'all_notes'));
  expect(await read()).toEqual([]);
  await database.query("ALTER TABLE notes ADD COLUMN author text; INSERT INTO notes VALUES ('n', 'a')");
  expect(await read()).toEqual([{ note: 'n', author: 'a' }]);
});

test('a row that cannot be read fails its call, and nothing else', async () => {
  const odd = statement('odd', "SELECT 'no JSON' FROM echo_calls($1, $2)");
  await expect(db.batch(odd, { tenant_id })).rejects.toBeInstanceOf(SyntaxError);
  expect(await db.batch(echo, { tenant_id, well: true })).toEqual({ tenant_id, well: true });
});
