import type { Db, Tx } from '../db/pool.js';
import type { OfMessage } from './push.js';

/** The config of a message that is told. */
export interface OfConfig extends OfMessage {
  config_id: string;
}

/** One state that a config is to be told of. */
export interface OfDelivery extends OfConfig {
  sequence: number;
}

/** What came of one attempt. */
export interface AttemptResult {
  /** Null when no answer came. */
  status_code: number | null;
  /** Why there was none, or none that counts: a code of the outbound client. */
  error: string | null;
  duration_ms: number;
}

/** How the telling of a state ends: taken, given up, or its config removed. */
export type DeliveryEnd = 'delivered' | 'failed' | 'dropped';

/** Moving the mark claims it: several nodes share the work, and what one that dies has claimed is called for again. */
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
 * Claims deliveries that are due, the longest due first, and gives the configs they are for.
 * @param againMs when they are due again, should they not have ended by then
 */
export async function claimDue(db: Db, most: number, againMs: number): Promise<(OfConfig & { session_id: string })[]> {
  return db.system((tx) => tx.query<OfConfig & { session_id: string }>(CLAIM, [most, againMs], 'claim_pushes'));
}

const NEXT = `
  SELECT d.sequence, d.state, jsonb_array_length(d.attempts) AS attempts,
         c.config_id IS NULL OR m.message_id IS NULL AS orphaned
    FROM push_deliveries d LEFT JOIN push_configs c USING (tenant_id, message_id, config_id)
    LEFT JOIN messages m USING (tenant_id, message_id)
   WHERE d.tenant_id = $1 AND d.message_id = $2 AND d.config_id = $3 AND d.ended_at IS NULL
   ORDER BY d.sequence LIMIT 1`;

/** The oldest state that a config is still to be told of, with the attempts made so far. `orphaned`: the config is gone, or the message. */
export async function nextDelivery(
  tx: Tx,
  of: OfConfig,
): Promise<{ sequence: number; state: string; attempts: number; orphaned: boolean } | null> {
  const [row] = await tx.query<{ sequence: number; state: string; attempts: number; orphaned: boolean }>(NEXT, [
    of.tenant_id,
    of.message_id,
    of.config_id,
  ]);
  return row ?? null;
}

/** Ends whatever a config is still to be told of. */
export async function dropDeliveries(tx: Tx, of: OfConfig): Promise<void> {
  await tx.query(
    `UPDATE push_deliveries SET outcome = 'dropped', ended_at = now(), wake_at = NULL
      WHERE tenant_id = $1 AND message_id = $2 AND config_id = $3 AND ended_at IS NULL`,
    [of.tenant_id, of.message_id, of.config_id],
  );
}

/**
 * Logs an attempt; said again, it changes nothing.
 * @param attempt its number, from 1
 * @param end null where another attempt follows
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

/** Deletes the log of what ended so many days ago, at most `most` rows of it. */
export async function purgeDeliveries(db: Db, days: number, most: number): Promise<void> {
  await db.system((tx) => tx.query(PURGE, [days, most]));
}
