import type { Db } from '../db/pool.js';

/** The retention of ended deliveries: for so long they are listed and can be redelivered. */
const RETENTION_DAYS = 7;
/** A delivery that waits longer than this for its receiver has failed. */
const WAITING_HOURS = 24;
const BATCH = 5_000;

const ENDED = ['push_deliveries', 'deliveries'].map(
  (table) => `
  DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM ${table} WHERE ended_at < now() - interval '${RETENTION_DAYS} days' ORDER BY ended_at LIMIT ${BATCH}))`,
);
const TOKENS = `
  DELETE FROM callback_tokens WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM callback_tokens WHERE expires_at < now() - interval '${RETENTION_DAYS} days' ORDER BY expires_at LIMIT ${BATCH}))`;

const PROVEN = `
  DELETE FROM proven_receivers WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM proven_receivers WHERE answered_at < now() - interval '${RETENTION_DAYS} days' LIMIT ${BATCH}))`;

/** In the log of a delivery, as of a push notification. */
const ATTEMPT = `jsonb_build_object('at', to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'status_code', NULL,
    'success', false, 'error', 'RECEIVER_UNAVAILABLE')`;
const WAITED_TOO_LONG = `
  WITH late AS (
    DELETE FROM delivery_queue WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM delivery_queue WHERE started_at IS NULL AND queued_at < now() - interval '${WAITING_HOURS} hours'
       ORDER BY queued_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED))
    RETURNING tenant_id, queue_id, kind, input),
  alerts AS (
    UPDATE deliveries d SET status = 'failed', ended_at = now(), attempts = d.attempts || (${ATTEMPT} || '{"response_time_ms": 0}')
      FROM late WHERE late.kind = 'alert' AND d.tenant_id = late.tenant_id AND d.delivery_id = late.queue_id AND d.status = 'pending')
  UPDATE push_deliveries p SET outcome = 'failed', ended_at = now(), wake_at = NULL, attempts = p.attempts || (${ATTEMPT} || '{"duration_ms": 0}')
    FROM late WHERE late.kind = 'push' AND p.tenant_id = late.tenant_id AND p.message_id = late.input ->> 'message_id'
     AND p.config_id = late.input ->> 'config_id' AND p.ended_at IS NULL`;

/** Deletes deliveries that ended a week ago, tokens that ran out and proofs that are as old, and gives up on what has waited for its receiver for a day. */
export async function purgeDeliveries(db: Db): Promise<void> {
  for (const statement of [...ENDED, TOKENS, PROVEN, WAITED_TOO_LONG]) await db.system((tx) => tx.query(statement));
}
