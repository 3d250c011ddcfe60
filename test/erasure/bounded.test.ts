import { expect, test } from 'vitest';
import type { EraserDeps } from '../../erasure/eraser-deps.js';
import { requestErasure, takeDue } from '../../erasure/erasures.js';
import { findDispatches } from '../../erasure/message-dispatches.js';
import { eraseSessions } from '../../erasure/sessions/erase-sessions.js';
import { idBound } from '../../runtime/ids.js';
import { insertTenant } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';

const HOUR_MS = 3_600_000;
const database = await freshDatabase();
const db = database.db();

/** An id of a moment: that of the number, in its 12 last digits. */
const idAt = (prefix: 'dsp' | 'msg', atMs: number, number: number) =>
  `${idBound(prefix, atMs)}-7000-8000-${String(number).padStart(12, '0')}`;

async function insertDispatch(tenantId: string, dispatchId: string, messageId: string): Promise<void> {
  await database.query(
    `INSERT INTO dispatches (tenant_id, dispatch_id, message_id, instance_id, agent_type, deployment_mode, state, epoch, attempt)
       VALUES ($1, $2, $3, 'agent', 'worker', 'connected', 'completed', 1, 1)`,
    [tenantId, dispatchId, messageId],
  );
}

test('the dispatches of a message that was open for a day are found in short statements, not looked for while it waited', async () => {
  const tenantId = await insertTenant(database, 'long');
  const startMs = Date.now() - 2 * HOUR_MS;
  const at = (ms: number) => new Date(startMs + ms);
  const messageId = idAt('msg', startMs, 1);
  const message = { message_id: messageId, created_at: at(0), updated_at: at(HOUR_MS) };
  await database.query(
    `INSERT INTO input_requests (tenant_id, request_id, message_id, session_id, kind, source, stage, title, prompt, digest, state, expires_at,
        requested_at, ended_at)
       VALUES ($1, 'req', $2, 'ses', 'approval', 'policy', 'dispatch', '', '', '', 'resolved', $4, $3, $4)`,
    [tenantId, messageId, at(60_000), at(HOUR_MS - 60_000)],
  );
  const own = [idAt('dsp', startMs + 1_000, 1), idAt('dsp', startMs + HOUR_MS - 30_000, 2)];
  for (const id of own) await insertDispatch(tenantId, id, messageId);
  // In the wait no dispatch of it can be: this one would be found by a look at all of the time.
  await insertDispatch(tenantId, idAt('dsp', startMs + HOUR_MS / 2, 3), messageId);
  for (let number = 10; number < 40; number += 1)
    await insertDispatch(tenantId, idAt('dsp', startMs + number, number), idAt('msg', startMs, number));
  expect(await findDispatches(db, tenantId, [message], 7)).toEqual(own);
});

test('an erasure by age looks at a bounded number of sessions at a time', async () => {
  const tenantId = await insertTenant(database);
  const insert = (count: number, from: number, status: string, endedAt: Date | null) =>
    database.query(
      `INSERT INTO sessions (tenant_id, session_id, status, ended_at, explicit, idle_timeout_seconds)
         SELECT $1, 'ses_' || lpad(n::text, 6, '0'), $4, $5, true, 0 FROM generate_series($2::int, $3::int) n`,
      [tenantId, from, from + count - 1, status, endedAt],
    );
  await insert(5_100, 1, 'active', null);
  await insert(1, 9_000, 'completed', new Date(0));
  const selection = { before: new Date().toISOString() };
  await db.system((tx) => requestErasure(tx, { tenant_id: tenantId, kind: 'sessions', selection }, 'test'));
  const nothing = { find: async () => [], erase: async () => undefined, forget: async () => undefined };
  const deps = { db, workflows: nothing, bus: nothing } as unknown as EraserDeps;
  const portions: [string, string][] = [];
  for (let portion = ''; portion !== 'finished'; ) {
    const erasure = await takeDue(db, 0);
    if (!erasure) throw new Error('no erasure is due');
    portion = await eraseSessions(deps, erasure, selection);
    portions.push([erasure.done_until, portion]);
  }
  expect(portions).toEqual([
    ['', 'erased'],
    ['ses_005000', 'erased'],
    ['ses_009000', 'finished'],
  ]);
  const left = await database.value('SELECT count(*)::int FROM sessions WHERE tenant_id = $1', [tenantId]);
  expect(left).toBe(5_100);
});
