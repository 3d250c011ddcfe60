import type { Db, Tx } from '../db/pool.js';

/** What became of the dispatches to an instance. */
export interface DispatchTotals {
  /** The newest that went out. */
  last_dispatch_at: Date | null;
  /** Answered; a question to a human is an answer too. */
  dispatches_succeeded: number;
  /** Failed, or not reached. Canceled ones are neither. */
  dispatches_failed: number;
  /** The code of the newest failure. */
  last_dispatch_error: string | null;
}

/** Younger dispatches are not summed up yet: a transaction that began then may still commit one. */
const SETTLED_AFTER = "interval '10 minutes'";
/** Dispatches summed up in one transaction. */
const STEP = 50_000;

const OF_INSTANCE = 'd.tenant_id = $1 AND d.instance_id = $2';
const FAILED = `(d.state IN ('failed', 'lost') OR d.state = 'released' AND d.error_code = 'CONNECT_FAILED')`;
const COUNTS = `
  count(*) FILTER (WHERE d.state IN ('completed', 'input_required')) AS succeeded, count(*) FILTER (WHERE ${FAILED}) AS failed,
  (array_agg(d.error_code ORDER BY d.ended_at DESC) FILTER (WHERE ${FAILED}))[1] AS last_error,
  coalesce(max(d.ended_at) FILTER (WHERE ${FAILED}), '-infinity') AS last_failed_at`;
/** Of the newer dispatches, else of those before: one that began earlier may have ended later. */
const LAST_ERROR = (newer: string): string =>
  `CASE WHEN ${newer}.last_failed_at > t.last_failed_at THEN ${newer}.last_error ELSE t.last_error END`;

const LOCK = `
  INSERT INTO dispatch_totals (tenant_id, instance_id) VALUES ($1, $2)
  ON CONFLICT (tenant_id, instance_id) DO UPDATE SET until = dispatch_totals.until`;

/** Everything before the oldest that is open, a step at most. */
const FORWARD = `
  WITH bound AS (
    SELECT least(now() - ${SETTLED_AFTER},
             (SELECT min(d.created_at) FROM dispatches d WHERE ${OF_INSTANCE} AND d.state IN ('open', 'sent'))) AS settled,
           (SELECT d.created_at FROM dispatches d WHERE ${OF_INSTANCE} AND d.created_at >= t.until
             ORDER BY d.created_at OFFSET $3 LIMIT 1) AS step, t.until AS since
      FROM dispatch_totals t WHERE t.tenant_id = $1 AND t.instance_id = $2),
  counted AS (
    SELECT ${COUNTS} FROM dispatches d, bound
     WHERE ${OF_INSTANCE} AND d.created_at >= bound.since AND d.created_at < least(bound.settled, bound.step))
  UPDATE dispatch_totals t SET until = greatest(t.until, least(bound.settled, bound.step)),
    succeeded = t.succeeded + counted.succeeded, failed = t.failed + counted.failed,
    last_error = ${LAST_ERROR('counted')}, last_failed_at = greatest(t.last_failed_at, counted.last_failed_at)
    FROM bound, counted WHERE t.tenant_id = $1 AND t.instance_id = $2
  RETURNING bound.step < bound.settled AND bound.step > bound.since AS more`;

const READ = `
  SELECT t.succeeded + recent.succeeded AS dispatches_succeeded, t.failed + recent.failed AS dispatches_failed,
         ${LAST_ERROR('recent')} AS last_dispatch_error,
         (SELECT d.sent_at FROM dispatches d WHERE ${OF_INSTANCE} AND d.sent_at IS NOT NULL
           ORDER BY d.created_at DESC LIMIT 1) AS last_dispatch_at
    FROM dispatch_totals t
    CROSS JOIN LATERAL (SELECT ${COUNTS} FROM dispatches d WHERE ${OF_INSTANCE} AND d.created_at >= t.until) recent
   WHERE t.tenant_id = $1 AND t.instance_id = $2`;

/** @returns whether there is more to sum up */
async function bringForward(tx: Tx, tenantId: string, instanceId: string, step: number): Promise<boolean> {
  await tx.query(LOCK, [tenantId, instanceId]);
  const [row] = await tx.query<{ more: boolean | null }>(FORWARD, [tenantId, instanceId, step]);
  return row?.more === true;
}

/**
 * Counts the dispatches to an instance from the record. Nothing is written while messages run: who asks sums up what is over, in steps,
 * and counts what is newer, so that asking often costs little however many there were.
 * @param step dispatches summed up in one transaction, at least 1
 */
export async function dispatchTotals(
  db: Db,
  tenantId: string,
  instanceId: string,
  step = STEP,
): Promise<DispatchTotals> {
  while (await db.tenant(tenantId, (tx) => bringForward(tx, tenantId, instanceId, step)));
  const [totals] = await db.tenant(tenantId, (tx) =>
    tx.query<DispatchTotals & Record<string, unknown>>(READ, [tenantId, instanceId]),
  );
  if (!totals) throw new Error('the totals of an instance are gone');
  return totals;
}
