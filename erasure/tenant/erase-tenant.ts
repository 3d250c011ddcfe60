import { BY_INDEX } from '../../db/pages/page.js';
import type { Tx } from '../../db/pool.js';
import { countRows } from '../count-rows.js';
import type { EraserDeps, Portion } from '../eraser-deps.js';
import { addRemoved, type Erasure, finish, noteDone } from '../erasures.js';
import { countExternal, removeExternal } from '../external-removal.js';
import { MESSAGE_TABLES } from '../message-tables.js';
import { FOUND_BY_MESSAGE, type TenantTable, tenantTables } from './tenant-tables.js';

/** Rows that one transaction erases. */
const ROWS_AT_ONCE = 1_000;
/** Of tables that hold large rows. */
const ROWS_OF: Readonly<Record<string, number>> = { messages: 200, knowledge_documents: 20, knowledge_sources: 50 };
/** After a tenant is deleted: its tokens, sockets and calls end, and the event about it is delivered. */
const GRACE_MS = 30_000;
/** What then still waits for a receiver is given up after this time. */
const DELIVERY_MS = 600_000;

/** In `done_until` instead of a table: none is done; all were once found empty. */
const FROM_THE_START = '-';
const ONCE_EMPTY = '~';

/** The next rows of a table. The rows at these places in other partitions are the tenant's own too. @returns how many, by table */
async function deleteNext(tx: Tx, { name, tenant }: TenantTable, tenantId: string): Promise<Record<string, number>> {
  const next = (column: string) =>
    `SELECT ${column} FROM ${name} WHERE tenant_id = ${tenant} LIMIT ${ROWS_OF[name] ?? ROWS_AT_ONCE}`;
  if (name !== 'messages') {
    const own = `DELETE FROM ${name} WHERE tenant_id = ${tenant} AND ctid = ANY (ARRAY(${next('ctid')}))`;
    return { [name]: await countRows(tx, own, [tenantId]) };
  }
  const rows = await tx.query<{ message_id: string }>(next('message_id'), [tenantId]);
  const removed: Record<string, number> = {};
  for (const part of [FOUND_BY_MESSAGE, name])
    removed[part] = await countRows(tx, MESSAGE_TABLES[part] ?? '', [
      tenantId,
      rows.map(({ message_id }) => message_id),
      [],
      [],
    ]);
  return removed;
}

const FORGET_COMMENTS = `
  UPDATE input_decisions SET comment = NULL, ip = NULL, title = NULL, arguments = NULL
   WHERE tenant_id = $1 AND num_nonnulls(comment, ip, title, arguments) > 0 AND approval_id IN (
     SELECT approval_id FROM input_decisions WHERE tenant_id = $1 AND num_nonnulls(comment, ip, title, arguments) > 0 LIMIT ${ROWS_AT_ONCE})`;

/** What of a tenant is left. */
async function isLeft(tx: Tx, tenantId: string, tables: readonly TenantTable[]): Promise<boolean> {
  const all = tables
    .map(({ name, tenant }) => `EXISTS (SELECT 1 FROM ${name} WHERE tenant_id = ${tenant})`)
    .join(' OR ');
  const comments =
    'SELECT 1 FROM input_decisions WHERE tenant_id = $1 AND num_nonnulls(comment, ip, title, arguments) > 0';
  const [row] = await tx.query<{ left: boolean }>(`SELECT ${all} OR EXISTS (${comments}) AS left`, [tenantId]);
  return row?.left === true;
}

/** Whether deliveries of the tenant are still under way. */
async function isDelivering({ db, graceMs = GRACE_MS }: EraserDeps, erasure: Erasure): Promise<boolean> {
  const ageMs = Date.now() - erasure.requested_at.getTime();
  if (ageMs < graceMs) return true;
  const queued = await db.system((tx) =>
    tx.query('SELECT 1 FROM delivery_queue WHERE tenant_id = $1 LIMIT 1', [erasure.tenant_id]),
  );
  return queued.length > 0 && ageMs < DELIVERY_MS;
}

/** Where the next portion begins, after one that erased rows of a table, or found none. */
function doneAfter(doneUntil: string, table: string, rows: number): string {
  if (rows === 0) return table;
  return doneUntil === '' ? FROM_THE_START : doneUntil;
}

/** Erases the next rows of a tenant. @returns false where none is left */
async function eraseRows({ db }: EraserDeps, erasure: Erasure, tables: readonly TenantTable[]): Promise<boolean> {
  const { tenant_id, erasure_id } = erasure;
  let done = erasure.done_until;
  for (const table of tables.slice(tables.findIndex(({ name }) => name === done) + 1)) {
    const rows = await db.system(async (tx) => {
      await tx.query(BY_INDEX);
      const removed = await deleteNext(tx, table, tenant_id);
      await addRemoved(tx, erasure_id, removed);
      await noteDone(tx, erasure_id, doneAfter(done, table.name, removed[table.name] ?? 0));
      return removed[table.name] ?? 0;
    });
    done = doneAfter(done, table.name, rows);
    if (rows > 0) return true;
  }
  return db.system(async (tx) => {
    await tx.query(BY_INDEX);
    const input_decisions = await countRows(tx, FORGET_COMMENTS, [tenant_id]);
    await addRemoved(tx, erasure_id, { input_decisions });
    return input_decisions > 0;
  });
}

/** The rows without which nothing of a tenant is left, and the end of the erasure. */
async function eraseLast(tx: Tx, { tenant_id, erasure_id }: Erasure): Promise<void> {
  // Cursors of the tenant, beside those of the consumers of all events (telemetry/tenant-cursors.ts).
  const cursors = `DELETE FROM event_cursors WHERE consumer LIKE '%/' || $1`;
  const event_cursors = await countRows(tx, cursors, [tenant_id]);
  const tenants = await countRows(tx, 'DELETE FROM tenants WHERE tenant_id = $1', [tenant_id]);
  await addRemoved(tx, erasure_id, { event_cursors, tenants });
  await finish(tx, erasure_id);
}

/**
 * Erases the next part of a deleted tenant: its rows table by table, those that refer to others first, then its workflows and what Redis has of
 * it. When two looks at all of them have found nothing, the tenant's own row goes and the erasure ends.
 */
export async function eraseTenant(deps: EraserDeps, erasure: Erasure): Promise<Portion> {
  const { db } = deps;
  const { tenant_id, erasure_id, done_until } = erasure;
  if (done_until === '' && (await isDelivering(deps, erasure))) return 'waits';
  const tables = (await db.system(tenantTables)).filter(({ name }) => name !== FOUND_BY_MESSAGE);
  if (done_until !== ONCE_EMPTY && (await eraseRows(deps, erasure, tables))) return 'erased';
  // Only now: rows of messages at work would have their workflows started again.
  const { isListed, ids: workflows } = await deps.workflows.findOfTenant(tenant_id);
  const keys = await deps.bus.keysOf(tenant_id, null);
  await removeExternal(deps, erasure, { workflows, keys }, null);
  return db.system(async (tx) => {
    await countExternal(tx, erasure_id);
    if (isListed) return 'waits'; // until Temporal, which lists changes late, lists none
    if (keys.length > 0) return 'erased'; // there may be more
    await tx.query(BY_INDEX);
    const left = await isLeft(tx, tenant_id, tables);
    if (!left && done_until === ONCE_EMPTY) {
      await eraseLast(tx, erasure);
      return 'finished';
    }
    // What was under way elsewhere, such as a batch of the event sequencer, has committed by the second look.
    await noteDone(tx, erasure_id, left ? FROM_THE_START : ONCE_EMPTY);
    return left ? 'erased' : 'waits';
  });
}
