import type { Logger } from '../runtime/logger.js';
import { Loop } from '../runtime/loop.js';
import type { Db } from './pool.js';

const EVERY_MS = 3_600_000;
/** Keys deleted in one transaction. */
const BATCH = 10_000;

const DELETE_EXPIRED = `
  WITH deleted AS (
    DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM idempotency_keys WHERE expires_at < now() LIMIT ${BATCH})) RETURNING 1)
  SELECT count(*) AS deleted FROM deleted`;

/** Makes the partitions of the coming months and deletes expired idempotency keys. Any number of processes may do it at once. */
export async function maintainTables(db: Db): Promise<void> {
  await db.system((tx) => tx.query('SELECT create_partitions()'));
  for (let deleted = BATCH; deleted === BATCH; ) {
    const [row] = await db.system((tx) => tx.query<{ deleted: number }>(DELETE_EXPIRED));
    deleted = row?.deleted ?? 0;
  }
}

/** `maintainTables`, every hour. */
export function createMaintenance(db: Db, log: Logger): Loop {
  return new Loop({ name: 'table maintenance', intervalMs: EVERY_MS, work: () => maintainTables(db), log });
}
