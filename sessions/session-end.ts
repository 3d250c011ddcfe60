import type { AgentRef } from '../agents/agent-row.js';
import { getAgent, recordCapacity } from '../agents/agents.js';
import type { Reader } from '../contracts/permissions.js';
import { recordEvent } from '../db/events.js';
import { isForeignSession } from '../db/ownership.js';
import type { Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import type { SessionDeps, SessionRef } from './session-deps.js';

/** Writes `agent.capacity_changed` with the agent's current load, after a session that reserves its place was bound to it or unbound. */
export async function recordLoad(tx: Tx, tenantId: string, instanceId: string): Promise<void> {
  await recordCapacity(tx, await getAgent(tx, tenantId, instanceId));
}

/** The columns of a session that decide on which agent it counts. */
type Counted = Pick<LockedSession, 'tenant_id' | 'reserves' | 'instance_id' | 'agent_type'>;

/** Whether the session binds to agents of this type; agents of other types only join it. */
export function bindsToType(session: Pick<Counted, 'agent_type'>, agentType: string): boolean {
  return session.agent_type === null || session.agent_type === agentType;
}

/** Writes `agent.capacity_changed` of both agents when a session that reserves its place moves to another agent. */
export async function recordLoadMoved(tx: Tx, before: Counted, instanceId: string): Promise<void> {
  if (!before.reserves || before.instance_id === instanceId) return;
  if (before.instance_id !== null) await recordLoad(tx, before.tenant_id, before.instance_id);
  await recordLoad(tx, before.tenant_id, instanceId);
}

/** A session row, locked so that no message is accepted into the session meanwhile. */
export interface LockedSession extends SessionRef {
  status: 'active' | 'completed' | 'expired';
  /** From `/sessions/init`. */
  explicit: boolean;
  /** Whether the session takes a place on its agent until it ends. */
  reserves: boolean;
  instance_id: string | null;
  agent_type: string | null;
  created_at: Date;
  idle_timeout_seconds: number;
}

/** Locks a session; null when the tenant has no session of that id. */
export async function lockSession(tx: Tx, tenantId: string, sessionId: string): Promise<LockedSession | null> {
  const [session] = await tx.query<LockedSession>(
    `SELECT tenant_id, session_id, status, explicit, reserves, instance_id, agent_type, created_at, idle_timeout_seconds FROM sessions
      WHERE tenant_id = $1 AND session_id = $2 FOR UPDATE`,
    [tenantId, sessionId],
  );
  return session ?? null;
}

/** As `lockSession`; null also for a session that the reader may not see. */
export async function lockOwnSession(tx: Tx, reader: Reader, sessionId: string): Promise<LockedSession | null> {
  const session = await lockSession(tx, reader.tenant_id, sessionId);
  return session && !(await isForeignSession(tx, reader, sessionId)) ? session : null;
}

/** @throws PlatformError NOT_FOUND without a session, SESSION_CLOSED for one that has ended */
export function requireActive(session: LockedSession | null): asserts session is LockedSession {
  if (!session) throw new PlatformError('NOT_FOUND', 'There is no session of that session_id.');
  if (session.status !== 'active')
    throw new PlatformError('SESSION_CLOSED', `The session is already ${session.status}.`);
}

/** How long the process that ends a session has, in seconds, before `createSessionExpiry` cancels what it left in flight. */
const CANCEL_SECONDS = 30;

/**
 * Ends a locked, active session: it takes no further message. Writes `session.closed` and wakes its plans.
 * @returns `freed`: the agent that may have got room, to be filled after the commit; `inFlight`: `cancelLeft` has messages to cancel
 */
export async function endSession(
  tx: Tx,
  session: LockedSession,
  status: 'completed' | 'expired',
  reason: string,
): Promise<{ inFlight: boolean; freed: AgentRef | null }> {
  const { tenant_id, session_id, reserves, instance_id } = session;
  const [ended] = await tx.query<{ duration_ms: number; in_flight: boolean }>(
    `UPDATE sessions s SET status = $3, ended_at = now(), ended_reason = $4, wake_requested_at = CASE WHEN explicit THEN now() END,
            idle_check_at = CASE WHEN EXISTS (SELECT 1 FROM running_messages r WHERE r.tenant_id = $1 AND r.session_id = $2
              AND r.state IN ('submitted', 'working', 'input-required')) THEN now() + interval '${CANCEL_SECONDS} s' END
      WHERE tenant_id = $1 AND session_id = $2
      RETURNING milliseconds_between(created_at, now()) AS duration_ms, idle_check_at IS NOT NULL AS in_flight,
                wake_plans_of_session($1, $2)`,
    [tenant_id, session_id, status, reason],
  );
  const { duration_ms = 0, in_flight: inFlight = false } = ended ?? {};
  await recordEvent(tx, { tenant_id, session_id }, 'session.closed', { session_id, reason, duration_ms });
  const freed = reserves && instance_id !== null ? { tenant_id, instance_id } : null;
  if (freed) await recordLoad(tx, tenant_id, freed.instance_id);
  return { inFlight, freed };
}

/** Cancels what is in flight in a session that has ended. After a crash in the middle `createSessionExpiry` repeats it. */
export async function cancelLeft({ db, messages }: SessionDeps, session: SessionRef, reason: string): Promise<void> {
  const { tenant_id, session_id } = session;
  await messages.cancelInFlight(session, { reason, acceptedUntil: null });
  await db.tenant(tenant_id, (tx) =>
    tx.query(
      `UPDATE sessions SET idle_check_at = NULL WHERE tenant_id = $1 AND session_id = $2 AND status <> 'active'`,
      [tenant_id, session_id],
    ),
  );
}

/** Whether a session has ended; if not, when its workflow checks again. `check_in_ms` null: the session has no idle timeout. */
export type IdleCheck = { ended: true; status: string } | { ended: false; check_in_ms: number | null };

/** Milliseconds until the session is to be looked at again: 0 when its idle timeout has passed, null without a timeout. */
async function idleInMs(tx: Tx, session: LockedSession): Promise<number | null> {
  if (session.idle_timeout_seconds === 0) return null;
  const [idle] = await tx.query<{ left_ms: number }>(
    'SELECT milliseconds_between(now(), idles_at) AS left_ms FROM idle_times(ARRAY[$1], ARRAY[$2])',
    [session.tenant_id, session.session_id],
  );
  return idle?.left_ms ?? 0;
}

/** Ends a session whose idle timeout has passed. A session with a message or a plan that has not ended does not expire. */
export async function expireIfIdle(deps: SessionDeps, ref: SessionRef): Promise<IdleCheck> {
  let ended: Awaited<ReturnType<typeof endSession>> = { inFlight: false, freed: null };
  const check = await deps.db.tenant<IdleCheck>(ref.tenant_id, async (tx) => {
    const session = await lockSession(tx, ref.tenant_id, ref.session_id);
    if (!session) return { ended: true, status: 'unknown' };
    const isActive = session.status === 'active';
    const leftMs = isActive ? await idleInMs(tx, session) : 0;
    const expires = isActive && leftMs === 0;
    if (expires) ended = await endSession(tx, session, 'expired', 'idle');
    await tx.query(
      `UPDATE sessions SET supervised_at = now() + $3 * interval '1 ms', wake_requested_at = NULL
        WHERE tenant_id = $1 AND session_id = $2`,
      [ref.tenant_id, ref.session_id, leftMs ?? 0],
    );
    if (leftMs === 0) return { ended: true, status: expires ? 'expired' : session.status };
    return { ended: false, check_in_ms: leftMs };
  });
  if (ended.freed) deps.messages.fill(ended.freed);
  if (ended.inFlight) await cancelLeft(deps, ref, 'idle');
  return check;
}
