import type { DeliveryAttempt } from '../contracts/api/deliveries.js';
import { APPROVAL_EVENTS, asksHuman } from '../contracts/events.js';
import type { AlertDeliveryInput, DeliveryInput, PushDeliveryInput } from '../contracts/workflows.js';
import type { Tx } from '../db/pool.js';
import { enqueue } from './queue.js';

/** Deliveries of one tenant that may be pending for one receiver, approvals and others apart. Further ones fail at once, and can be redelivered. */
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
  /** The recipient of an email. */
  mail_to?: string;
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
  SELECT g.tenant_id, g.receiver, g.is_approval, (SELECT count(*) FROM (
           SELECT 1 FROM deliveries d WHERE d.tenant_id = g.tenant_id AND d.receiver = g.receiver AND d.status = 'pending'
              AND (d.event_type = ANY ($2)) = g.is_approval LIMIT ${PENDING_MAX}) q) AS pending
    FROM jsonb_to_recordset($1) AS g (tenant_id text, receiver text, is_approval boolean)`;
const INSERT = `
  INSERT INTO deliveries (tenant_id, delivery_id, event_type, session_id, event_id, rule_id, channel_id, mail_to, message_id, config_id, sequence,
      changed_at, url, receiver, body, traceparent, max_attempts, status, attempts, ended_at)
    SELECT tenant_id, delivery_id, event_type, session_id, event_id, rule_id, channel_id, coalesce(mail_to, ''), message_id, config_id, sequence,
           changed_at, url, receiver, decode(body, 'base64'), traceparent, max_attempts,
           CASE WHEN refused IS NULL THEN 'pending' ELSE 'failed' END, coalesce(refused, '[]'), CASE WHEN refused IS NOT NULL THEN now() END
      FROM jsonb_to_recordset($1) AS d (tenant_id text, delivery_id text, event_type text, session_id text, event_id text, rule_id text,
        channel_id text, mail_to text, message_id text, config_id text, sequence bigint, changed_at timestamptz, url text, receiver text, body text,
        traceparent text, max_attempts integer, refused jsonb)
    ON CONFLICT DO NOTHING`;

/** The log of a delivery for which there was no room in the queue. */
const REFUSED: Omit<DeliveryAttempt, 'at'> = {
  status_code: null,
  response_time_ms: 0,
  success: false,
  error: 'QUEUE_FULL',
};

/** What waits together: for one receiver of a tenant, in one lane. */
interface Backlog {
  tenant_id: string;
  receiver: string;
  is_approval: boolean;
}

const backlogOf = ({ tenant_id, receiver, event_type }: NewDelivery): Backlog => ({
  ...{ tenant_id, receiver },
  is_approval: asksHuman(event_type),
});
const backlogKey = ({ tenant_id, receiver, is_approval }: Backlog) => `${tenant_id} ${receiver} ${is_approval}`;

/** Those of the deliveries for which there is no room, because too many are pending for their receivers. */
async function withoutRoom(tx: Tx, deliveries: NewDelivery[]): Promise<Set<NewDelivery>> {
  const backlogs = new Map(deliveries.map(backlogOf).map((backlog) => [backlogKey(backlog), backlog]));
  const rows = await tx.query<Backlog & { pending: number }>(
    COUNT_PENDING,
    [JSON.stringify([...backlogs.values()]), APPROVAL_EVENTS],
    'count_pending_deliveries',
  );
  const pending = new Map(rows.map((row) => [backlogKey(row), row.pending]));
  const refused = deliveries.filter((delivery) => {
    const key = backlogKey(backlogOf(delivery));
    const before = pending.get(key) ?? 0;
    pending.set(key, before + 1);
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
