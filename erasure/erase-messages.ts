import { countErased } from '../agents/agent-connections.js';
import type { Db, Tx } from '../db/pool.js';
import { messageWorkflows, type SentNotification } from '../messages/supervise/workflow-erasure.js';
import { idBound, uuidBound, uuidOf } from '../runtime/ids.js';
import { countRows } from './count-rows.js';
import type { EraserDeps, Portion } from './eraser-deps.js';
import { addRemoved, type Erasure, type Selection } from './erasures.js';
import { findDispatches } from './message-dispatches.js';
import { KEEP_SESSION_CREATED, MESSAGE_TABLES } from './message-tables.js';
import { windowsOf } from './time-windows.js';

/** Messages that one transaction erases. */
const MESSAGES_AT_ONCE = 100;

/** How long a canceled message waits for its workflow, which tells the agent. */
const CANCEL_SECONDS = 30;

/** How long the events of a message that has ended wait for their readers, and how far clocks may differ. */
const READ_WITHIN_MS = 600_000;
const CLOCK_SLACK_MS = 1_000;

/** A message that is selected. */
interface SelectedMessage extends Record<string, unknown> {
  message_id: string;
  session_id: string;
  created_at: Date;
  updated_at: Date;
}

/** Nothing works on the message any more, and no plan waits for it. */
const IS_OVER = `
  NOT EXISTS (SELECT 1 FROM running_messages r WHERE r.tenant_id = m.tenant_id AND r.message_id = m.message_id
    AND NOT (r.state = 'canceled' AND (r.wake_requested_at IS NULL OR m.updated_at < now() - interval '${CANCEL_SECONDS} seconds')))
  AND NOT EXISTS (SELECT 1 FROM plan_messages s JOIN plans p ON p.tenant_id = s.tenant_id AND p.plan_id = s.plan_id
    WHERE s.tenant_id = m.tenant_id AND s.message_id = m.message_id AND p.state IN ('proposed', 'running'))`;

const COLUMNS = 'm.message_id, m.session_id, m.created_at, m.updated_at';

/** The messages of a selection that are over, or those that are not. */
function selectMessages(selection: Selection, over: boolean): [from: string, value: string] {
  const condition = `(${IS_OVER}) = ${over}`;
  const select = (where: string) =>
    `SELECT ${COLUMNS} FROM messages m WHERE m.tenant_id = $1 AND ${where} AND ${condition} ORDER BY m.message_id LIMIT ${MESSAGES_AT_ONCE}`;
  if ('message_id' in selection) return [select('m.message_id = $2'), selection.message_id];
  if ('session_id' in selection) return [select('m.session_id = $2'), selection.session_id];
  if ('before' in selection) return [select('m.message_id < $2'), idBound('msg', Date.parse(selection.before))];
  const ofSession = 'm.tenant_id = s.tenant_id AND m.session_id = s.session_id';
  return [
    `SELECT m.* FROM sessions s CROSS JOIN LATERAL (
       SELECT ${COLUMNS} FROM messages m WHERE ${ofSession} AND ${condition} LIMIT ${MESSAGES_AT_ONCE}) m
      WHERE s.tenant_id = $1 AND s.user_id = $2 LIMIT ${MESSAGES_AT_ONCE}`,
    selection.user_id,
  ];
}

function readSelected(db: Db, tenantId: string, selection: Selection, over: boolean): Promise<SelectedMessage[]> {
  const [select, value] = selectMessages(selection, over);
  return db.system((tx) => tx.query<SelectedMessage>(select, [tenantId, value]));
}

/** Events of messages, found in their sessions by the time in their ids. Events of other messages are not taken apart. */
async function eventsOf(tx: Tx, tenantId: string, messages: readonly SelectedMessage[]): Promise<string[]> {
  const windows = windowsOf(messages);
  const ids = messages.map(({ message_id }) => message_id);
  const events = await tx.query<{ id: string }>(
    `SELECT e.event_id AS id FROM unnest($4::uuid[], $5::uuid[]) AS w (least, bound)
      CROSS JOIN LATERAL (
        SELECT x.group_id FROM event_groups x
         WHERE x.tenant_id = $1 AND x.session_id = ANY ($2) AND x.group_id >= w.least AND x.group_id < w.bound
           AND group_minute(x.group_id) BETWEEN group_minute(w.least) AND group_minute(w.bound) AND x.message_id = ANY ($3) OFFSET 0) g
      CROSS JOIN LATERAL (SELECT v.event_id, v.message_id FROM events v WHERE v.tenant_id = $1 AND v.group_id = g.group_id) e
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
  await countErased(tx, tenant_id, dispatchIds);
  const eventIds = await eventsOf(tx, tenant_id, messages);
  const values = [tenant_id, messages.map(({ message_id }) => message_id), dispatchIds, eventIds];
  const emptied = await countRows(tx, KEEP_SESSION_CREATED, values);
  const removed: Record<string, number> = {};
  for (const [table, statement] of Object.entries(MESSAGE_TABLES))
    removed[table] = await countRows(tx, statement, values);
  removed.event_groups = (removed.event_groups ?? 0) + emptied;
  await addRemoved(tx, erasure_id, removed);
}

const NOTIFICATIONS = `
  SELECT tenant_id, session_id, delivery_id, event_type, message_id, config_id FROM deliveries
   WHERE tenant_id = $1 AND message_id = ANY ($2) AND config_id IS NOT NULL`;

/** Whether everyone who reads events, as alert rules do, has read those of the messages, or has had enough time for it. */
async function areEventsRead(db: Db, messages: readonly SelectedMessage[]): Promise<boolean> {
  const newestMs = Math.max(...messages.map(({ updated_at }) => updated_at.getTime()));
  if (Date.now() - newestMs > READ_WITHIN_MS) return true;
  const bound = uuidBound(newestMs + CLOCK_SLACK_MS);
  const [row] = await db.system((tx) => tx.query<{ read: boolean }>('SELECT events_consumed($1) AS read', [bound]));
  return row?.read === true;
}

/**
 * Erases the next messages of a selection: their workflows and their output in Redis first, so that a crash leaves the rows by which they
 * are found again. Messages at work are canceled first, except by age, where they stay.
 */
export async function eraseMessages(deps: EraserDeps, erasure: Erasure, selection: Selection): Promise<Portion> {
  const { tenant_id, erasure_id } = erasure;
  const messages = await readSelected(deps.db, tenant_id, selection, true);
  if (messages.length > 0) {
    if (!(await areEventsRead(deps.db, messages))) return 'waits';
    const messageIds = messages.map(({ message_id }) => message_id);
    const notifications = await deps.db.system((tx) =>
      tx.query<SentNotification & Record<string, unknown>>(NOTIFICATIONS, [tenant_id, messageIds]),
    );
    const workflows = await deps.workflows.erase(messageWorkflows(tenant_id, messages, notifications));
    const redis_keys = await deps.bus.forget(tenant_id, messageIds);
    const dispatchIds = await findDispatches(deps.db, tenant_id, messages);
    await deps.db.system(async (tx) => {
      await eraseRows(tx, erasure, messages, dispatchIds);
      await addRemoved(tx, erasure_id, { workflows, redis_keys });
    });
    return 'erased';
  }
  if ('before' in selection) return 'finished';
  const atWork = await readSelected(deps.db, tenant_id, selection, false);
  for (const { message_id } of atWork) await deps.cancel({ tenant_id, message_id });
  return atWork.length > 0 ? 'waits' : 'finished';
}
