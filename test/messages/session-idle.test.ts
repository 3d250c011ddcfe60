import { beforeAll, expect, test } from 'vitest';
import { sessionDeps } from '../../messages/cancel.js';
import { expireIfIdle } from '../../sessions/session-end.js';
import { createSessionExpiry } from '../../sessions/session-expiry.js';
import { cleanUp } from '../setup/clean-up.js';
import { insertTenant, messageCore } from '../setup/core.js';
import { type FreshDatabase, freshDatabase } from '../setup/database.js';
import { rowsRead } from '../setup/rows-read.js';
import { until } from '../setup/until.js';

const SESSIONS = 300;
/** Of the session that has been used for long. */
const MESSAGES = 3_000;

let database: FreshDatabase;
let tenantId: string;
beforeAll(async () => {
  database = await freshDatabase();
  tenantId = await insertTenant(database);
});

/** Messages that have ended, `made` as (session_id, n, at, changed): created and changed at these times, as the platform notes it. */
const write = (made: string, values: unknown[]) =>
  database.query(
    `WITH made AS (${made}), numbered AS (
       SELECT *, lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') AS hex, row_number() OVER () AS place FROM made),
     written AS (
       INSERT INTO messages (tenant_id, message_id, session_id, session_uuid, credential_id, client_message_id, method, parts, trace_id, deadline_ms, state,
         created_at, updated_at)
       SELECT $1, 'msg_' || left(hex, 8) || '-' || right(hex, 4) || '-7000-8000-' || lpad(place::text, 12, '0'), session_id, session_uuid(uuid_of($1), session_id), 'c', 'm' || place,
              'message/send', '[]', gen_random_uuid(), 1, 'completed', at, changed FROM numbered RETURNING tenant_id, message_id, session_id, updated_at)
     INSERT INTO late_changes SELECT tenant_id, message_id, session_id, updated_at FROM written WHERE message_id < late_bound(updated_at)`,
    [tenantId, ...values],
  );

const writeSessions = (prefix: string, columns: { explicit: boolean; count: number }) =>
  database.query(
    `INSERT INTO sessions (tenant_id, session_id, explicit, status, idle_timeout_seconds, created_at, idle_check_at)
     SELECT $1, $2::text || n, $3, 'active', 600 + n * 131 % 2400, now() - interval '3 hours', CASE WHEN NOT $3 THEN now() END
       FROM generate_series(1, $4::int) AS n`,
    [tenantId, prefix, columns.explicit, columns.count],
  );

test('a session idles out after the last change of any of its messages, however long that one took', async () => {
  await writeSessions('ses_any-', { explicit: true, count: SESSIONS });
  // Up to six messages for each, over two hours; of each three one took up to an hour, and the others up to five seconds.
  await write(
    `SELECT 'ses_any-' || s AS session_id, at, least(now(), at + CASE WHEN h % 3 = 0 THEN h % 3600 ELSE h % 5 END * interval '1 s') AS changed
       FROM generate_series(1, ${SESSIONS}) s, generate_series(1, s % 7) m,
            LATERAL (SELECT (s * 7919 + m * 104729) * 31 % 100003 AS h) x, LATERAL (SELECT now() - h % 7200 * interval '1 s' AS at) y`,
    [],
  );
  const rows = await database.query<{ session_id: string; found: number; exact: number }>(
    `SELECT s.session_id, extract(epoch FROM i.idles_at - now())::float8 AS found,
            extract(epoch FROM greatest(s.created_at, (SELECT max(m.updated_at) FROM messages m WHERE m.session_id = s.session_id))
              + s.idle_timeout_seconds * interval '1 s' - now())::float8 AS exact
       FROM (SELECT array_agg(session_id) AS ids, array_agg(tenant_id) AS tenants FROM sessions WHERE tenant_id = $1 AND session_id LIKE 'ses_any-%') a,
            idle_times(a.tenants, a.ids) i JOIN sessions s USING (tenant_id, session_id)`,
    [tenantId],
  );
  expect(rows).toHaveLength(SESSIONS);
  for (const { session_id, found, exact } of rows) {
    if (exact <= 0) expect({ session_id, found }).toEqual({ session_id, found: exact });
    else expect(found > 0 && found <= exact, `${session_id}: ${found} of ${exact} s`).toBe(true);
  }
  const idle = rows.filter(({ exact }) => exact <= 0).length;
  expect(Math.min(idle, SESSIONS - idle)).toBeGreaterThan(SESSIONS / 5);
});

test('a message or a plan that is not over keeps it for a whole timeout more', async () => {
  await writeSessions('ses_kept-', { explicit: true, count: 1 });
  const left = `SELECT extract(epoch FROM idles_at - now())::float8 FROM idle_times(ARRAY[$1], ARRAY['ses_kept-1'])`;
  const idlesIn = () => database.value<number>(left, [tenantId]);
  // Three hours old, with a timeout of 731 s.
  expect(await idlesIn()).toBeLessThan(731 - 10_800);
  const running = `INSERT INTO running_messages (tenant_id, message_id, session_id, state) VALUES ($1, 'msg_1', 'ses_kept-1', 'input-required')`;
  await database.query(running, [tenantId]);
  expect(await idlesIn()).toBe(731);
  await database.query('DELETE FROM running_messages');
  expect(await idlesIn()).toBeLessThan(0);
  await database.query(
    `INSERT INTO plans (tenant_id, plan_id, session_id, description, state, max_parallel, auto_approve, credential_id, created_by, agent_type, scopes, trace_id)
     VALUES ($1, 'plan_1', 'ses_kept-1', '', 'proposed', 1, false, 'c', '', '', '{}', '')`,
    [tenantId],
  );
  expect(await idlesIn()).toBe(731);
  await database.query("UPDATE plans SET state = 'running'");
  expect(await idlesIn()).toBe(731);
  await database.query("UPDATE plans SET state = 'completed', ended_at = now()");
  expect(await idlesIn()).toBeLessThan(0);
});

test('the check reads no more of a session with thousands of messages', async () => {
  const messages = (session: string) =>
    write(
      `SELECT $2 AS session_id, at, at + interval '20 ms' AS changed
         FROM generate_series(1, $3::int) n, LATERAL (SELECT now() - interval '2 hours' - n * interval '1 s' AS at) x`,
      [session, MESSAGES],
    );
  await writeSessions('ses_explicit-', { explicit: true, count: 1 });
  await writeSessions('ses_implicit-', { explicit: false, count: 1 });
  // By the statistics a session has three messages.
  await database.query('VACUUM ANALYZE messages, sessions');
  for (const session of ['ses_explicit-1', 'ses_implicit-1']) await messages(session);
  const deps = sessionDeps(messageCore(database.db()));
  const status = (session: string) => database.value('SELECT status FROM sessions WHERE session_id = $1', [session]);
  const read = await rowsRead(database, /^messages/, async () => {
    expect(await expireIfIdle(deps, { tenant_id: tenantId, session_id: 'ses_explicit-1' })).toMatchObject({
      ended: true,
    });
    const expiry = createSessionExpiry(deps);
    expiry.start();
    cleanUp(() => expiry.stop());
    await until(async () => (await status('ses_implicit-1')) === 'expired');
    await expiry.stop();
  });
  expect(await status('ses_explicit-1')).toBe('expired');
  expect(read).toBeLessThan(100);
});
