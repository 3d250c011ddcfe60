import type { Db, Tx } from '../db/pool.js';
import type { AlertDeliveryInput, DeliveryInput } from '../workflows/definitions.js';
import { receiverOf } from './attempts.js';
import type { OfConfig } from './push-deliveries.js';

/** Deliveries under way at once on all nodes, the pauses between attempts included; twice as many where more than half of them are slow. */
const SLOTS = 200;
/** Of one tenant, and to one receiver of a tenant. */
const TENANT_SLOTS = 50;
const RECEIVER_SLOTS = 8;
/** To one receiver that has not answered lately, and to all of these of one tenant: each may hang for ten seconds, three times. */
const UNPROVEN_RECEIVER_SLOTS = 2;
const TENANT_UNPROVEN_SLOTS = 10;
/** Deliveries that have had their slots for longer count as half of the slots at most: receivers that hang leave the rest to others. */
const SLOW_MS = 5_000;
/** After how long a look whether a started delivery has its workflow; a look does nothing to one that runs. */
const CHECK_MS = 30_000;

/** A workflow to start. */
export type QueuedDelivery = { tenant_id: string; queue_id: string; starts: number } & (
  | { kind: 'push'; input: DeliveryInput }
  | { kind: 'alert'; input: AlertDeliveryInput }
);

/** The place of a push-notification config in the queue. */
export function pushQueueId({ message_id, config_id }: Pick<OfConfig, 'message_id' | 'config_id'>): string {
  return `${message_id}/${config_id}`;
}

/** A delivery to put into the queue. */
export interface NewInQueue {
  tenant_id: string;
  queue_id: string;
  kind: QueuedDelivery['kind'];
  receiver: string;
  input: object;
  /** How often it was started before it came into the queue; 0 by default. */
  starts?: number;
}

const ENQUEUE = `
  INSERT INTO delivery_queue AS q (tenant_id, queue_id, kind, receiver, input, starts)
    SELECT tenant_id, queue_id, kind, receiver, input, coalesce(starts, 0)
      FROM jsonb_to_recordset($1) AS n (tenant_id text, queue_id text, kind text, receiver text, input jsonb, starts integer) ORDER BY 1, 2
    ON CONFLICT (tenant_id, queue_id) DO UPDATE SET input = excluded.input`;

/** Queues deliveries. One that is queued already is locked until the transaction ends, so that its workflow sees what the transaction wrote. */
export async function enqueue(tx: Tx, deliveries: NewInQueue[]): Promise<void> {
  if (deliveries.length > 0) await tx.query(ENQUEUE, [JSON.stringify(deliveries)], 'enqueue_deliveries');
}

const DUE_PUSHES = `
  SELECT d.tenant_id, d.message_id, d.config_id, d.sequence, coalesce(c.url, '') AS url, coalesce(m.session_id, '') AS session_id
    FROM push_deliveries d LEFT JOIN push_configs c USING (tenant_id, message_id, config_id) LEFT JOIN messages m USING (tenant_id, message_id)
   WHERE d.wake_at <= now() ORDER BY d.wake_at LIMIT $1 FOR UPDATE OF d SKIP LOCKED`;
const QUEUED_PUSHES = `
  UPDATE push_deliveries d SET wake_at = NULL
    FROM jsonb_to_recordset($1) AS q (tenant_id text, message_id text, config_id text, sequence bigint)
   WHERE d.tenant_id = q.tenant_id AND d.message_id = q.message_id AND d.config_id = q.config_id AND d.sequence = q.sequence`;

/**
 * Queues the configs that have due push notifications; nodes share the work.
 * @returns the number of due notifications
 */
export async function enqueuePushes(db: Db, limit: number): Promise<number> {
  return db.system(async (tx) => {
    type Due = OfConfig & { sequence: number; url: string; session_id: string } & Record<string, unknown>;
    const due = await tx.query<Due>(DUE_PUSHES, [limit], 'due_pushes');
    if (due.length === 0) return 0;
    const queued = due.map(({ tenant_id, message_id, config_id, session_id, url }): [string, NewInQueue] => {
      const input: DeliveryInput = { tenant_id, session_id, message_id, config_id };
      const queue_id = pushQueueId(input);
      return [`${tenant_id} ${queue_id}`, { tenant_id, queue_id, kind: 'push', receiver: receiverOf(url), input }];
    });
    await enqueue(tx, [...new Map(queued).values()]);
    await tx.query(QUEUED_PUSHES, [JSON.stringify(due)]);
    return due.length;
  });
}

const CLAIM = 'SELECT * FROM claim_deliveries($1, $2, $3, $4, $5, $6, $7)';

/** Gives free slots to what waits, fairly by tenant and receiver. @returns the deliveries whose workflows the caller must start */
export function claimQueued(db: Db): Promise<QueuedDelivery[]> {
  const ofReceivers = [RECEIVER_SLOTS, UNPROVEN_RECEIVER_SLOTS, TENANT_UNPROVEN_SLOTS];
  const values = [SLOTS, TENANT_SLOTS, ...ofReceivers, SLOW_MS, CHECK_MS];
  return db.system((tx) => tx.query<QueuedDelivery>(CLAIM, values, 'claim_deliveries'));
}

const CHECK = `
  UPDATE delivery_queue q SET check_at = now() + $1 * interval '1 ms'
   WHERE q.ctid = ANY (ARRAY(SELECT ctid FROM delivery_queue WHERE started_at IS NOT NULL AND check_at <= now() LIMIT ${2 * SLOTS}
                                FOR UPDATE SKIP LOCKED))
  RETURNING tenant_id, queue_id, kind, input, starts`;

/** Deliveries that took a slot long ago: a process may have died before it started their workflows. */
export function overdueQueued(db: Db): Promise<QueuedDelivery[]> {
  return db.system((tx) => tx.query<QueuedDelivery>(CHECK, [CHECK_MS], 'check_deliveries'));
}

type InQueue = Pick<QueuedDelivery, 'tenant_id' | 'queue_id'>;

/** Locks a delivery in the queue. @returns its receiver; null when it is not in the queue */
export async function lockQueued(tx: Tx, { tenant_id, queue_id }: InQueue): Promise<string | null> {
  const lock = 'SELECT receiver FROM delivery_queue WHERE tenant_id = $1 AND queue_id = $2 FOR UPDATE';
  const [row] = await tx.query<{ receiver: string }>(lock, [tenant_id, queue_id]);
  return row?.receiver ?? null;
}

/** Gives the slot of a delivery up; it waits again, in its old place. */
export async function putBack(tx: Tx, { tenant_id, queue_id }: InQueue): Promise<void> {
  const wait = 'UPDATE delivery_queue SET started_at = NULL, check_at = NULL WHERE tenant_id = $1 AND queue_id = $2';
  await tx.query(wait, [tenant_id, queue_id]);
}

/** Moves a delivery to another receiver: it gives its slot up and waits for one there. */
export async function moveQueued(tx: Tx, { tenant_id, queue_id }: InQueue, receiver: string): Promise<void> {
  const move =
    'UPDATE delivery_queue SET receiver = $3, started_at = NULL, check_at = NULL WHERE tenant_id = $1 AND queue_id = $2';
  await tx.query(move, [tenant_id, queue_id, receiver]);
}

/** Takes a delivery that is over out of the queue. */
export async function leaveQueue(tx: Tx, { tenant_id, queue_id }: InQueue): Promise<void> {
  await tx.query('DELETE FROM delivery_queue WHERE tenant_id = $1 AND queue_id = $2', [tenant_id, queue_id]);
}
