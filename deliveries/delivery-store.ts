import type { DeliveryAttempt } from '../contracts/api/deliveries.js';
import type { Tx } from '../db/pool.js';
import type { AlertDeliveryInput, DeliveryInput, PushDeliveryInput } from '../workflows/definitions.js';
import type { AttemptResult } from './attempts.js';
import type { ChannelRow } from './channels/channel-store.js';
import type { PushConfigRow } from './push/push-config-store.js';
import { enqueue } from './queue.js';

/** Deliveries of one tenant that may be pending for one receiver. Further ones fail at once, and can be redelivered. */
const PENDING_MAX = 10_000;
/** Rows of one INSERT. */
const INSERT_BATCH = 500;

/** Identifies a delivery. */
export interface OfDelivery {
  tenant_id: string;
  delivery_id: string;
}

/** Where a delivery goes, and how often it is tried. */
interface Sending {
  url: string;
  receiver: string;
  /** Of the trace that it belongs to. */
  traceparent?: string | undefined;
  max_attempts: number;
}

/** A delivery of an event to a channel of a rule. @see Sending */
export interface NewAlertDelivery extends AlertDeliveryInput, Sending {
  /** The sealed envelope. */
  body: Buffer;
}

/** A delivery of a change of a task's state to a push-notification config. Its body is sealed at the first attempt. */
export interface NewPushDelivery extends PushDeliveryInput, Sending {
  /** Of the change, as a decimal number. */
  sequence: string;
  /** Of the change, as Postgres writes it. */
  changed_at: string;
}

export type NewDelivery = NewAlertDelivery | NewPushDelivery;

const COUNT_PENDING = `
  SELECT g.tenant_id, g.receiver, (SELECT count(*) FROM (
           SELECT 1 FROM deliveries d WHERE d.tenant_id = g.tenant_id AND d.receiver = g.receiver AND d.status = 'pending'
            LIMIT ${PENDING_MAX}) q) AS pending
    FROM jsonb_to_recordset($1) AS g (tenant_id text, receiver text)`;
const INSERT = `
  INSERT INTO deliveries (tenant_id, delivery_id, event_type, session_id, event_id, rule_id, channel_id, message_id, config_id, sequence, changed_at,
      url, receiver, body, traceparent, max_attempts, status, attempts, ended_at)
    SELECT tenant_id, delivery_id, event_type, session_id, event_id, rule_id, channel_id, message_id, config_id, sequence, changed_at,
           url, receiver, decode(body, 'base64'), traceparent, max_attempts,
           CASE WHEN refused IS NULL THEN 'pending' ELSE 'failed' END, coalesce(refused, '[]'), CASE WHEN refused IS NOT NULL THEN now() END
      FROM jsonb_to_recordset($1) AS d (tenant_id text, delivery_id text, event_type text, session_id text, event_id text, rule_id text,
        channel_id text, message_id text, config_id text, sequence bigint, changed_at timestamptz, url text, receiver text, body text,
        traceparent text, max_attempts integer, refused jsonb)
    ON CONFLICT DO NOTHING`;

/** The log of a delivery for which there was no room in the queue. */
const REFUSED: Omit<DeliveryAttempt, 'at'> = {
  status_code: null,
  response_time_ms: 0,
  success: false,
  error: 'QUEUE_FULL',
};

const receiverKey = ({ tenant_id, receiver }: { tenant_id: string; receiver: string }) => `${tenant_id} ${receiver}`;

/** Those of the deliveries for which there is no room, because too many are pending for their receivers. */
async function withoutRoom(tx: Tx, deliveries: NewDelivery[]): Promise<Set<NewDelivery>> {
  const receivers = new Map(
    deliveries.map(({ tenant_id, receiver }) => [receiverKey({ tenant_id, receiver }), { tenant_id, receiver }]),
  );
  const rows = await tx.query<{ tenant_id: string; receiver: string; pending: number }>(
    COUNT_PENDING,
    [JSON.stringify([...receivers.values()])],
    'count_pending_deliveries',
  );
  const pending = new Map(rows.map((row) => [receiverKey(row), row.pending]));
  const refused = deliveries.filter((delivery) => {
    const before = pending.get(receiverKey(delivery)) ?? 0;
    pending.set(receiverKey(delivery), before + 1);
    return before >= PENDING_MAX;
  });
  return new Set(refused);
}

/** Writes deliveries and queues them, in the transaction that decided on them. */
export async function writeDeliveries(tx: Tx, deliveries: NewDelivery[]): Promise<void> {
  if (deliveries.length === 0) return;
  const refused = await withoutRoom(tx, deliveries);
  const at = new Date().toISOString();
  for (let from = 0; from < deliveries.length; from += INSERT_BATCH) {
    const batch = deliveries.slice(from, from + INSERT_BATCH);
    const rows = batch.map((delivery) => ({
      ...delivery,
      ...('body' in delivery && { body: delivery.body.toString('base64') }),
      ...(refused.has(delivery) && { refused: [{ at, ...REFUSED }] }),
    }));
    await tx.query(INSERT, [JSON.stringify(rows)], 'insert_deliveries');
    const queued = batch.filter((delivery) => !refused.has(delivery));
    await enqueue(
      tx,
      queued.map((delivery) => ({ input: inputOf(delivery), receiver: delivery.receiver })),
    );
  }
}

/** The columns of a delivery that name it. */
export interface DeliveryIds extends OfDelivery {
  session_id: string;
  event_type: string;
  event_id?: string | null;
  rule_id?: string | null;
  channel_id?: string | null;
  message_id?: string | null;
  config_id?: string | null;
}

/** The input of a delivery's workflow. */
export function inputOf(ids: DeliveryIds): DeliveryInput {
  const { tenant_id, session_id, delivery_id, event_type } = ids;
  const { event_id, rule_id, channel_id, message_id, config_id } = ids;
  const any = { tenant_id, session_id, delivery_id, event_type };
  if (message_id && config_id) return { ...any, message_id, config_id };
  return { ...any, event_id: event_id ?? '', rule_id: rule_id ?? '', channel_id: channel_id ?? '' };
}

/** A delivery whose turn it is, with whom it goes to now. */
export interface PendingDelivery extends OfDelivery, Record<string, unknown> {
  event_type: string;
  /** Of a push notification null until its first attempt. */
  body: Buffer | null;
  traceparent: string | null;
  max_attempts: number;
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
  channel_secrets: Buffer | null;
  /** Of a push notification; null when it was removed. */
  config: Omit<PushConfigRow, 'secrets'> | null;
  config_secrets: Buffer | null;
}

const READ = `
  SELECT d.tenant_id, d.delivery_id, d.event_type, d.body, d.traceparent, d.max_attempts, d.receiver, d.attempts_before, d.changed_at,
         jsonb_array_length(d.attempts) AS made,
         (extract(epoch FROM clock_timestamp() - (d.attempts -> -1 ->> 'at')::timestamptz) * 1000)::float8 AS since_last_ms,
         c.secrets AS channel_secrets, p.secrets AS config_secrets,
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

/** Stores the bytes that every attempt of a push notification sends. */
export async function storeBody(tx: Tx, { tenant_id, delivery_id }: OfDelivery, body: Buffer): Promise<void> {
  const store = 'UPDATE deliveries SET body = $3 WHERE tenant_id = $1 AND delivery_id = $2 AND body IS NULL';
  await tx.query(store, [tenant_id, delivery_id, body]);
}

/** Whom a delivery goes to has another address by now: the next attempt goes there. */
export async function moveDelivery(
  tx: Tx,
  { tenant_id, delivery_id }: OfDelivery,
  { url, receiver }: Pick<Sending, 'url' | 'receiver'>,
): Promise<void> {
  const move = 'UPDATE deliveries SET url = $3, receiver = $4 WHERE tenant_id = $1 AND delivery_id = $2';
  await tx.query(move, [tenant_id, delivery_id, url, receiver]);
}

/** A push-notification config has another address: what waits for the old receiver waits for the new one. A delivery under way looks by itself. */
export async function movePending(
  tx: Tx,
  tenantId: string,
  { message_id, config_id }: Pick<PushDeliveryInput, 'message_id' | 'config_id'>,
  { url, receiver }: Pick<Sending, 'url' | 'receiver'>,
): Promise<void> {
  const place = `${message_id}/${config_id}`;
  const queued = `
    UPDATE delivery_queue SET receiver = $3 WHERE tenant_id = $1 AND queue_id = $2 AND started_at IS NULL AND receiver <> $3 RETURNING 1`;
  if ((await tx.query(queued, [tenantId, place, receiver])).length === 0) return;
  await tx.query(
    `UPDATE deliveries SET url = $4, receiver = $5 WHERE tenant_id = $1 AND message_id = $2 AND config_id = $3 AND status = 'pending'`,
    [tenantId, message_id, config_id, url, receiver],
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
  const queueId = "CASE WHEN d.config_id IS NULL THEN d.delivery_id ELSE d.message_id || '/' || d.config_id END";
  // The queue first, as every other transaction locks them.
  const lock = `
    SELECT q.queue_id FROM delivery_queue q WHERE q.tenant_id = $1 AND q.queue_id IN (SELECT ${queueId} FROM deliveries d WHERE ${pending})
     ORDER BY q.queue_id FOR UPDATE`;
  const places = await tx.query<{ queue_id: string }>(lock, values);
  await tx.query(`UPDATE deliveries d SET status = 'dropped', ended_at = now() WHERE ${pending}`, values);
  const ids = places.map(({ queue_id }) => queue_id);
  await tx.query('DELETE FROM delivery_queue WHERE tenant_id = $1 AND queue_id = ANY ($2)', [tenantId, ids]);
}
