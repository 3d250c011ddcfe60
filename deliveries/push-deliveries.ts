import type { Db, Tx } from '../db/pool.js';
import type { MessageRef } from '../messages/core.js';

/** Identifies a push-notification config of a message. */
export interface OfConfig extends MessageRef {
  config_id: string;
}

/** Identifies a delivery: the notification of one config about one state. */
export interface OfDelivery extends OfConfig {
  sequence: number;
}

/** The result of one attempt. */
export interface AttemptResult {
  /** Null when no response came. */
  status_code: number | null;
  /** Why there is no valid response: an error code of the outbound client. */
  error: string | null;
  duration_ms: number;
}

/** How a delivery ends: the receiver accepted it, all attempts failed, or its config was removed. */
export type DeliveryEnd = 'delivered' | 'failed' | 'dropped';

/** Claims deliveries by moving `wake_at`: nodes share the work, and a claim of a node that dies becomes due again. */
const CLAIM = `
  WITH due AS MATERIALIZED (
    SELECT tenant_id, message_id, config_id, sequence FROM push_deliveries
     WHERE wake_at <= now() ORDER BY wake_at LIMIT $1 FOR UPDATE SKIP LOCKED),
  claimed AS (
    UPDATE push_deliveries d SET wake_at = now() + $2 * interval '1 ms' FROM due
     WHERE d.tenant_id = due.tenant_id AND d.message_id = due.message_id AND d.config_id = due.config_id AND d.sequence = due.sequence
    RETURNING d.tenant_id, d.message_id, d.config_id)
  SELECT DISTINCT tenant_id, message_id, config_id, m.session_id FROM claimed JOIN messages m USING (tenant_id, message_id)`;

/**
 * Claims due deliveries, the longest due first.
 * @param againMs after how long a delivery that has not ended is due again
 * @returns the configs of these deliveries
 */
export async function claimDue(db: Db, limit: number, againMs: number): Promise<(OfConfig & { session_id: string })[]> {
  return db.system((tx) => tx.query<OfConfig & { session_id: string }>(CLAIM, [limit, againMs], 'claim_pushes'));
}

const NEXT = `
  SELECT d.sequence, d.state, jsonb_array_length(d.attempts) AS attempts,
         c.config_id IS NULL OR m.message_id IS NULL AS orphaned
    FROM push_deliveries d LEFT JOIN push_configs c USING (tenant_id, message_id, config_id)
    LEFT JOIN messages m USING (tenant_id, message_id)
   WHERE d.tenant_id = $1 AND d.message_id = $2 AND d.config_id = $3 AND d.ended_at IS NULL
   ORDER BY d.sequence LIMIT 1`;

interface NextDelivery extends Record<string, unknown> {
  sequence: number;
  state: string;
  /** Attempts so far. */
  attempts: number;
  /** The config or the message no longer exists. */
  orphaned: boolean;
}

/** The oldest unfinished delivery of a config; null when there is none. */
export async function nextDelivery(tx: Tx, of: OfConfig): Promise<NextDelivery | null> {
  const [row] = await tx.query<NextDelivery>(NEXT, [of.tenant_id, of.message_id, of.config_id]);
  return row ?? null;
}

/** Drops all unfinished deliveries of a config. */
export async function dropDeliveries(tx: Tx, of: OfConfig): Promise<void> {
  await tx.query(
    `UPDATE push_deliveries SET outcome = 'dropped', ended_at = now(), wake_at = NULL
      WHERE tenant_id = $1 AND message_id = $2 AND config_id = $3 AND ended_at IS NULL`,
    [of.tenant_id, of.message_id, of.config_id],
  );
}

/**
 * Logs an attempt. Idempotent.
 * @param attempt the number of the attempt, from 1
 * @param end null when another attempt follows
 */
export async function logAttempt(
  tx: Tx,
  of: OfDelivery,
  attempt: number,
  result: AttemptResult,
  end: DeliveryEnd | null,
): Promise<void> {
  await tx.query(
    `UPDATE push_deliveries SET attempts = attempts
         || (jsonb_build_object('at', now(), 'success', coalesce($7 = 'delivered', false)) || $6::jsonb),
       outcome = $7, ended_at = CASE WHEN $7 IS NOT NULL THEN now() END, wake_at = CASE WHEN $7 IS NULL THEN wake_at END
      WHERE tenant_id = $1 AND message_id = $2 AND config_id = $3 AND sequence = $4
        AND ended_at IS NULL AND jsonb_array_length(attempts) = $5 - 1`,
    [of.tenant_id, of.message_id, of.config_id, of.sequence, attempt, JSON.stringify(result), end],
  );
}

const PURGE = `
  DELETE FROM push_deliveries WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM push_deliveries WHERE ended_at < now() - $1 * interval '1 day' ORDER BY ended_at LIMIT $2))`;

/** Deletes at most `limit` deliveries that ended more than `days` days ago. */
export async function purgeDeliveries(db: Db, days: number, limit: number): Promise<void> {
  await db.system((tx) => tx.query(PURGE, [days, limit]));
}
