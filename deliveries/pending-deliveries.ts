import type { DeliveryInput, PushDeliveryInput } from '../contracts/workflows.js';
import type { Tx } from '../db/pool.js';
import type { AttemptResult } from './attempts.js';
import type { ChannelRow } from './channels/channel-store.js';
import type { NewDelivery, OfDelivery } from './delivery-store.js';
import type { PushConfigRow } from './push/push-config-store.js';
import { QUEUE_ID, queueIdOf } from './queue.js';
import type { Recipient, StoredRecipient } from './recipient.js';

/** A delivery whose turn it is, with whom it goes to now. */
export interface PendingDelivery extends OfDelivery, StoredRecipient, Record<string, unknown> {
  event_type: string;
  /** Of a push notification null until its first attempt. */
  body: Buffer | null;
  traceparent: string | null;
  max_attempts: number;
  /** Where it went, or was to go, when that was last looked at. */
  url: string;
  receiver: string;
  /** Attempts so far, and those of before the last redelivery. */
  made: number;
  attempts_before: number;
  /** Since the last attempt; null before the first. */
  since_last_ms: number | null;
  /** Of a push notification: the change that it is about. */
  changed_at: Date | null;
  /** Of an alert rule; null when rule or channel was removed or switched off. */
  channel: Omit<ChannelRow, 'secrets'> | null;
  /** The credentials that wrote the rule. */
  writers: string[] | null;
  /** Of a push notification; null when it was removed. */
  config: Omit<PushConfigRow, 'secrets'> | null;
}

/**
 * The recipient of an email (`mail_to` of a delivery `d` over a channel `c`): the one it was written for while the channel has it; else another
 * that the channel has got since, whom no delivery of the same event is for; NULL where there is none.
 */
export const MAIL_TO = `
  CASE WHEN c.type <> 'email' THEN '' WHEN c.config -> 'recipients' ? d.mail_to THEN d.mail_to
       ELSE (SELECT n.mail_to FROM jsonb_array_elements_text(c.config -> 'recipients') WITH ORDINALITY AS n (mail_to, place)
              WHERE NOT EXISTS (SELECT 1 FROM deliveries o WHERE o.tenant_id = d.tenant_id AND o.event_id = d.event_id
                                   AND o.rule_id = d.rule_id AND o.channel_id = d.channel_id AND o.mail_to = n.mail_to)
              ORDER BY n.place LIMIT 1) END AS mail_to`;

const READ = `
  SELECT d.tenant_id, d.delivery_id, d.event_type, d.body, d.traceparent, d.max_attempts, d.url, d.receiver, d.attempts_before, d.changed_at,
         jsonb_array_length(d.attempts) AS made,
         (extract(epoch FROM clock_timestamp() - (d.attempts -> -1 ->> 'at')::timestamptz) * 1000)::float8 AS since_last_ms,
         c.secrets AS channel_secrets, p.secrets AS config_secrets, r.writers, ${MAIL_TO},
         CASE WHEN c.enabled AND r.enabled THEN jsonb_build_object('channel_id', c.channel_id, 'rule_id', c.rule_id, 'type', c.type,
           'enabled', c.enabled, 'config', c.config) END AS channel,
         CASE WHEN p.config_id IS NOT NULL THEN jsonb_build_object('config_id', p.config_id, 'url', p.url, 'schemes', p.schemes,
           'protocol_version', p.protocol_version) END AS config
    FROM deliveries d LEFT JOIN alert_channels c USING (tenant_id, channel_id)
    LEFT JOIN alert_rules r ON r.tenant_id = d.tenant_id AND r.rule_id = d.rule_id
    LEFT JOIN push_configs p ON p.tenant_id = d.tenant_id AND p.message_id = d.message_id AND p.config_id = d.config_id
   WHERE d.tenant_id = $1 AND d.status = 'pending' AND d.delivery_id = `;
const READ_ALERT = `${READ} $2`;
const READ_PUSH = `${READ} (
  SELECT o.delivery_id FROM deliveries o WHERE o.tenant_id = $1 AND o.message_id = $2 AND o.config_id = $3 AND o.status = 'pending'
   ORDER BY o.sequence LIMIT 1)`;

/** The delivery of a place in the queue whose turn it is: of push notifications the oldest. Null when none is pending. */
export async function readPending(tx: Tx, input: DeliveryInput): Promise<PendingDelivery | null> {
  const [row] =
    'config_id' in input
      ? await tx.query<PendingDelivery>(READ_PUSH, [input.tenant_id, input.message_id, input.config_id])
      : await tx.query<PendingDelivery>(READ_ALERT, [input.tenant_id, input.delivery_id]);
  return row ?? null;
}

/** Stores the bytes that every further attempt of a delivery sends. The caller holds the lock of its place in the queue. */
export async function storeBody(tx: Tx, { tenant_id, delivery_id }: OfDelivery, body: Buffer): Promise<void> {
  const store = 'UPDATE deliveries SET body = $3 WHERE tenant_id = $1 AND delivery_id = $2';
  await tx.query(store, [tenant_id, delivery_id, body]);
}

/** Whom a delivery goes to has another address by now: the next attempt goes there. */
export async function moveDelivery(
  tx: Tx,
  { tenant_id, delivery_id }: OfDelivery,
  { url, receiver, mail_to }: Pick<Recipient, 'url' | 'receiver' | 'mail_to'>,
): Promise<void> {
  const move = 'UPDATE deliveries SET url = $3, receiver = $4, mail_to = $5 WHERE tenant_id = $1 AND delivery_id = $2';
  await tx.query(move, [tenant_id, delivery_id, url, receiver, mail_to]);
}

/** A push-notification config has another address: what waits for the old receiver waits for the new one. A delivery under way looks by itself. */
export async function movePending(
  tx: Tx,
  tenantId: string,
  config: Pick<PushDeliveryInput, 'message_id' | 'config_id'>,
  { url, receiver }: Pick<NewDelivery, 'url' | 'receiver'>,
): Promise<void> {
  const queued = `
    UPDATE delivery_queue SET receiver = $3 WHERE tenant_id = $1 AND queue_id = $2 AND started_at IS NULL AND receiver <> $3 RETURNING 1`;
  if ((await tx.query(queued, [tenantId, queueIdOf(config), receiver])).length === 0) return;
  await tx.query(
    `UPDATE deliveries SET url = $4, receiver = $5 WHERE tenant_id = $1 AND message_id = $2 AND config_id = $3 AND status = 'pending'`,
    [tenantId, config.message_id, config.config_id, url, receiver],
  );
}

/**
 * Logs an attempt.
 * @param made the attempts before it
 * @param end null when another attempt follows
 * @returns false when it was logged before, or the delivery has ended
 */
export async function logAttempt(
  tx: Tx,
  { tenant_id, delivery_id, made }: Pick<PendingDelivery, 'tenant_id' | 'delivery_id' | 'made'>,
  { status_code, error, duration_ms }: AttemptResult,
  success: boolean,
  end: 'delivered' | 'failed' | null,
): Promise<boolean> {
  const attempt = { status_code, response_time_ms: duration_ms, success, ...(error !== null && { error }) };
  const logged = await tx.query(
    `UPDATE deliveries SET attempts = attempts || (jsonb_build_object('at', to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) || $3::jsonb),
       status = coalesce($4, status), ended_at = CASE WHEN $4 IS NOT NULL THEN now() END
      WHERE tenant_id = $1 AND delivery_id = $2 AND status = 'pending' AND jsonb_array_length(attempts) = $5 RETURNING 1`,
    [tenant_id, delivery_id, JSON.stringify(attempt), end, made],
  );
  return logged.length > 0;
}

/** Deliveries: of a rule, of a push-notification config, or one. */
type Which = { rule_id: string } | { message_id: string; config_id: string } | { delivery_id: string };

/** Ends deliveries that nobody is to receive any more. Those that are not pending stay. */
export async function dropPending(tx: Tx, tenantId: string, which: Which): Promise<void> {
  const columns = Object.keys(which).map((column, index) => `d.${column} = $${index + 2}`);
  const values = [tenantId, ...Object.values(which)];
  const pending = `d.tenant_id = $1 AND ${columns.join(' AND ')} AND d.status = 'pending'`;
  // The queue first, as every other transaction locks them.
  const lock = `
    SELECT q.queue_id FROM delivery_queue q WHERE q.tenant_id = $1 AND q.queue_id IN (SELECT ${QUEUE_ID} FROM deliveries d WHERE ${pending})
     ORDER BY q.queue_id FOR UPDATE`;
  const places = await tx.query<{ queue_id: string }>(lock, values);
  await tx.query(`UPDATE deliveries d SET status = 'dropped', ended_at = now() WHERE ${pending}`, values);
  const ids = places.map(({ queue_id }) => queue_id);
  await tx.query('DELETE FROM delivery_queue WHERE tenant_id = $1 AND queue_id = ANY ($2)', [tenantId, ids]);
}
