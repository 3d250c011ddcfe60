import { asksHuman } from '../contracts/events.js';
import type { AlertDeliveryInput, DeliveryInput, PushDeliveryInput } from '../contracts/workflows.js';
import type { Db, Tx } from '../db/pool.js';

/** Deliveries of a lane (of approvals, or of everything else) under way at once on all nodes, the pauses between attempts included; twice as many where more than half of them are slow. */
const SLOTS = 200;
/** The most that are ever under way in both lanes: a process can make so many attempts at once. */
export const SLOTS_MAX = 2 * 2 * SLOTS;
/** In a lane, of one tenant, and to one receiver of a tenant. */
const TENANT_SLOTS = 50;
const RECEIVER_SLOTS = 8;
/** Receivers of one tenant that one claim looks at: more than a tenant gets slots. */
const RECEIVERS_LOOKED_AT = 200;
/** Deliveries that have had their slots for longer count as half of the slots at most: receivers that hang leave the rest to others. */
const SLOW_MS = 5_000;
/** After how long a look whether a started delivery has its workflow; a look does nothing to one that runs. */
const CHECK_MS = 30_000;

/** A workflow to start. */
export interface QueuedDelivery {
  tenant_id: string;
  queue_id: string;
  input: DeliveryInput;
  starts: number;
}

/** What the place of a delivery in the queue is made of. */
type Placed = Pick<PushDeliveryInput, 'message_id' | 'config_id'> | Pick<AlertDeliveryInput, 'delivery_id'>;

/** The place of a delivery in the queue. The push notifications of one config share a place: they go out one after the other. */
export function queueIdOf(placed: Placed): string {
  return 'config_id' in placed ? `${placed.message_id}/${placed.config_id}` : placed.delivery_id;
}

/** The same in SQL, of a delivery `d`. */
export const QUEUE_ID = `CASE WHEN d.config_id IS NULL THEN d.delivery_id ELSE d.message_id || '/' || d.config_id END`;

/** A delivery to put into the queue. */
export interface NewInQueue {
  input: DeliveryInput;
  receiver: string;
  /** How often it was started before it came into the queue; 0 by default. */
  starts?: number;
}

const ENQUEUE = `
  INSERT INTO delivery_queue AS q (tenant_id, queue_id, is_approval, receiver, input, starts)
    SELECT DISTINCT ON (tenant_id, queue_id) tenant_id, queue_id, is_approval, receiver, input, coalesce(starts, 0)
      FROM jsonb_to_recordset($1)
        AS n (tenant_id text, queue_id text, is_approval boolean, receiver text, input jsonb, starts integer) ORDER BY 1, 2
    ON CONFLICT (tenant_id, queue_id) DO UPDATE SET input = q.input`;

/** Queues deliveries. A place that is taken already is locked until the transaction ends, so that its workflow sees what the transaction wrote. */
export async function enqueue(tx: Tx, deliveries: NewInQueue[]): Promise<void> {
  if (deliveries.length === 0) return;
  const rows = deliveries.map(({ input, receiver, starts }) => {
    const { tenant_id, event_type } = input;
    const place = { tenant_id, queue_id: queueIdOf(input), is_approval: asksHuman(event_type) };
    return { ...place, receiver, input, ...(starts && { starts }) };
  });
  await tx.query(ENQUEUE, [JSON.stringify(rows)], 'enqueue_deliveries');
}

/** Both lanes in one transaction: what one has claimed is never left without its workflow because the other fails. */
const CLAIM = `
  SELECT c.* FROM unnest('{true,false}'::boolean[]) WITH ORDINALITY AS lane (of_approvals, nth)
   CROSS JOIN LATERAL claim_deliveries(lane.of_approvals, $1, $2, $3, $4, $5, $6) c ORDER BY lane.nth`;

/**
 * Gives free slots to what waits, approvals first, fairly by tenant and receiver.
 * @returns the deliveries whose workflows the caller must start
 */
export function claimQueued(db: Db): Promise<QueuedDelivery[]> {
  const bounds = [SLOTS, TENANT_SLOTS, RECEIVER_SLOTS, RECEIVERS_LOOKED_AT, SLOW_MS, CHECK_MS];
  return db.system((tx) => tx.query<QueuedDelivery>(CLAIM, bounds, 'claim_deliveries'));
}

const CHECK = `
  UPDATE delivery_queue q SET check_at = now() + $1 * interval '1 ms'
   WHERE q.ctid = ANY (ARRAY(SELECT ctid FROM delivery_queue WHERE started_at IS NOT NULL AND check_at <= now() LIMIT ${SLOTS_MAX}
                                FOR UPDATE SKIP LOCKED))
  RETURNING tenant_id, queue_id, input, starts`;

/** Deliveries that took a slot long ago: a process may have died before it started their workflows. */
export function overdueQueued(db: Db): Promise<QueuedDelivery[]> {
  return db.system((tx) => tx.query<QueuedDelivery>(CHECK, [CHECK_MS], 'check_deliveries'));
}

/** Identifies a place in the queue. */
export type InQueue = Pick<QueuedDelivery, 'tenant_id' | 'queue_id'>;

/** Locks a place in the queue: nothing is added to it before the transaction ends. @returns whether it is taken */
export async function lockQueued(tx: Tx, { tenant_id, queue_id }: InQueue): Promise<boolean> {
  const lock = 'SELECT 1 FROM delivery_queue WHERE tenant_id = $1 AND queue_id = $2 FOR UPDATE';
  return (await tx.query(lock, [tenant_id, queue_id])).length > 0;
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

/** Takes what is over out of the queue. */
export async function leaveQueue(tx: Tx, { tenant_id, queue_id }: InQueue): Promise<void> {
  await tx.query('DELETE FROM delivery_queue WHERE tenant_id = $1 AND queue_id = $2', [tenant_id, queue_id]);
}
