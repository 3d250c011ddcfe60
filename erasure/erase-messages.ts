import { countErased } from '../agents/agent-connections.js';
import { groupsOfSession } from '../db/events.js';
import type { Tx } from '../db/pool.js';
import { messageWorkflows } from '../messages/supervise/workflow-erasure.js';
import { uuidBound, uuidOf } from '../runtime/ids.js';
import { countRows } from './count-rows.js';
import { alertsAbout, notificationsAbout } from './deliveries-about.js';
import type { EraserDeps, Portion } from './eraser-deps.js';
import { addRemoved, type Erasure, type Selection } from './erasures.js';
import { areEventsRead } from './event-readers.js';
import { countExternal, removeExternal } from './external-removal.js';
import { findForwarded } from './forwarded-messages.js';
import { findDispatches } from './message-dispatches.js';
import {
  FORGET_PLAN_TEXTS,
  FORGET_TOTALS,
  KEEP_SESSION_CREATED,
  LOCK_SESSIONS,
  MESSAGE_TABLES,
} from './message-tables.js';
import { readSelected, type SelectedMessage } from './selected-messages.js';
import { windowsOf } from './time-windows.js';

/** Events of messages, found in their sessions by the time in their ids. Events of other messages are not taken apart. */
async function eventsOf(tx: Tx, tenantId: string, messages: readonly SelectedMessage[]): Promise<string[]> {
  const windows = windowsOf(messages);
  const ids = messages.map(({ message_id }) => message_id);
  const events = await tx.query<{ id: string }>(
    `SELECT e.event_id AS id FROM unnest($4::uuid[], $5::uuid[]) AS w (least, bound) CROSS JOIN unnest($2::text[]) AS s (session_id)
      CROSS JOIN LATERAL (
        SELECT x.group_id FROM event_groups x
         WHERE ${groupsOfSession('x', '$1', 's.session_id')} AND x.group_id >= w.least AND x.group_id < w.bound
           AND group_minute(x.group_id) BETWEEN group_minute(w.least) AND group_minute(w.bound) AND x.message_id = ANY ($3) OFFSET 0) g
      CROSS JOIN LATERAL (SELECT v.event_id, v.message_id FROM events v WHERE v.tenant_uuid = uuid_of($1) AND v.group_id = g.group_id) e
      WHERE e.message_id = ANY ($6)`,
    [
      tenantId,
      [...new Set(messages.map(({ session_id }) => session_id))],
      ids.map(uuidOf),
      windows.map(({ fromMs }) => uuidBound(fromMs)),
      windows.map(({ toMs }) => uuidBound(toMs)),
      ids,
    ],
  );
  return events.map(({ id }) => id);
}

/** Erases messages and all that belongs to them, in one transaction, with the report. */
async function eraseRows(
  tx: Tx,
  erasure: Erasure,
  messages: readonly SelectedMessage[],
  dispatchIds: string[],
): Promise<void> {
  const { tenant_id, erasure_id } = erasure;
  const messageIds = messages.map(({ message_id }) => message_id);
  await tx.query(LOCK_SESSIONS, [tenant_id, messageIds]);
  await countErased(tx, tenant_id, dispatchIds);
  const eventIds = await eventsOf(tx, tenant_id, messages);
  const values = [tenant_id, messageIds, dispatchIds, eventIds];
  const emptied = await countRows(tx, KEEP_SESSION_CREATED, values);
  await countRows(tx, FORGET_PLAN_TEXTS, values); // not in the report: the rows stay
  await countRows(tx, FORGET_TOTALS, values); // nor are these: they are counted anew
  const removed: Record<string, number> = {};
  for (const [table, statement] of Object.entries(MESSAGE_TABLES))
    removed[table] = await countRows(tx, statement, values);
  removed.event_groups = (removed.event_groups ?? 0) + emptied;
  await addRemoved(tx, erasure_id, removed);
  await countExternal(tx, erasure_id);
}

/** Erases messages that are over, once their events have been read. */
async function eraseOver(deps: EraserDeps, erasure: Erasure, messages: readonly SelectedMessage[]): Promise<Portion> {
  const { db } = deps;
  const { tenant_id } = erasure;
  const eventIds = await db.system((tx) => eventsOf(tx, tenant_id, messages));
  if (!(await areEventsRead(deps, erasure, eventIds))) return 'waits';
  const messageIds = messages.map(({ message_id }) => message_id);
  const deliveries = [
    ...(await notificationsAbout(db, tenant_id, messageIds)),
    ...(await alertsAbout(db, tenant_id, eventIds)),
  ];
  const workflows = await deps.workflows.find(messageWorkflows(tenant_id, messages, deliveries));
  const keys = await deps.bus.keysOf(tenant_id, messageIds);
  await removeExternal(deps, erasure, { workflows, keys }, messageIds);
  const dispatchIds = await findDispatches(db, tenant_id, messages);
  await db.system((tx) => eraseRows(tx, erasure, messages, dispatchIds));
  return 'erased';
}

/** Cancels messages that are at work: they are over soon. */
async function cancelAll(deps: EraserDeps, tenant_id: string, messages: readonly SelectedMessage[]): Promise<Portion> {
  for (const { message_id } of messages) await deps.cancel({ tenant_id, message_id });
  return messages.length > 0 ? 'waits' : 'finished';
}

/** Erases what agents sent on of messages of a user that are over. */
async function eraseForwarded(
  deps: EraserDeps,
  erasure: Erasure,
  userId: string,
  messages: readonly SelectedMessage[],
): Promise<Portion> {
  const forwarded = await findForwarded(deps.db, erasure.tenant_id, userId, messages);
  const over = forwarded.filter(({ is_over }) => is_over);
  return over.length > 0 ? eraseOver(deps, erasure, over) : cancelAll(deps, erasure.tenant_id, forwarded);
}

/**
 * Erases the next messages of a selection: their workflows and their output in Redis first, so that a crash leaves the rows by which they
 * are found again. Messages at work are canceled first, except by age, where they stay.
 * @param userId whose messages these are, where a user is erased: what agents sent on of them goes before
 */
export async function eraseMessages(
  deps: EraserDeps,
  erasure: Erasure,
  selection: Selection,
  userId = 'user_id' in selection ? selection.user_id : undefined,
): Promise<Portion> {
  const { tenant_id } = erasure;
  const messages = await readSelected(deps.db, tenant_id, selection, true);
  if (messages.length === 0) {
    if ('before' in selection) return 'finished';
    return cancelAll(deps, tenant_id, await readSelected(deps.db, tenant_id, selection, false));
  }
  if (userId !== undefined) {
    const portion = await eraseForwarded(deps, erasure, userId, messages);
    if (portion !== 'finished') return portion;
  }
  return eraseOver(deps, erasure, messages);
}
