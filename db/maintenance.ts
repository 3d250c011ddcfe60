import type { Logger } from '../runtime/logger.js';
import { Loop } from '../runtime/loop.js';
import type { Db } from './pool.js';

const EVERY_MS = 600_000;
/** Rows that one transaction deletes. */
const BATCH = 10_000;

const DELETE_EXPIRED = `
  DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM idempotency_keys WHERE expires_at < now() ORDER BY expires_at LIMIT ${BATCH})) RETURNING 1`;

/** Canceled messages whose workflows read the row ten minutes ago or earlier: their agents have been notified. */
const DELETE_CANCELED = `
  DELETE FROM running_messages WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM running_messages
     WHERE state = 'canceled' AND wake_requested_at IS NULL AND supervised_at < now() - interval '10 minutes'
     LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)) RETURNING 1`;

/** Offers that no node accepted in time. Their workflows have read them by then. */
const DELETE_OFFERS = `DELETE FROM dispatch_transfers WHERE expires_at < now() - interval '10 minutes'`;

/** Batches of the event sequencer, which needs the newest only. */
const DELETE_BATCHES = `
  DELETE FROM event_batches WHERE positioned_at < now() - interval '1 hour' AND last_position < group_position_at(event_head())`;

/** Usage that no report reads any more, of hours before the given days: by tenant, since that is where the keys begin. */
const deleteUsage = (table: 'usage_hours' | 'usage_sessions', days: number) => `
  DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
    SELECT old.ctid FROM tenants t CROSS JOIN LATERAL (
      SELECT u.ctid FROM ${table} u WHERE u.tenant_id = t.tenant_id AND u.hour < now() - interval '${days} days'
       ORDER BY u.hour LIMIT ${BATCH}) old LIMIT ${BATCH})) RETURNING 1`;
/** Rows by session are as many as sessions; those of agents are kept for who evaluates them in SQL. */
const USAGE_DAYS = { usage_sessions: 32, usage_hours: 400 };
/** The processes that have not counted tool calls for a day have ended. */
const DELETE_SOURCES = `DELETE FROM usage_batches WHERE added_at < now() - interval '7 days'`;

/**
 * Creates the partitions of the coming months, and deletes expired idempotency keys and offers, the running rows of canceled messages, old
 * batches of the event sequencer, and old usage. Processes may run it concurrently.
 */
export async function maintainTables(db: Db): Promise<void> {
  const results = await Promise.allSettled([
    db.system((tx) => tx.query('SELECT create_partitions()')),
    deleteAll(db, DELETE_CANCELED),
    db.system((tx) => tx.query(DELETE_OFFERS)),
    db.system((tx) => tx.query(DELETE_BATCHES)),
    deleteAll(db, deleteUsage('usage_sessions', USAGE_DAYS.usage_sessions)),
    deleteAll(db, deleteUsage('usage_hours', USAGE_DAYS.usage_hours)),
    db.system((tx) => tx.query(DELETE_SOURCES)),
    deleteAll(db, DELETE_EXPIRED),
  ]);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

/** @param batch deletes at most `BATCH` rows, and returns them */
async function deleteAll(db: Db, batch: string): Promise<void> {
  while ((await db.system((tx) => tx.query(batch))).length === BATCH);
}

export function createMaintenance(db: Db, log: Logger): Loop {
  return new Loop({ name: 'table maintenance', intervalMs: EVERY_MS, work: () => maintainTables(db), log });
}
