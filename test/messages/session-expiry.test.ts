import { beforeEach, expect, test } from 'vitest';
import { sessionDeps } from '../../messages/cancel.js';
import { newId } from '../../runtime/ids.js';
import { createSessionExpiry, paceAfter } from '../../sessions/session-expiry.js';
import { cleanUp } from '../setup/clean-up.js';
import { insertTenant, messageCore } from '../setup/core.js';
import { type FreshDatabase, freshDatabase } from '../setup/database.js';
import { until } from '../setup/until.js';

let database: FreshDatabase;
let tenantId: string;

beforeEach(async () => {
  database = await freshDatabase();
  tenantId = await insertTenant(database);
});

function startExpiry(): void {
  const expiry = createSessionExpiry(sessionDeps(messageCore(database.db())));
  expiry.start();
  cleanUp(() => expiry.stop());
}

/** A session that a message opened an hour ago, with half an hour until it idles out. */
async function session(columns: Record<string, unknown> = {}): Promise<string> {
  const row = {
    tenant_id: tenantId,
    session_id: newId('ses'),
    explicit: false,
    status: 'active',
    idle_timeout_seconds: 1_800,
    created_at: new Date(Date.now() - 3_600_000),
    idle_check_at: new Date(Date.now() - 1_800_000),
    ...columns,
  };
  const places = Object.keys(row).map((_, index) => `$${index + 1}`);
  await database.query(`INSERT INTO sessions (${Object.keys(row)}) VALUES (${places})`, Object.values(row));
  return row.session_id;
}

/** A message of the session, which changed so many seconds ago. */
async function message(sessionId: string, agoSeconds: number, state = 'completed'): Promise<void> {
  const ids = [tenantId, newId('msg'), sessionId];
  await database.query(
    `INSERT INTO messages (tenant_id, message_id, session_id, session_uuid, credential_id, client_message_id, method, parts, trace_id, deadline_ms, state, updated_at)
     VALUES ($1, $2, $3, session_uuid(uuid_of($1), $3), 'cred_1', $2, 'message/send', '[]', '', 1000, $4, now() - $5 * interval '1 s')`,
    [...ids, state, agoSeconds],
  );
  if (state !== 'completed')
    await database.query(
      'INSERT INTO running_messages (tenant_id, message_id, session_id, state) VALUES ($1, $2, $3, $4)',
      [...ids, state],
    );
}

const active = () => database.query<{ session_id: string }>("SELECT session_id FROM sessions WHERE status = 'active'");

test('sessions of messages idle out; those with a message at work, a recent one or a workflow do not', async () => {
  const [unused, old, recent, waiting, explicit] = [
    await session(),
    await session(),
    await session(),
    await session(),
    await session({ explicit: true, idle_check_at: null }),
  ];
  await message(old, 2_000);
  await message(recent, 600);
  await message(waiting, 2_000, 'input-required');
  startExpiry();
  await until(async () => (await active()).length === 3, { what: 'two expired sessions' });
  expect((await active()).map((row) => row.session_id)).toEqual(expect.arrayContaining([recent, waiting, explicit]));
  const ended = await database.query(
    'SELECT session_id, status, ended_reason, idle_check_at FROM sessions WHERE ended_at IS NOT NULL ORDER BY session_id',
  );
  const over = { status: 'expired', ended_reason: 'idle', idle_check_at: null };
  expect(ended).toEqual([unused, old].sort().map((session_id) => ({ session_id, ...over })));
  const events = await database.query<{ payload: { session_id: string; reason: string; duration_ms: number } }>(
    "SELECT payload FROM events WHERE event_type = 'session.closed'",
  );
  expect(events.map(({ payload }) => payload.session_id).sort()).toEqual([unused, old].sort());
  for (const { payload } of events) {
    expect(payload.reason).toBe('idle');
    expect(payload.duration_ms).toBeGreaterThanOrEqual(3_600_000);
  }
  const left = 'SELECT extract(epoch FROM idle_check_at - now())::int FROM sessions WHERE session_id = $1';
  const leftS = await database.value<number>(left, [recent]);
  expect(leftS).toBeGreaterThan(1_100);
  expect(leftS).toBeLessThanOrEqual(1_200);
});

test('many sessions that are due at once all end, also while one of them is locked by a message', async () => {
  const busy = await session();
  await database.query(
    `INSERT INTO sessions (tenant_id, session_id, explicit, status, idle_timeout_seconds, created_at, idle_check_at)
     SELECT $1, 'many-' || n, false, 'active', 60, now() - interval '1 hour', now() - interval '1 hour'
       FROM generate_series(1, 1800) AS n`,
    [tenantId],
  );
  await database.db().tenant(tenantId, async (tx) => {
    await tx.query('SELECT 1 FROM sessions WHERE session_id = $1 FOR SHARE', [busy]);
    startExpiry();
    await until(async () => (await active()).length === 1, { what: 'all but one ended' });
    expect(await active()).toEqual([{ session_id: busy }]);
  });
});

/** The batch and the pause that follow a full batch. */
const PACES = [
  { lateMs: 0, tookMs: 8, size: 100, pauseMs: 42 },
  { lateMs: 10_000, tookMs: 25, size: 100, pauseMs: 25 },
  { lateMs: 40_000, tookMs: 40, size: 100, pauseMs: 40 },
  { lateMs: 40_000, tookMs: 300, size: 100, pauseMs: 300 },
  { lateMs: 49_000, tookMs: 10, size: 250, pauseMs: 20 },
  { lateMs: 58_000, tookMs: 300, size: 400, pauseMs: 0 },
  { lateMs: 3_600_000, tookMs: 20, size: 400, pauseMs: 0 },
];

test('it is gentle for most of the minute, and catches up at its end', () => {
  for (const { size, pauseMs, ...given } of PACES)
    expect(paceAfter(given), JSON.stringify(given)).toEqual({ size, pauseMs });
});
