import { BY_INDEX } from '../../db/pages/page.js';
import { sessionWorkflows } from '../../messages/supervise/workflow-erasure.js';
import { countRows } from '../count-rows.js';
import { eraseMessages } from '../erase-messages.js';
import type { EraserDeps, Portion } from '../eraser-deps.js';
import { addRemoved, type Erasure, noteDone, type Selection } from '../erasures.js';
import { countExternal, removeExternal } from '../external-removal.js';
import { FORGET_PLAN_DECISIONS, SESSION_TABLES } from '../message-tables.js';
import { eraseSessionEvents } from './session-events.js';

/** Sessions that one statement looks at. */
const LOOKED_AT_ONCE = 5_000;

/** What a user has used, whose id outlives the sessions otherwise. */
const FORGET_USAGE = "DELETE FROM usage_by_key WHERE tenant_id = $1 AND kind = 'user' AND key = $2";

/** The next session after the last that is done. By age: only sessions that have ended. */
function selectSession(selection: Selection): [where: string, value: string] {
  if ('session_id' in selection) return ['session_id = $3', selection.session_id];
  if ('user_id' in selection) return ['user_id = $3', selection.user_id];
  if ('before' in selection) return [`status <> 'active' AND ended_at < $3::timestamptz`, selection.before];
  return [
    'session_id = (SELECT m.session_id FROM messages m WHERE m.tenant_id = $1 AND m.message_id = $3)',
    selection.message_id,
  ];
}

/** How far a statement looks that has to look at every session: by age, where no index says which are due. Null: to the end. */
async function lookedAtUntil(deps: EraserDeps, erasure: Erasure, selection: Selection): Promise<string | null> {
  if (!('before' in selection)) return null;
  const [last] = await deps.db.system(async (tx) => {
    await tx.query(BY_INDEX);
    return tx.query<{ session_id: string }>(
      `SELECT session_id FROM sessions WHERE tenant_id = $1 AND session_id > $2 ORDER BY session_id OFFSET ${LOOKED_AT_ONCE - 1} LIMIT 1`,
      [erasure.tenant_id, erasure.done_until],
    );
  });
  return last?.session_id ?? null;
}

/** Erases the next part of the next session of a selection. A session that is active ends first. */
export async function eraseSessions(deps: EraserDeps, erasure: Erasure, selection: Selection): Promise<Portion> {
  const { tenant_id, erasure_id, done_until } = erasure;
  const [where, value] = selectSession(selection);
  const until = await lookedAtUntil(deps, erasure, selection);
  const [session] = await deps.db.system(async (tx) => {
    await tx.query(BY_INDEX);
    return tx.query<{ session_id: string; status: string; open_plan: boolean }>(
      `SELECT session_id, status, has_open_plan(tenant_id, session_id) AS open_plan FROM sessions
        WHERE tenant_id = $1 AND session_id > $2 AND ($4::text IS NULL OR session_id <= $4) AND ${where} ORDER BY session_id LIMIT 1`,
      [tenant_id, done_until, value, until],
    );
  });
  if (!session && until !== null) {
    await deps.db.system((tx) => noteDone(tx, erasure_id, until));
    return 'erased';
  }
  const userId = 'user_id' in selection ? selection.user_id : undefined;
  if (!session) {
    if (userId !== undefined) await deps.db.system((tx) => tx.query(FORGET_USAGE, [tenant_id, userId]));
    return 'finished';
  }
  const { session_id } = session;
  const ref = { tenant_id, session_id };
  if (session.status === 'active') await deps.endSession(ref);
  const portion = await eraseMessages(deps, erasure, { session_id }, userId);
  if (portion !== 'finished') return portion;
  if (session.open_plan) return 'waits';
  const events = await eraseSessionEvents(deps, erasure, session_id);
  if (events !== 'finished') return events;
  const plans = await deps.db.system((tx) =>
    tx.query<{ plan_id: string }>('SELECT plan_id FROM plans WHERE tenant_id = $1 AND session_id = $2', [
      tenant_id,
      session_id,
    ]),
  );
  const workflows = await deps.workflows.find(sessionWorkflows(ref, plans));
  await removeExternal(deps, erasure, { workflows, keys: [] });
  await deps.db.system(async (tx) => {
    const removed: Record<string, number> = {};
    for (const [table, statement] of Object.entries({ ...FORGET_PLAN_DECISIONS, ...SESSION_TABLES }))
      removed[table] = await countRows(tx, statement, [tenant_id, session_id]);
    await addRemoved(tx, erasure_id, removed);
    await countExternal(tx, erasure_id);
    await noteDone(tx, erasure_id, session_id);
  });
  return 'erased';
}
