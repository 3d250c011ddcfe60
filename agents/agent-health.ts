import type { AgentStatus, HeartbeatPayload } from '../contracts/agents.js';
import { LIMITS } from '../contracts/limits.js';
import type { Tx } from '../db/pool.js';
import { reportSessions } from './agent-reports.js';
import type { AgentRow } from './agent-row.js';
import { getAgent, lockRegistered, recordCapacity, recordHealth } from './agents.js';

type Beat = Pick<HeartbeatPayload, 'status' | 'current_sessions' | 'max_concurrent_sessions' | 'consecutive_failures'>;

/**
 * The status after a heartbeat (decisions.md, Agents). A connected agent without a socket stays offline. Silence on the status ends
 * `unhealthy` unless too many failures in a row caused it, and leaves `busy` and `draining`, which hold until the next report.
 */
export function statusAfterHeartbeat(
  agent: Pick<AgentRow, 'status' | 'deployment_mode' | 'mesh_id' | 'consecutive_failures'>,
  beat: Beat,
): AgentStatus {
  if (agent.deployment_mode === 'connected' && agent.mesh_id === null) return 'offline';
  if (beat.status === 'draining' || beat.status === 'unhealthy') return beat.status;
  if (failuresAfter(agent, beat) >= LIMITS.consecutiveFailuresUnhealthy) return 'unhealthy';
  if (beat.status === undefined && (agent.status === 'busy' || agent.status === 'draining')) return agent.status;
  return beat.status ?? 'available';
}

/**
 * The failures in a row after a heartbeat: what it reports, or what was counted. One that had too many and calls itself available starts
 * over; fewer stay, because heartbeats come between the failures of an agent that lives and answers nothing.
 */
function failuresAfter({ consecutive_failures: counted }: Pick<AgentRow, 'consecutive_failures'>, beat: Beat): number {
  const startsOver = beat.status === 'available' && counted >= LIMITS.consecutiveFailuresUnhealthy;
  return beat.consecutive_failures ?? (startsOver ? 0 : counted);
}

/** An agent as far as new work looks at it. */
type Room = Pick<AgentRow, 'status' | 'max_concurrent_sessions'>;

/**
 * Whether an agent may have room now that it had not before.
 * @param reportedMore by how much the sessions that it reports have changed
 */
function hasMoreRoom(before: Room, after: Room, reportedMore: number): boolean {
  const takesWork = ({ status }: Room): boolean => status === 'available' || status === 'unknown';
  const most = ({ max_concurrent_sessions: max }: Room): number => (max === 0 ? Number.POSITIVE_INFINITY : max);
  if (!takesWork(after)) return false;
  return !takesWork(before) || most(after) > most(before) || reportedMore < 0;
}

/**
 * Takes a heartbeat, from `/agents/heartbeat` or a frame, with the events of what it changes.
 * @returns the agent when it may have room that it had not before, so that messages which wait for one can be called; else null
 * @throws PlatformError NOT_FOUND, also for an instance that was reaped; DEREGISTERED for one that is to stay away
 */
export async function heartbeat(
  tx: Tx,
  tenantId: string,
  instanceId: string,
  beat: Beat,
): Promise<Pick<AgentRow, 'agent_type' | 'instance_id'> | null> {
  const before = await lockRegistered(tx, tenantId, instanceId);
  const status = statusAfterHeartbeat(before, beat);
  const max = beat.max_concurrent_sessions ?? before.max_concurrent_sessions;
  await tx.query(
    `UPDATE agents SET last_seen = now(), status = $3, max_concurrent_sessions = $4, consecutive_failures = $5
      WHERE tenant_id = $1 AND instance_id = $2`,
    [tenantId, instanceId, status, max, failuresAfter(before, beat)],
  );
  const { current_sessions } = beat;
  const reportedMore = current_sessions === undefined ? 0 : await reportSessions(tx, before, current_sessions);
  if (status !== before.status) await recordHealth(tx, before, status);
  if (max !== before.max_concurrent_sessions || reportedMore !== 0) {
    await recordCapacity(tx, await getAgent(tx, tenantId, instanceId));
  }
  return hasMoreRoom(before, { status, max_concurrent_sessions: max }, reportedMore) ? before : null;
}
