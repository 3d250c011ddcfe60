import { z } from 'zod';
import { queryJson } from '../db/json-rows.js';
import type { Db, Tx } from '../db/pool.js';
import { digestOf } from '../messages/digest.js';
import { newId } from '../runtime/ids.js';

/** Which messages or sessions are erased: exactly one of these. */
export const Selection = z.union([
  z.strictObject({ message_id: z.string() }),
  z.strictObject({ session_id: z.string() }),
  z.strictObject({ user_id: z.string() }),
  /** Messages that were sent, or sessions that ended, before this time. */
  z.strictObject({ before: z.iso.datetime() }),
]);
export type Selection = z.infer<typeof Selection>;

export type ErasureKind = 'messages' | 'sessions' | 'tenant';

/** An erasure as operators see it. */
export interface ErasureReport {
  erasure_id: string;
  tenant_id: string;
  kind: ErasureKind;
  /** SHA-256 of what was selected, which itself is forgotten once it is erased. */
  digest: string;
  requested_by: string;
  requested_at: string;
  /** Null while it is under way. */
  finished_at: string | null;
  /** Rows by table, workflows, and keys in Redis. Of decisions: those that lost their comment and address. */
  removed: Record<string, number>;
}

/** An erasure under way, as the process that works on it needs it. */
export interface Erasure {
  erasure_id: string;
  tenant_id: string;
  kind: ErasureKind;
  selection: unknown;
  requested_at: Date;
  done_until: string;
  /** Workflows and keys in Redis that a process was removing when it died. */
  removing_workflows: string[];
  removing_keys: string[];
}

const REPORT = 'erasure_id, tenant_id, kind, digest, requested_by, requested_at, finished_at, removed';
const REPORTS_MAX = 1_000;

/**
 * Orders an erasure; a process with the worker role carries it out. The same order again, while the first is under way, is that one.
 * @param requestedBy who asks, for the report
 * @returns the id of the erasure
 */
export function requestErasure(
  tx: Tx,
  order: { tenant_id: string; kind: 'messages' | 'sessions'; selection: Selection },
  requestedBy: string,
): Promise<string> {
  const { tenant_id, kind, selection } = order;
  const digest = digestOf({ tenant_id, selection });
  return insertOnce(tx, [newId('ers'), tenant_id, kind, JSON.stringify(selection), digest, requestedBy]);
}

async function insertOnce(tx: Tx, values: unknown[]): Promise<string> {
  const [, tenantId, kind, , digest] = values;
  const [open] = await tx.query<{ erasure_id: string }>(
    'SELECT erasure_id FROM erasures WHERE tenant_id = $1 AND kind = $2 AND digest = $3 AND finished_at IS NULL',
    [tenantId, kind, digest],
  );
  if (open) return open.erasure_id;
  await tx.query(
    'INSERT INTO erasures (erasure_id, tenant_id, kind, selection, digest, requested_by) VALUES ($1, $2, $3, $4, $5, $6)',
    values,
  );
  return String(values[0]);
}

/** Orders the erasure of every tenant that was deleted and has none yet. */
export async function orderForDeletedTenants(db: Db): Promise<void> {
  await db.system(async (tx) => {
    const deleted = await tx.query<{ tenant_id: string; deleted_by: string }>(
      `SELECT tenant_id, coalesce(deleted_by, '') AS deleted_by FROM tenants t WHERE deleted_at IS NOT NULL
          AND NOT EXISTS (SELECT 1 FROM erasures e WHERE e.tenant_id = t.tenant_id AND e.kind = 'tenant') LIMIT 100`,
    );
    for (const { tenant_id, deleted_by } of deleted)
      await tx.query(
        `INSERT INTO erasures (erasure_id, tenant_id, kind, selection, digest, requested_by) VALUES ($1, $2, 'tenant', '{}', $3, $4)
         ON CONFLICT (tenant_id) WHERE kind = 'tenant' DO NOTHING`,
        [newId('ers'), tenant_id, digestOf({ tenant_id, selection: {} }), deleted_by],
      );
  });
}

/** The erasures, newest first, at most 1,000. @param tenantId null for those of all tenants */
export function listErasures(db: Db, tenantId: string | null): Promise<ErasureReport[]> {
  const select = `SELECT ${REPORT} FROM erasures WHERE $1::text IS NULL OR tenant_id = $1 ORDER BY erasure_id DESC LIMIT ${REPORTS_MAX}`;
  return db.system((tx) => queryJson<ErasureReport>(tx, select, [tenantId]));
}

/** One erasure, by its id or the tenant that it erases; undefined while there is none. */
export async function findErasure(db: Db, id: string): Promise<ErasureReport | undefined> {
  const select = `SELECT ${REPORT} FROM erasures WHERE erasure_id = $1 OR tenant_id = $1 AND kind = 'tenant'`;
  const [found] = await db.system((tx) => queryJson<ErasureReport>(tx, select, [id]));
  return found;
}

/**
 * Takes the erasure that has been due for longest; null when none is due. Nobody else takes it within the lease, which each portion renews.
 * @param leaseSeconds after a crash another process continues this long later
 */
export async function takeDue(db: Db, leaseSeconds: number): Promise<Erasure | null> {
  const [taken] = await db.system((tx) =>
    tx.query<Erasure>(
      `UPDATE erasures SET next_at = clock_timestamp() + $1 * interval '1 second' WHERE erasure_id = (
         SELECT erasure_id FROM erasures WHERE finished_at IS NULL AND next_at <= clock_timestamp()
          ORDER BY next_at LIMIT 1 FOR UPDATE SKIP LOCKED)
       RETURNING erasure_id, tenant_id, kind, selection, requested_at, done_until, removing_workflows, removing_keys`,
      [leaseSeconds],
    ),
  );
  return taken ?? null;
}

/** Adds to the report, in the transaction of what it counts, so that a portion is counted as often as it is removed: once. */
export async function addRemoved(tx: Tx, erasureId: string, removed: Record<string, number>): Promise<void> {
  const counts = Object.entries(removed).filter(([, count]) => count > 0);
  if (counts.length === 0) return;
  await tx.query(
    `UPDATE erasures e SET removed = e.removed || (
       SELECT jsonb_object_agg(n.key, n.value::bigint + coalesce((e.removed ->> n.key)::bigint, 0)) FROM jsonb_each_text($2) n)
      WHERE erasure_id = $1`,
    [erasureId, JSON.stringify(Object.fromEntries(counts))],
  );
}

/** Notes how far an erasure is. */
export async function noteDone(tx: Tx, erasureId: string, doneUntil: string): Promise<void> {
  await tx.query('UPDATE erasures SET done_until = $2 WHERE erasure_id = $1', [erasureId, doneUntil]);
}

/** Has an erasure continued after a time, behind those that are due before. */
export async function continueAfter(db: Db, erasureId: string, waitMs: number): Promise<void> {
  const update = `UPDATE erasures SET next_at = clock_timestamp() + $2 * interval '1 ms' WHERE erasure_id = $1`;
  await db.system((tx) => tx.query(update, [erasureId, waitMs]));
}

/** Ends an erasure and forgets what was selected. */
export async function finish(tx: Tx, erasureId: string): Promise<void> {
  const update = `UPDATE erasures SET finished_at = clock_timestamp(), selection = '{}', done_until = '' WHERE erasure_id = $1`;
  await tx.query(update, [erasureId]);
}
