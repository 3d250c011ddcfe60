import type { Tx } from '../../db/pool.js';
import { newId } from '../../runtime/ids.js';
import { countMoved, isOwn } from '../../sessions/session-end.js';
import type { MessageRef } from '../core.js';
import type { RunningRow, SessionBinding } from '../read/rows.js';
import type { ChosenAgent } from './policy-step.js';
import { retryDelayMs, type Step } from './step.js';

type DispatchStep = Extract<Step, { kind: 'dispatch' }>;

/** Locks the session of a message, in which it is routed; null when no such message of the tenant runs. */
export async function lockSession(tx: Tx, ref: MessageRef): Promise<SessionBinding | null> {
  const [session] = await tx.query<SessionBinding>(
    `SELECT explicit, reserves, instance_id, agent_type FROM sessions WHERE tenant_id = $1
        AND session_id = (SELECT session_id FROM running_messages WHERE tenant_id = $1 AND message_id = $2) FOR NO KEY UPDATE`,
    [ref.tenant_id, ref.message_id],
    'lock_session_of',
  );
  return session ?? null;
}

/** What a message waits for when no agent is free (db/functions/routing/queues.sql). */
export interface Queued {
  queue: string;
}

/** Routes a locked message and opens its dispatch. */
export async function openDispatch(
  tx: Tx,
  row: RunningRow,
  session: SessionBinding,
  onlyReachable: boolean,
): Promise<{ step: Step; agent: ChosenAgent } | Queued> {
  const dispatchId = newId('dsp');
  type Opened = Omit<DispatchStep, 'kind' | 'dispatch_id'> & { join_reason: string | null; queue: null };
  const [opened] = await tx.query<Opened | Queued>(
    `SELECT instance_id, agent_type, mesh_id, deployment_mode, attempt, deadline_ms, join_reason, queue
       FROM open_dispatch($1, $2, $3, $4)`,
    [row.tenant_id, row.message_id, dispatchId, onlyReachable],
    'open_dispatch',
  );
  if (!opened) throw new Error('open_dispatch gave no row');
  if (opened.queue !== null) return { queue: opened.queue };
  const { join_reason, queue: _queue, ...dispatch } = opened;
  const { instance_id, agent_type } = dispatch;
  if (join_reason !== null && isOwn(session, agent_type))
    await countMoved(tx, { ...session, tenant_id: row.tenant_id }, instance_id);
  return { step: { kind: 'dispatch', dispatch_id: dispatchId, ...dispatch }, agent: { instance_id, agent_type } };
}

/** The step of a message whose ordered session has another one at work, or before it; null when it is its turn. The end of that one wakes it. */
export async function turnStep(tx: Tx, row: RunningRow, now: Date): Promise<Step | null> {
  const [next] = await tx.query<{ message_id: string }>(
    "SELECT next_in_order($1, $2) #>> '{0,message_id}' AS message_id",
    [row.tenant_id, row.session_id],
    'next_in_order',
  );
  if (next?.message_id === row.message_id) return null;
  return {
    kind: 'wait_agent',
    since: row.created_at.toISOString(),
    retry_ms: retryDelayMs(now.getTime() - row.created_at.getTime()),
    agent_type: row.want_agent_type ?? row.agent_type,
  };
}

/** The step of a dispatch that is on the record as open or sent; null for any other. Until it is sent, it has the whole time of the message. */
export async function dispatchStep(tx: Tx, row: RunningRow, dispatchId: string): Promise<Step | null> {
  const [dispatch] = await tx.query<Omit<DispatchStep, 'kind'>>(
    `SELECT d.dispatch_id, d.instance_id, d.agent_type, d.mesh_id, d.deployment_mode, d.attempt,
            greatest(1, coalesce((extract(epoch FROM d.deadline_at - now()) * 1000)::bigint, m.deadline_ms)) AS deadline_ms
       FROM dispatches d JOIN messages m ON m.tenant_id = d.tenant_id AND m.message_id = $2
      WHERE d.tenant_id = $1 AND d.dispatch_id = $3 AND d.state IN ('open', 'sent')`,
    [row.tenant_id, row.message_id, dispatchId],
    'find_open_dispatch',
  );
  return dispatch ? { kind: 'dispatch', ...dispatch } : null;
}
