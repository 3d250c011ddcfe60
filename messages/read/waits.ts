import type { WaitsFor } from '../../contracts/api/messages.js';
import type { Tx } from '../../db/pool.js';
import { queueTarget } from '../queue-target.js';
import type { MessageRow } from './rows.js';

/** How far the messages before one in its queue are counted. */
const AHEAD_MAX = 10_000;

/** What a message waits for, as it is read. */
export interface Wait {
  /** Null: it waits for nothing, and somebody is about to take its next step. */
  kind: WaitsFor['kind'] | null;
  since: Date;
  queue: string | null;
  /** Whether an agent that serves the queue is online. */
  online: boolean | null;
}

/** Whether it is the turn of a message of `running_messages r` in its session. */
const HAS_TURN = `NOT r.ordered OR next_in_order(r.tenant_id, r.session_id) #>> '{0,message_id}' = r.message_id`;

/**
 * The tenant's (`$1`) messages at rest, each a row of `running_messages` with its `Wait`: the same as `stepOf` in messages/supervise/next-step.ts finds, which
 * shows `agent`, `room` and `quota` as `room`. Columns that a query does not use are not computed.
 * @param which condition on `running_messages r`, with an order and a limit if need be
 * @param inFlightMax SQL: messages of the tenant that agents may have at once; NULL: any number
 */
export const waiting = (which: string, inFlightMax: string) => `
  WITH resting AS MATERIALIZED (
    SELECT r.*, CASE WHEN r.queue IS NULL THEN ${HAS_TURN} END AS has_turn FROM running_messages r
     WHERE r.tenant_id = $1 AND (r.current_dispatch_id IS NULL OR r.state = 'input-required') AND ${which}),
  queues AS MATERIALIZED (
    SELECT q.queue, is_online($1, q.queue) AS online FROM (SELECT DISTINCT queue FROM resting WHERE queue IS NOT NULL) q)
  SELECT r.*, q.online,
         CASE WHEN r.state = 'input-required' THEN 'person'
              WHEN r.queue IS NOT NULL AND NOT q.online THEN 'agent'
              WHEN r.queue IS NOT NULL THEN CASE WHEN (SELECT in_flight($1, ${inFlightMax}) >= ${inFlightMax}) THEN 'quota' ELSE 'room' END
              WHEN NOT r.has_turn THEN 'turn'
              WHEN r.undecided THEN 'evaluator' END AS kind,
         CASE WHEN r.state = 'input-required' THEN coalesce((SELECT i.requested_at FROM input_requests i
                WHERE i.tenant_id = r.tenant_id AND i.message_id = r.message_id AND i.state = 'pending'), r.created_at)
              ELSE coalesce(r.unrouted_since, r.created_at) END AS since
    FROM resting r LEFT JOIN queues q ON q.queue = r.queue`;

const WAIT = `
  SELECT w.kind, w.since, w.queue, w.online,
         CASE WHEN w.queue IS NOT NULL THEN (SELECT count(*)::integer FROM (SELECT 1 FROM running_messages b WHERE b.tenant_id = w.tenant_id
           AND b.queue = w.queue AND (b.resolution IS NULL, b.created_at) < (w.resolution IS NULL, w.created_at) LIMIT ${AHEAD_MAX}) AS before) END AS ahead
    FROM (${waiting(`r.message_id = $2 AND r.state IN ('submitted', 'working')`, '$3::integer')}) w`;

/** The target of a queue, with only the members that the queue names. */
function targetOf(queue: string): WaitsFor['target'] {
  return Object.fromEntries(Object.entries(queueTarget(queue)).filter(([, name]) => name !== ''));
}

/** A wait as the API shows it; undefined if `kind` is null. */
export function waitsForOf({ kind, since, queue, online }: Wait): WaitsFor | undefined {
  if (kind === null) return undefined;
  const ofQueue = queue !== null && online !== null && { target: targetOf(queue), online };
  return { kind, since: since.toISOString(), ...ofQueue };
}

/**
 * What a message that is at rest waits for; undefined for one that is over, with an agent, or on its way to one.
 * @param inFlightMax messages of the tenant that agents may have at once; null: any number
 */
export async function readWait(tx: Tx, row: MessageRow, inFlightMax: number | null): Promise<WaitsFor | undefined> {
  type Found = Wait & { ahead: number | null };
  const [found] = await tx.query<Found>(WAIT, [row.tenant_id, row.message_id, inFlightMax]);
  const waits = found && waitsForOf(found);
  return waits && { ...waits, ...(found.ahead !== null && { ahead: found.ahead }) };
}
