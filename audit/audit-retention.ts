import type { Db } from '../db/pool.js';
import type { Logger } from '../runtime/logger.js';
import { Loop } from '../runtime/loop.js';

const EVERY_MS = 3_600_000;
/** Rows that one transaction deletes. */
const BATCH = 5_000;
const DELETE_OLD = `
  DELETE FROM audit_entries WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM audit_entries WHERE at < now() - $1 * interval '1 day' ORDER BY at LIMIT ${BATCH})) RETURNING 1`;

/** Deletes the entries of all tenants that are older than so many days. Several processes may do it at once. */
export async function deleteOldEntries(db: Db, days: number): Promise<void> {
  while ((await db.system((tx) => tx.query(DELETE_OLD, [days]))).length === BATCH);
}

/** The loop that does so, not started yet; null where entries are kept for ever. */
export function createAuditRetention(db: Db, days: number | undefined, log: Logger): Loop | null {
  if (days === undefined) return null;
  const work = () => deleteOldEntries(db, days);
  return new Loop({ name: 'audit retention', intervalMs: EVERY_MS, immediate: true, work, log });
}
