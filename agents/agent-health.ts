import type { AgentStatus, HeartbeatPayload } from '../contracts/api/agents.js';
import { LIMITS } from '../contracts/limits.js';
import type { Db, Tx } from '../db/pool.js';
import type { AgentRef, AgentRow } from './agent-row.js';
import { getAgent, lockRegistered, recordCapacity, recordHealth } from './agents.js';

/** Stores only a report above the counted number: a lower one adds nothing, and would be outdated when the next session ends. */
const REPORT = `
  WITH before AS (SELECT sessions FROM agent_reports WHERE tenant_id = $1 AND instance_id = $2)
  INSERT INTO agent_reports (tenant_id, instance_id, sessions)
    SELECT $1, $2, CASE WHEN $3 > counted_sessions($1, $2) THEN $3 ELSE 0 END
    ON CONFLICT (tenant_id, instance_id) DO UPDATE SET sessions = excluded.sessions
      WHERE agent_reports.sessions <> excluded.sessions
  RETURNING sessions - coalesce((SELECT sessions FROM before), 0) AS change`;

/**
 * Stores the number of sessions that an agent reports. Until the next report its load is the larger of the reported and the counted
 * number. The caller holds the lock of the agent's row.
 * @returns the change of the stored number
 */
export async function reportSessions(tx: Tx, agent: AgentRef, sessions: number): Promise<number> {
  const values = [agent.tenant_id, agent.instance_id, Math.min(sessions, LIMITS.reportedSessionsMax)];
  const [row] = await tx.query<{ change: number }>(REPORT, values);
  return row?.change ?? 0;
}

type Beat = Omit<HeartbeatPayload, 'instance_id'>;

/**
 * The status after a heartbeat. A connected agent without a socket stays `offline`. A heartbeat without a status
 * ends `unhealthy` unless too many consecutive failures caused it, and leaves `busy` and `draining`, which hold until the next report.
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
 * The consecutive failures after a heartbeat: the reported number, else the counted one. Reporting `available` resets a count that has
 * reached the limit; a lower count stays, because an agent that fails every dispatch still sends heartbeats in between.
 */
function failuresAfter({ consecutive_failures: counted }: Pick<AgentRow, 'consecutive_failures'>, beat: Beat): number {
  const resets = beat.status === 'available' && counted >= LIMITS.consecutiveFailuresUnhealthy;
  return beat.consecutive_failures ?? (resets ? 0 : counted);
}

/** What decides whether an agent has room for new work, apart from its load. */
type Capacity = Pick<AgentRow, 'status' | 'max_concurrent_sessions' | 'max_concurrent_tasks'>;

/** Whether an agent may have room that it did not have before. @param reportedChange the change of the sessions that it reports */
function mayHaveMoreRoom(before: Capacity, after: Capacity, reportedChange: number): boolean {
  const takesWork = ({ status }: Capacity): boolean => status === 'available' || status === 'unknown';
  const raised = (was: number, is: number): boolean => was > 0 && (is === 0 || is > was);
  if (!takesWork(after)) return false;
  if (!takesWork(before) || reportedChange < 0) return true;
  return (
    raised(before.max_concurrent_sessions, after.max_concurrent_sessions) ||
    raised(before.max_concurrent_tasks, after.max_concurrent_tasks)
  );
}

/**
 * Applies a heartbeat, from `/agents/heartbeat` or a frame, and writes the events of what it changes.
 * @returns whether it may have room that it did not have before, so that the caller can wake queued messages
 * @throws PlatformError NOT_FOUND, also for a reaped instance; DEREGISTERED for one that was deregistered on request
 */
export async function heartbeat(tx: Tx, tenantId: string, instanceId: string, beat: Beat): Promise<boolean> {
  const before = await lockRegistered(tx, tenantId, instanceId);
  const status = statusAfterHeartbeat(before, beat);
  const max = beat.max_concurrent_sessions ?? before.max_concurrent_sessions;
  const maxTasks = beat.max_concurrent_tasks ?? before.max_concurrent_tasks;
  await tx.query(
    `UPDATE agents SET last_seen = now(), status = $3, max_concurrent_sessions = $4, max_concurrent_tasks = $5, consecutive_failures = $6
      WHERE tenant_id = $1 AND instance_id = $2`,
    [tenantId, instanceId, status, max, maxTasks, failuresAfter(before, beat)],
  );
  const { current_sessions } = beat;
  const reportedChange = current_sessions === undefined ? 0 : await reportSessions(tx, before, current_sessions);
  if (status !== before.status) await recordHealth(tx, before, status);
  if (max !== before.max_concurrent_sessions || reportedChange !== 0) {
    await recordCapacity(tx, await getAgent(tx, tenantId, instanceId));
  }
  const after = { status, max_concurrent_sessions: max, max_concurrent_tasks: maxTasks };
  return !before.drained && mayHaveMoreRoom(before, after, reportedChange);
}

/** An update of a registered agent, under the lock of its row. */
interface HealthChange {
  set: string;
  where?: string;
}

/** `$4`, if not null, is the epoch of the connection that failed: failures of a connection that was replaced do not count. */
const FAILED: HealthChange = {
  where: 'AND ($4::bigint IS NULL OR connection_epoch = $4)',
  set: `consecutive_failures = consecutive_failures + 1,
    status = CASE WHEN consecutive_failures + 1 >= $3 AND agents.status IN ('available', 'busy', 'unknown') THEN 'unhealthy'
                  ELSE agents.status END`,
};

const RECOVERED = `status = CASE WHEN agents.status IN ('unknown', 'unhealthy') THEN 'available' ELSE agents.status END`;

/** Also renews `last_seen`, at most every $3 milliseconds, for agents that send no heartbeats. */
const SUCCEEDED: HealthChange = {
  where: `AND (consecutive_failures > 0 OR status IN ('unknown', 'unhealthy')
           OR last_seen IS NULL OR last_seen < now() - $3 * interval '1 ms')`,
  set: `consecutive_failures = 0, last_seen = now(), ${RECOVERED}`,
};

/** Resets the failures of an unhealthy agent only: for any other one, only a dispatch shows whether it works. */
const REACHED: HealthChange = {
  set: `last_seen = now(), ${RECOVERED},
    consecutive_failures = CASE WHEN agents.status = 'unhealthy' THEN 0 ELSE consecutive_failures END`,
};

/** @returns the agent's status before and after; null when it is not registered or `where` does not hold */
async function changeHealth(
  db: Db,
  { tenant_id, instance_id }: AgentRef,
  { set, where = '' }: HealthChange,
  values: (number | null)[] = [],
) {
  return db.tenant(tenant_id, async (tx) => {
    const [health] = await tx.query<
      Pick<AgentRow, 'agent_type' | 'status' | 'drained'> & { previous_status: AgentStatus }
    >(
      `WITH before AS (
         SELECT status FROM agents WHERE tenant_id = $1 AND instance_id = $2 AND deregistered_at IS NULL ${where} FOR UPDATE)
       UPDATE agents SET ${set} FROM before WHERE tenant_id = $1 AND instance_id = $2
       RETURNING agent_type, agents.status, drained, before.status AS previous_status`,
      [tenant_id, instance_id, ...values],
    );
    if (!health) return null;
    const { agent_type, status, drained, previous_status } = health;
    const before = { tenant_id, instance_id, agent_type, status: previous_status, drained };
    if (status !== previous_status) await recordHealth(tx, before, status);
    return health;
  });
}

/**
 * Counts a failure of an agent: a missed deadline, a lost connection, a refused connection, a 5xx. The third consecutive failure makes a
 * routable agent `unhealthy`.
 * @param epoch the epoch of the connection that failed; null when the failure belongs to no connection
 * @returns whether this failure made the agent `unhealthy`
 */
export async function countFailure(db: Db, agent: AgentRef, epoch: number | null): Promise<boolean> {
  const health = await changeHealth(db, agent, FAILED, [LIMITS.consecutiveFailuresUnhealthy, epoch]);
  return health?.status === 'unhealthy' && health.previous_status !== 'unhealthy';
}

/** Resets the consecutive failures; an `unknown` or `unhealthy` agent becomes `available`. Writes only when something changes. */
export async function countSuccess(db: Db, agent: AgentRef): Promise<void> {
  await changeHealth(db, agent, SUCCEEDED, [LIMITS.heartbeatIntervalMs]);
}

/**
 * Counts how a message ended on an agent, for routing. Failures of a handler do not change the agent's health.
 * @param error the code of the handler's failure; null for a success
 * @returns whether failures of the agent are on record, so that its successes have to be counted too
 */
export async function countOutcome(
  db: Db,
  { tenant_id, instance_id }: AgentRef,
  error: string | null,
): Promise<boolean> {
  const [row] = await db.tenant(tenant_id, (tx) =>
    tx.query<{ remembered: boolean }>('SELECT count_outcome($1, $2, $3) AS remembered', [
      tenant_id,
      instance_id,
      error,
    ]),
  );
  return row?.remembered === true;
}

/**
 * Records that a hosted agent can be reached: renews `last_seen`, and an `unknown` or `unhealthy` agent becomes `available`.
 * @returns false when it is no longer registered
 */
export async function noteReached(db: Db, agent: AgentRef): Promise<boolean> {
  return (await changeHealth(db, agent, REACHED)) !== null;
}
