import type { Logger } from '../runtime/logger.js';
import { Loop } from '../runtime/loop.js';
import { allOrFirstFailure } from '../runtime/promises/all-or-first-failure.js';
import type { Db } from './pool.js';

const EVERY_MS = 600_000;
/** Rows that one transaction deletes. */
const BATCH = 10_000;

const DELETE_EXPIRED = `
  DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM idempotency_keys WHERE expires_at < now() ORDER BY expires_at LIMIT ${BATCH})) RETURNING 1`;

/** Offers that no node accepted in time. Their dispatches have ended by then. */
const DELETE_OFFERS = `DELETE FROM dispatch_transfers WHERE expires_at < now() - interval '10 minutes'`;

/** Batches of the event sequencer, which needs the newest only. */
const DELETE_BATCHES = `
  DELETE FROM event_batches WHERE positioned_at < now() - interval '1 hour' AND last_position < group_position_at(event_head())`;

interface UsageTable {
  name: string;
  /** The column of its time. */
  at: 'hour' | 'day';
  /** How long its rows are kept. */
  days: number;
  /** The tenant of a row `o`, as it is in `tenants`. */
  tenant: string;
}

/**
 * Deletes usage that no report reads any more, and all usage of tenants that are gone. The keys begin with the tenant, so it finds the tenants
 * by going from one to the next in the key.
 */
const deleteUsage = ({ name, at, days, tenant }: UsageTable) => `
  WITH RECURSIVE owner AS (
    (SELECT u.tenant_id FROM ${name} u ORDER BY u.tenant_id LIMIT 1)
    UNION ALL
    SELECT (SELECT u.tenant_id FROM ${name} u WHERE u.tenant_id > o.tenant_id ORDER BY u.tenant_id LIMIT 1) FROM owner o WHERE o.tenant_id IS NOT NULL)
  DELETE FROM ${name} WHERE ctid = ANY (ARRAY(
    SELECT old.ctid FROM (
      SELECT o.tenant_id, CASE WHEN EXISTS (SELECT 1 FROM tenants t WHERE t.tenant_id = ${tenant}) THEN now() - interval '${days} days'
        ELSE 'infinity' END AS bound FROM owner o WHERE o.tenant_id IS NOT NULL) o CROSS JOIN LATERAL (
      SELECT u.ctid FROM ${name} u WHERE u.tenant_id = o.tenant_id AND u.${at} < o.bound ORDER BY u.${at} LIMIT ${BATCH}) old LIMIT ${BATCH}))
  RETURNING 1`;
/**
 * `usage_sessions` has a row for each session, and `usage_by_key` up to one for each user and hour. The smaller tables are kept longer, for
 * evaluation in SQL.
 */
const USAGE: UsageTable[] = [
  { name: 'usage_sessions', at: 'hour', days: 32, tenant: "'ten_' || o.tenant_id" },
  { name: 'usage_by_key', at: 'hour', days: 32, tenant: 'o.tenant_id' },
  { name: 'usage_hours', at: 'hour', days: 400, tenant: 'o.tenant_id' },
  { name: 'usage_days', at: 'day', days: 400, tenant: 'o.tenant_id' },
];
/** Processes that have counted no tool calls for seven days have ended. */
const DELETE_SOURCES = `DELETE FROM usage_batches WHERE added_at < now() - interval '7 days'`;

/**
 * Creates the partitions of the coming months, and deletes expired idempotency keys and offers, old
 * batches of the event sequencer, and old usage. Processes may run it concurrently.
 */
export async function maintainTables(db: Db): Promise<void> {
  await allOrFirstFailure([
    db.system((tx) => tx.query('SELECT create_partitions()')),
    db.system((tx) => tx.query(DELETE_OFFERS)),
    db.system((tx) => tx.query(DELETE_BATCHES)),
    ...USAGE.map((table) => deleteAll(db, deleteUsage(table))),
    db.system((tx) => tx.query(DELETE_SOURCES)),
    deleteAll(db, DELETE_EXPIRED),
  ]);
}

/** @param batch deletes at most `BATCH` rows, and returns them */
async function deleteAll(db: Db, batch: string): Promise<void> {
  while ((await db.system((tx) => tx.query(batch))).length === BATCH);
}

/** The loop of `maintainTables`, not started yet. */
export function createMaintenance(db: Db, log: Logger): Loop {
  return new Loop({ name: 'table maintenance', intervalMs: EVERY_MS, work: () => maintainTables(db), log });
}
