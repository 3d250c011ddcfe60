import { slotOf } from '../agents/agent-room.js';
import { getAgent, recordCapacity } from '../agents/agents.js';
import type { Reader } from '../contracts/permissions.js';
import { recordEvent } from '../db/events.js';
import { isForeignSession } from '../db/own.js';
import type { Tx } from '../db/pool.js';
import type { Cancellation, SessionMessages } from './session-deps.js';

/** Writes `agent.capacity_changed` with the count as it is now (an explicit session joined or left). */
export async function countAgain(tx: Tx, tenantId: string, instanceId: string): Promise<void> {
  await recordCapacity(tx, await getAgent(tx, tenantId, instanceId));
}

/** A session, as far as it counts on an agent. */
type Counted = Pick<LockedSession, 'tenant_id' | 'explicit' | 'instance_id' | 'agent_type'>;

/** Whether an agent of this type is the session's own, which it is bound to, and not one that joined beside it. */
export function isOwn(session: Pick<Counted, 'agent_type'>, agentType: string): boolean {
  return session.agent_type === null || session.agent_type === agentType;
}

/** Writes `agent.capacity_changed` of both agents when a session from `/sessions/init` is bound to another one than before. */
export async function countMoved(tx: Tx, before: Counted, instanceId: string): Promise<void> {
  if (!before.explicit || before.instance_id === instanceId) return;
  if (before.instance_id !== null) await countAgain(tx, before.tenant_id, before.instance_id);
  await countAgain(tx, before.tenant_id, instanceId);
}

/** A session row, locked against sends. */
export interface LockedSession {
  tenant_id: string;
  session_id: string;
  status: 'active' | 'completed' | 'expired';
  explicit: boolean;
  instance_id: string | null;
  agent_type: string | null;
  created_at: Date;
  idle_timeout_seconds: number;
}

/** Locks a session; null when the tenant has none of that id. */
export async function lockSession(tx: Tx, tenantId: string, sessionId: string): Promise<LockedSession | null> {
  const [session] = await tx.query<LockedSession>(
    `SELECT tenant_id, session_id, status, explicit, instance_id, agent_type, created_at, idle_timeout_seconds FROM sessions
      WHERE tenant_id = $1 AND session_id = $2 FOR UPDATE`,
    [tenantId, sessionId],
  );
  return session ?? null;
}

/** As `lockSession`; null also for a session that is not the reader's to see. */
export async function lockOwnSession(tx: Tx, reader: Reader, sessionId: string): Promise<LockedSession | null> {
  const session = await lockSession(tx, reader.tenant_id, sessionId);
  return session && !(await isForeignSession(tx, reader, sessionId)) ? session : null;
}

/**
 * Ends a locked, active session: what is in flight is canceled, `session.closed` is written, and who waits for its slots is called.
 * @returns what is to be announced after the commit
 */
export async function endSession(
  tx: Tx,
  messages: SessionMessages,
  session: LockedSession,
  status: 'completed' | 'expired',
  reason: string,
): Promise<Cancellation> {
  const canceled = await messages.cancelAll(tx, session, reason);
  const [ended] = await tx.query<{ duration_ms: number }>(
    `UPDATE sessions SET status = $3, ended_at = now(), ended_reason = $4, wake_requested_at = now()
      WHERE tenant_id = $1 AND session_id = $2
      RETURNING (extract(epoch FROM now() - created_at) * 1000)::bigint AS duration_ms`,
    [session.tenant_id, session.session_id, status, reason],
  );
  await recordEvent(tx, { tenant_id: session.tenant_id, session_id: session.session_id }, 'session.closed', {
    session_id: session.session_id,
    reason,
    duration_ms: Math.max(0, ended?.duration_ms ?? 0),
  });
  const { agent_type, instance_id } = session;
  if (session.explicit && instance_id !== null) await countAgain(tx, session.tenant_id, instance_id);
  const freed = [...canceled.flatMap(slotOf), ...slotOf({ holds_slot: session.explicit, agent_type, instance_id })];
  return { canceled, called: await messages.wakeForFreed(tx, session.tenant_id, freed) };
}
