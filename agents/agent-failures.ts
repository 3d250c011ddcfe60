import type { AgentStatus } from '../contracts/agents.js';
import { LIMITS } from '../contracts/limits.js';
import type { Db, Tx } from '../db/pool.js';
import { recordHealth } from './agents.js';

/** An agent, named. */
export interface NamedAgent {
  tenant_id: string;
  instance_id: string;
}

interface Health {
  agent_type: string;
  status: AgentStatus;
  previous_status: AgentStatus;
}

/** A connection that is gone says nothing about the one that came after it: with an epoch, only that one's failures count. */
const FAILED = `
  WITH before AS (
    SELECT status FROM agents WHERE tenant_id = $1 AND instance_id = $2 AND deregistered_at IS NULL
      AND ($4::bigint IS NULL OR connection_epoch = $4) FOR UPDATE)
  UPDATE agents SET consecutive_failures = consecutive_failures + 1,
    status = CASE WHEN consecutive_failures + 1 >= $3 AND agents.status IN ('available', 'busy', 'unknown') THEN 'unhealthy'
                  ELSE agents.status END
    FROM before WHERE tenant_id = $1 AND instance_id = $2
  RETURNING agent_type, agents.status, before.status AS previous_status`;

/** Also the sign of life of agents that send no heartbeats; refreshed at most every $3 milliseconds. */
const SUCCEEDED = `
  WITH before AS (
    SELECT status FROM agents WHERE tenant_id = $1 AND instance_id = $2 AND deregistered_at IS NULL
      AND (consecutive_failures > 0 OR status IN ('unknown', 'unhealthy')
           OR last_seen IS NULL OR last_seen < now() - $3 * interval '1 ms') FOR UPDATE)
  UPDATE agents SET consecutive_failures = 0, last_seen = now(),
    status = CASE WHEN agents.status IN ('unknown', 'unhealthy') THEN 'available' ELSE agents.status END
    FROM before WHERE tenant_id = $1 AND instance_id = $2
  RETURNING agent_type, agents.status, before.status AS previous_status`;

/** An unhealthy agent starts over; the failures of one that is not stay, because only a dispatch shows whether it works. */
const REACHED = `
  WITH before AS (
    SELECT status FROM agents WHERE tenant_id = $1 AND instance_id = $2 AND deregistered_at IS NULL FOR UPDATE)
  UPDATE agents SET last_seen = now(),
    consecutive_failures = CASE WHEN agents.status = 'unhealthy' THEN 0 ELSE consecutive_failures END,
    status = CASE WHEN agents.status IN ('unknown', 'unhealthy') THEN 'available' ELSE agents.status END
    FROM before WHERE tenant_id = $1 AND instance_id = $2
  RETURNING agent_type, agents.status, before.status AS previous_status`;

async function change(
  tx: Tx,
  agent: NamedAgent,
  statement: string,
  values: (number | null)[] = [],
): Promise<Health | null> {
  const { tenant_id, instance_id } = agent;
  const [health] = await tx.query<Health & Record<string, string>>(statement, [tenant_id, instance_id, ...values]);
  if (!health) return null;
  const { agent_type, status, previous_status } = health;
  if (status !== previous_status) {
    await recordHealth(tx, { tenant_id, instance_id, agent_type, status: previous_status }, status);
  }
  return health;
}

/**
 * Counts a failure of an agent (a deadline that passed, a lost agent, a refused connection, a 5xx); the third in a row makes a routable
 * one `unhealthy` (decisions.md, Agents).
 * @param epoch of the connection that failed; null for no particular one
 * @returns whether that made it `unhealthy`
 */
export async function countFailure(db: Db, agent: NamedAgent, epoch: number | null): Promise<boolean> {
  const values = [LIMITS.consecutiveFailuresUnhealthy, epoch];
  const health = await db.tenant(agent.tenant_id, (tx) => change(tx, agent, FAILED, values));
  return health?.status === 'unhealthy' && health.previous_status !== 'unhealthy';
}

/** Ends a row of failures; an `unknown` or `unhealthy` agent is `available` again. Writes only where something changes. */
export async function countSuccess(db: Db, agent: NamedAgent): Promise<void> {
  await db.tenant(agent.tenant_id, (tx) => change(tx, agent, SUCCEEDED, [LIMITS.heartbeatIntervalMs]));
}

/**
 * A hosted agent can be reached: a sign of life, and an `unknown` or `unhealthy` one is `available` again.
 * @returns its type; null when it is not registered any more
 */
export async function noteReached(db: Db, agent: NamedAgent): Promise<string | null> {
  const health = await db.tenant(agent.tenant_id, (tx) => change(tx, agent, REACHED));
  return health?.agent_type ?? null;
}
