import { LIMITS } from '../contracts/limits.js';
import { recordHealth, type StoredStatus } from './agents.js';
import type { Db, Tx } from './pool.js';

/** A hosted agent, named. */
export interface HostedAgent {
  tenant_id: string;
  instance_id: string;
}

interface Health {
  agent_type: string;
  status: StoredStatus;
  previous_status: StoredStatus;
}

const FAILED = `
  WITH before AS (
    SELECT status FROM agents WHERE tenant_id = $1 AND instance_id = $2 AND deregistered_at IS NULL FOR UPDATE)
  UPDATE agents SET consecutive_failures = consecutive_failures + 1,
    status = CASE WHEN consecutive_failures + 1 >= $3 AND agents.status IN ('available', 'unknown') THEN 'unhealthy'
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

async function change(tx: Tx, agent: HostedAgent, statement: string, bound: number): Promise<void> {
  const [health] = await tx.query<Health & Record<string, string>>(statement, [
    agent.tenant_id,
    agent.instance_id,
    bound,
  ]);
  if (!health || health.status === health.previous_status) return;
  await recordHealth(tx, { ...agent, agent_type: health.agent_type, status: health.previous_status }, health.status);
}

/** Counts a failure of a hosted agent; the third in a row makes a routable one `unhealthy` (decisions.md, Agents). */
export async function countHostedFailure(db: Db, agent: HostedAgent): Promise<void> {
  await db.tenant(agent.tenant_id, (tx) => change(tx, agent, FAILED, LIMITS.consecutiveFailuresUnhealthy));
}

/** Ends a row of failures; an `unknown` or `unhealthy` agent is `available` again. Writes only where something changes. */
export async function countHostedSuccess(db: Db, agent: HostedAgent): Promise<void> {
  await db.tenant(agent.tenant_id, (tx) => change(tx, agent, SUCCEEDED, LIMITS.heartbeatIntervalMs));
}
