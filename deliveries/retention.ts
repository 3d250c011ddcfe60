import type { Db } from '../db/pool.js';

/** The retention of ended deliveries: for so long they are listed and can be redelivered. */
const RETENTION_DAYS = 7;
/** For so long after its time a callback token is known as one that has expired; afterwards as none at all. A row is a hash and ids. */
const TOKEN_RETENTION_DAYS = 90;
/** A delivery that waits longer than this for its receiver has failed. */
const WAITING_HOURS = 24;
/** Rows that one transaction deletes or ends. */
const BATCH = 5_000;

const olderThan = (table: string, column: string, days: number) => `
  DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM ${table} WHERE ${column} < now() - interval '${days} days' ORDER BY ${column} LIMIT ${BATCH})) RETURNING 1`;

const DELETE_OLD = [
  olderThan('deliveries', 'ended_at', RETENTION_DAYS),
  olderThan('callback_tokens', 'expires_at', TOKEN_RETENTION_DAYS),
  // A receiver that is still probed changes with each probe.
  olderThan('receiver_breakers', 'changed_at', RETENTION_DAYS),
];

/** In the log of a delivery. */
const ATTEMPT = `jsonb_build_object('at', to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'status_code', NULL,
    'response_time_ms', 0, 'success', false, 'error', 'RECEIVER_UNAVAILABLE')`;
const WAITED_TOO_LONG = `
  WITH late AS (
    DELETE FROM delivery_queue WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM delivery_queue WHERE started_at IS NULL AND queued_at < now() - interval '${WAITING_HOURS} hours'
       ORDER BY queued_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED))
    RETURNING tenant_id, queue_id, input ->> 'message_id' AS message_id, input ->> 'config_id' AS config_id),
  alerts AS (
    UPDATE deliveries d SET status = 'failed', ended_at = now(), attempts = d.attempts || ${ATTEMPT}
      FROM late WHERE late.config_id IS NULL AND d.tenant_id = late.tenant_id AND d.delivery_id = late.queue_id AND d.status = 'pending'),
  notifications AS (
    UPDATE deliveries d SET status = 'failed', ended_at = now(), attempts = d.attempts || ${ATTEMPT}
      FROM late WHERE d.tenant_id = late.tenant_id AND d.message_id = late.message_id AND d.config_id = late.config_id AND d.status = 'pending')
  SELECT 1 FROM late`;

/**
 * Deletes deliveries that ended a week ago, tokens that ran out and breakers that are as old, and gives up on what has waited for its
 * receiver for a day: all of it, in short transactions.
 * @param isStopping asked after each transaction
 */
export async function purgeDeliveries(db: Db, isStopping: () => boolean = () => false): Promise<void> {
  for (const batch of [...DELETE_OLD, WAITED_TOO_LONG]) {
    while (!isStopping() && (await db.system((tx) => tx.query(batch))).length === BATCH) {}
  }
}
