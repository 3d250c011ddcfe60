import { beforeEach, expect, test } from 'vitest';
import { sessionDeps } from '../../messages/cancel.js';
import { newId } from '../../runtime/ids.js';
import { SessionStarter } from '../../sessions/session-starter.js';
import { cleanUp } from '../setup/clean-up.js';
import { insertTenant, messageCore } from '../setup/core.js';
import { type FreshDatabase, freshDatabase } from '../setup/database.js';
import { until } from '../setup/until.js';

let database: FreshDatabase;
let tenantId: string;
let woken: string[];
let underWay: number;
let mostUnderWay: number;
let starter: SessionStarter;

beforeEach(async () => {
  database = await freshDatabase();
  tenantId = await insertTenant(database);
  [woken, underWay, mostUnderWay] = [[], 0, 0];
  const wakeSession = async ({ session_id }: { session_id: string }) => {
    underWay += 1;
    mostUnderWay = Math.max(mostUnderWay, underWay);
    // What the session's workflow does first.
    await database.query('UPDATE sessions SET wake_requested_at = NULL WHERE session_id = $1', [session_id]);
    woken.push(session_id);
    underWay -= 1;
  };
  const timings = { afterMs: 10_000, pauseTimes: 1, pauseMaxMs: 5, idleMs: 10 };
  starter = new SessionStarter(sessionDeps(messageCore(database.db())), { wakeSession }, timings);
  cleanUp(() => starter.stop());
});

/** A session that was opened so many seconds ago and whose workflow was asked for then. */
async function session(agoSeconds: number, explicit = false): Promise<string> {
  const sessionId = newId('ses');
  await database.query(
    `INSERT INTO sessions (tenant_id, session_id, explicit, status, idle_timeout_seconds, created_by, created_at, wake_requested_at)
     SELECT $1, $2, $3, 'active', 1800, 'cred_1', at, at FROM (SELECT now() - $4 * interval '1 s' AS at) AS begun`,
    [tenantId, sessionId, explicit, agoSeconds],
  );
  return sessionId;
}

test('workflows of implicit sessions start one at a time, the oldest first; explicit and young ones are left alone', async () => {
  const [young, third, first, second, explicit] = [
    await session(2),
    await session(20),
    await session(60),
    await session(40),
    await session(90, true),
  ];
  starter.start();
  await until(() => woken.length === 3, { what: 'three starts' });
  expect(woken).toEqual([first, second, third]);
  expect(mostUnderWay).toBe(1);
  const waiting = await database.query<{ session_id: string }>(
    'SELECT session_id FROM sessions WHERE wake_requested_at IS NOT NULL ORDER BY created_at',
  );
  expect(waiting.map((row) => row.session_id)).toEqual([explicit, young]);
});

test('a session that idled out before it had a workflow is ended without one', async () => {
  const idle = await session(2_000);
  const other = await session(20);
  starter.start();
  await until(() => woken.length === 1, { what: 'one start' });
  expect(woken).toEqual([other]);
  const [row] = await database.query(
    'SELECT status, ended_reason, wake_requested_at FROM sessions WHERE session_id = $1',
    [idle],
  );
  expect(row).toEqual({ status: 'expired', ended_reason: 'idle', wake_requested_at: null });
});
