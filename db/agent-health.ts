import type { HeartbeatPayload } from '../contracts/agents.js';
import { LIMITS } from '../contracts/limits.js';
import { type AgentRow, getAgent, lockRegistered, recordCapacity, recordHealth, type StoredStatus } from './agents.js';
import type { Tx } from './pool.js';

type Beat = Pick<HeartbeatPayload, 'status' | 'max_concurrent_sessions' | 'consecutive_failures'>;

/**
 * The status after a heartbeat (decisions.md, Agents). A connected agent without a socket stays offline. `busy` is for the
 * platform to say, from what it counts: a report of it reads as available. Silence on the status ends `unhealthy` unless too
 * many failures in a row caused it, and leaves `draining`.
 */
export function statusAfterHeartbeat(
  agent: Pick<AgentRow, 'status' | 'deployment_mode' | 'mesh_id' | 'consecutive_failures'>,
  beat: Beat,
): StoredStatus {
  if (agent.deployment_mode === 'connected' && agent.mesh_id === null) return 'offline';
  if (beat.status === 'draining' || beat.status === 'unhealthy') return beat.status;
  if (failuresAfter(agent, beat) >= LIMITS.consecutiveFailuresUnhealthy) return 'unhealthy';
  if (beat.status === undefined && agent.status === 'draining') return 'draining';
  return 'available';
}

/** An agent that calls itself available starts over; otherwise its failures are what it reports, or what was counted. */
function failuresAfter(agent: Pick<AgentRow, 'consecutive_failures'>, beat: Beat): number {
  return beat.consecutive_failures ?? (beat.status === 'available' ? 0 : agent.consecutive_failures);
}

/**
 * Takes a heartbeat, from `/agents/heartbeat` or a frame, with the events of what it changes. The `current_sessions` it may
 * report are not used: sessions are counted here.
 * @throws PlatformError NOT_FOUND, also for a deregistered instance
 */
export async function heartbeat(tx: Tx, tenantId: string, instanceId: string, beat: Beat): Promise<void> {
  const before = await lockRegistered(tx, tenantId, instanceId);
  const status = statusAfterHeartbeat(before, beat);
  const max = beat.max_concurrent_sessions ?? before.max_concurrent_sessions;
  await tx.query(
    `UPDATE agents SET last_seen = now(), status = $3, max_concurrent_sessions = $4, consecutive_failures = $5
      WHERE tenant_id = $1 AND instance_id = $2`,
    [tenantId, instanceId, status, max, failuresAfter(before, beat)],
  );
  if (status !== before.status) await recordHealth(tx, before, status);
  if (max !== before.max_concurrent_sessions) await recordCapacity(tx, await getAgent(tx, tenantId, instanceId));
}
