import type { DeliveryAttempt, DeliveryStatus } from '../contracts/api/deliveries.js';
import type { Tx } from '../db/pool.js';
import type { AlertDeliveryInput } from '../workflows/definitions.js';
import type { AttemptResult } from './attempts.js';
import type { ChannelRow } from './channels/channel-store.js';
import { enqueue } from './queue.js';

/** Deliveries of one tenant that may wait for one receiver. Further ones fail at once, and can be redelivered. */
const WAITING_MAX = 10_000;
/** Rows of one INSERT. */
const INSERT_BATCH = 500;

/** Identifies a delivery of a rule. */
export interface OfDelivery {
  tenant_id: string;
  delivery_id: string;
}

/** A delivery of an event to a channel of a rule. */
export interface NewDelivery extends AlertDeliveryInput {
  url: string;
  receiver: string;
  /** The sealed envelope. */
  body: Buffer;
  /** Of the trace that the event belongs to. */
  traceparent?: string | undefined;
  max_attempts: number;
}

const COUNT_WAITING = `
  SELECT count(*) AS waiting FROM (
    SELECT 1 FROM delivery_queue WHERE tenant_id = $1 AND receiver = $2 AND started_at IS NULL LIMIT ${WAITING_MAX}) q`;
const INSERT = `
  INSERT INTO deliveries (tenant_id, delivery_id, event_id, rule_id, channel_id, event_type, session_id, url, receiver, body, traceparent, max_attempts,
      status, attempts, ended_at)
    SELECT tenant_id, delivery_id, event_id, rule_id, channel_id, event_type, session_id, url, receiver, decode(body, 'base64'), traceparent, max_attempts,
           CASE WHEN refused IS NULL THEN 'pending' ELSE 'failed' END, coalesce(refused, '[]'), CASE WHEN refused IS NOT NULL THEN now() END
      FROM jsonb_to_recordset($1) AS d (tenant_id text, delivery_id text, event_id text, rule_id text, channel_id text, event_type text,
        session_id text, url text, receiver text, body text, traceparent text, max_attempts integer, refused jsonb)
    ON CONFLICT DO NOTHING`;

/** The log of a delivery for which there was no room in the queue. */
const REFUSED: Omit<DeliveryAttempt, 'at'> = {
  status_code: null,
  response_time_ms: 0,
  success: false,
  error: 'QUEUE_FULL',
};

function groupBy<Value>(values: Value[], keyOf: (value: Value) => string): Value[][] {
  const groups = new Map<string, Value[]>();
  for (const value of values) {
    const key = keyOf(value);
    const group = groups.get(key);
    if (group) group.push(value);
    else groups.set(key, [value]);
  }
  return [...groups.values()];
}

/** Writes deliveries and queues them, in the transaction that decided on them. */
export async function writeDeliveries(tx: Tx, deliveries: NewDelivery[]): Promise<void> {
  const refused = new Set<NewDelivery>();
  for (const group of groupBy(deliveries, ({ tenant_id, receiver }) => `${tenant_id} ${receiver}`)) {
    const [first] = group;
    const [count] = await tx.query<{ waiting: number }>(COUNT_WAITING, [first?.tenant_id, first?.receiver]);
    for (const late of group.slice(Math.max(0, WAITING_MAX - (count?.waiting ?? 0)))) refused.add(late);
  }
  const at = new Date().toISOString();
  for (let from = 0; from < deliveries.length; from += INSERT_BATCH) {
    const batch = deliveries.slice(from, from + INSERT_BATCH);
    const rows = batch.map((delivery) => ({
      ...delivery,
      body: delivery.body.toString('base64'),
      ...(refused.has(delivery) && { refused: [{ at, ...REFUSED }] }),
    }));
    await tx.query(INSERT, [JSON.stringify(rows)], 'insert_deliveries');
    await enqueue(tx, batch.filter((delivery) => !refused.has(delivery)).map(inQueue));
  }
}

/** The place of a delivery in the queue. */
export function inQueue(delivery: AlertDeliveryInput & { receiver: string; starts?: number }) {
  const { receiver, starts, tenant_id, session_id, delivery_id, event_id, event_type, rule_id, channel_id } = delivery;
  const input: AlertDeliveryInput = { tenant_id, session_id, delivery_id, event_id, event_type, rule_id, channel_id };
  return { tenant_id, queue_id: delivery_id, kind: 'alert' as const, receiver, input, ...(starts && { starts }) };
}

/** A delivery with its channel as it is now. */
export interface DeliveryWithChannel extends Record<string, unknown> {
  status: DeliveryStatus;
  body: Buffer;
  traceparent: string | null;
  max_attempts: number;
  receiver: string;
  attempts: DeliveryAttempt[];
  attempts_before: number;
  /** Null when rule or channel was removed or switched off. */
  channel: Omit<ChannelRow, 'secrets'> | null;
  channel_secrets: Buffer | null;
}

const READ = `
  SELECT d.status, d.body, d.traceparent, d.max_attempts, d.receiver, d.attempts, d.attempts_before, c.secrets AS channel_secrets,
         CASE WHEN c.enabled AND r.enabled THEN jsonb_build_object('channel_id', c.channel_id, 'rule_id', c.rule_id, 'type', c.type,
           'enabled', c.enabled, 'config', c.config) END AS channel
    FROM deliveries d LEFT JOIN alert_channels c USING (tenant_id, channel_id)
    LEFT JOIN alert_rules r ON r.tenant_id = d.tenant_id AND r.rule_id = d.rule_id
   WHERE d.tenant_id = $1 AND d.delivery_id = $2`;

/** Reads a delivery for its next attempt; null when the tenant has none of that id. */
export async function readDelivery(tx: Tx, of: OfDelivery): Promise<DeliveryWithChannel | null> {
  const [row] = await tx.query<DeliveryWithChannel>(READ, [of.tenant_id, of.delivery_id]);
  return row ?? null;
}

/** The channel of a delivery has another address by now: the next attempt goes there. */
export async function moveDelivery(
  tx: Tx,
  { tenant_id, delivery_id }: OfDelivery,
  { url, receiver }: { url: string; receiver: string },
): Promise<void> {
  const move = 'UPDATE deliveries SET url = $3, receiver = $4 WHERE tenant_id = $1 AND delivery_id = $2';
  await tx.query(move, [tenant_id, delivery_id, url, receiver]);
}

/** Logs an attempt. @param end null when another attempt follows */
export async function logDeliveryAttempt(
  tx: Tx,
  of: OfDelivery,
  { status_code, error, duration_ms }: AttemptResult,
  success: boolean,
  end: 'delivered' | 'failed' | null,
): Promise<void> {
  const attempt = { status_code, response_time_ms: duration_ms, success, ...(error !== null && { error }) };
  await tx.query(
    `UPDATE deliveries SET attempts = attempts || (jsonb_build_object('at', to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) || $3::jsonb),
       status = coalesce($4, status), ended_at = CASE WHEN $4 IS NOT NULL THEN now() END
      WHERE tenant_id = $1 AND delivery_id = $2 AND status = 'pending'`,
    [of.tenant_id, of.delivery_id, JSON.stringify(attempt), end],
  );
}

/** Ends deliveries that nobody is to receive any more. */
export async function dropPending(tx: Tx, tenantId: string, by: 'rule_id' | 'delivery_id', id: string): Promise<void> {
  await tx.query(
    `WITH dropped AS (
       UPDATE deliveries SET status = 'dropped', ended_at = now() WHERE tenant_id = $1 AND ${by} = $2 AND status = 'pending'
       RETURNING delivery_id)
     DELETE FROM delivery_queue q USING dropped WHERE q.tenant_id = $1 AND q.queue_id = dropped.delivery_id`,
    [tenantId, id],
  );
}
