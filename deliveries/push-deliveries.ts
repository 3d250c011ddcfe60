import type { Tx } from '../db/pool.js';
import type { MessageRef } from '../messages/core.js';
import type { AttemptResult } from './attempts.js';

/** Identifies a push-notification config of a message. */
export interface OfConfig extends MessageRef {
  config_id: string;
}

/** Identifies a delivery: the notification of one config about one state. */
export interface OfDelivery extends OfConfig {
  sequence: number;
}

/** How a delivery ends: the receiver accepted it, all attempts failed, or its config was removed. */
export type DeliveryEnd = 'delivered' | 'failed' | 'dropped';

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
