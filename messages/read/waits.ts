import type { WaitsFor } from '../../contracts/api/messages.js';
import type { Tx } from '../../db/pool.js';
import type { MessageRow } from './rows.js';

/** Messages that are counted before one in its queue. */
const AHEAD_MAX = 10_000;

/** What tells why a message is at rest. */
export interface Rest {
  queue: string | null;
  undecided: boolean;
  has_turn: boolean;
  /** Of the queue. */
  online: boolean | null;
  quota_reached: boolean;
}

interface WaitRow extends Rest, Record<string, unknown> {
  since: Date;
  ahead: number | null;
}

/** Whether it is the turn of a message of `running_messages r` in its session. */
export const HAS_TURN = `NOT r.ordered OR next_in_order(r.tenant_id, r.session_id) #>> '{0,message_id}' = r.message_id`;

const WAIT = `
  SELECT r.queue, coalesce(r.unrouted_since, r.created_at) AS since, r.undecided, ${HAS_TURN} AS has_turn,
         CASE WHEN r.queue IS NOT NULL THEN is_online(r.tenant_id, r.queue) END AS online,
         CASE WHEN r.queue IS NOT NULL THEN (SELECT count(*)::integer FROM (SELECT 1 FROM running_messages b WHERE b.tenant_id = r.tenant_id
           AND b.queue = r.queue AND (b.resolution IS NULL, b.created_at) < (r.resolution IS NULL, r.created_at) LIMIT ${AHEAD_MAX}) AS before) END AS ahead,
         CASE WHEN r.queue IS NOT NULL AND $3::integer IS NOT NULL THEN in_flight(r.tenant_id, $3) >= $3 ELSE false END AS quota_reached
    FROM running_messages r
   WHERE r.tenant_id = $1 AND r.message_id = $2 AND r.state IN ('submitted', 'working') AND r.current_dispatch_id IS NULL`;

/** What a queue is of (db/functions/routing/queues.sql). */
function targetOf(queue: string): WaitsFor['target'] {
  const [instance_id, agent_type, ...skill] = queue.split('/');
  const skill_id = skill.join('/');
  return { ...(instance_id && { instance_id }), ...(agent_type && { agent_type }), ...(skill_id && { skill_id }) };
}

/** What a message waits for that is not over, with no agent, and asks nobody; undefined for one on its way. */
export function kindOf({ queue, undecided, has_turn, online, quota_reached }: Rest): WaitsFor['kind'] | undefined {
  if (queue !== null) {
    if (!online) return 'agent';
    return quota_reached ? 'quota' : 'room';
  }
  if (!has_turn) return 'turn';
  return undecided ? 'evaluator' : undefined;
}

function waitOf(row: WaitRow): WaitsFor | undefined {
  const kind = kindOf(row);
  if (kind === undefined) return undefined;
  const { queue, since, online, ahead } = row;
  const ofQueue = queue !== null && online !== null && ahead !== null && { target: targetOf(queue), ahead, online };
  return { kind, since: since.toISOString(), ...ofQueue };
}

/**
 * What a message that is at rest waits for; undefined for one that is over, with an agent, or on its way to one.
 * @param inFlightMax messages of the tenant that agents may have at once; null: any number
 */
export async function readWait(tx: Tx, row: MessageRow, inFlightMax: number | null): Promise<WaitsFor | undefined> {
  const [found] = await tx.query<WaitRow>(WAIT, [row.tenant_id, row.message_id, inFlightMax]);
  return found && waitOf(found);
}
