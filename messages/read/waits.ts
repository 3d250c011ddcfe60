import type { WaitsFor } from '../../contracts/api/messages.js';
import type { Tx } from '../../db/pool.js';
import type { MessageRow } from './rows.js';

/** Messages that are counted before one in its queue. */
const AHEAD_MAX = 10_000;

interface WaitRow extends Record<string, unknown> {
  queue: string | null;
  since: Date;
  undecided: boolean;
  has_turn: boolean;
  online: boolean | null;
  ahead: number | null;
  quota_reached: boolean;
}

const WAIT = `
  SELECT r.queue, coalesce(r.unrouted_since, r.created_at) AS since, r.undecided,
         NOT r.ordered OR next_in_order(r.tenant_id, r.session_id) #>> '{0,message_id}' = r.message_id AS has_turn,
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

function kindOf(online: boolean, quotaReached: boolean): WaitsFor['kind'] {
  if (!online) return 'agent';
  return quotaReached ? 'quota' : 'room';
}

function waitOf({ queue, since, undecided, has_turn, online, ahead, quota_reached }: WaitRow): WaitsFor | undefined {
  const at = { since: since.toISOString() };
  if (queue !== null && online !== null && ahead !== null)
    return { kind: kindOf(online, quota_reached), target: targetOf(queue), ...at, ahead, online };
  if (!has_turn) return { kind: 'turn', ...at };
  return undecided ? { kind: 'evaluator', ...at } : undefined;
}

/**
 * What a message that is at rest waits for; undefined for one that is over, with an agent, or on its way to one.
 * @param inFlightMax messages of the tenant that agents may have at once; null: any number
 */
export async function readWait(tx: Tx, row: MessageRow, inFlightMax: number | null): Promise<WaitsFor | undefined> {
  const [found] = await tx.query<WaitRow>(WAIT, [row.tenant_id, row.message_id, inFlightMax]);
  return found && waitOf(found);
}
