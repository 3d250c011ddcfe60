import { LIMITS } from '../contracts/limits.js';
import type { Db, Tx } from '../db/pool.js';
import type { AgentRef } from './agent-row.js';
import { lockAgent, recordHealth } from './agents.js';
import { type Deregistration, deregisterAgent, type ReleaseAgent } from './registration.js';

/** A hosted agent whose card is to be requested. */
export interface AgentToProbe extends AgentRef {
  public_url: string;
}

const BATCH = 1_000;
const REAPED: Deregistration = { cause: 'inactivity', reason: 'reaped for inactivity' };

/** Hosted agents without a sign of life for one heartbeat interval. The platform probes them, because A2A servers send no heartbeats. */
export function agentsToProbe(db: Db): Promise<AgentToProbe[]> {
  return db.system((tx) =>
    tx.query<AgentToProbe & Record<string, unknown>>(
      `SELECT tenant_id, instance_id, public_url FROM agents
        WHERE deregistered_at IS NULL AND deployment_mode = 'hosted' AND public_url IS NOT NULL
          AND (last_seen IS NULL OR last_seen < now() - $1 * interval '1 ms')
        ORDER BY last_seen NULLS FIRST LIMIT ${BATCH}`,
      [LIMITS.heartbeatIntervalMs],
    ),
  );
}

function silentFor(tx: Tx, silentMs: number, statuses: string[]): Promise<AgentRef[]> {
  return tx.query<AgentRef & Record<string, unknown>>(
    `SELECT tenant_id, instance_id FROM agents
      WHERE deregistered_at IS NULL AND coalesce(last_seen, registered_at) < now() - $1 * interval '1 ms' AND status = ANY($2)
      ORDER BY last_seen NULLS FIRST LIMIT ${BATCH}`,
    [silentMs, statuses],
  );
}

/** Whether an agent is still silent; called under the lock of its row, since it may have given a sign of life after it was listed. */
async function isSilent(tx: Tx, agent: AgentRef, silentMs: number): Promise<boolean> {
  const silent = await tx.query(
    `SELECT 1 FROM agents WHERE tenant_id = $1 AND instance_id = $2
        AND coalesce(last_seen, registered_at) < now() - $3 * interval '1 ms'`,
    [agent.tenant_id, agent.instance_id, silentMs],
  );
  return silent.length > 0;
}

/** Whether some node has been up for `forMs`, so that agents were able to give a sign of life. */
async function hasNodeUpFor(tx: Tx, forMs: number): Promise<boolean> {
  const statement = `SELECT 1 FROM mesh_nodes WHERE started_at < now() - $1 * interval '1 ms' LIMIT 1`;
  return (await tx.query(statement, [forMs])).length > 0;
}

async function markUnhealthy(db: Db, agent: AgentRef): Promise<void> {
  await db.tenant(agent.tenant_id, async (tx) => {
    const row = await lockAgent(tx, agent.tenant_id, agent.instance_id);
    if (!row || row.deregistered_at || row.status === 'unhealthy' || row.status === 'offline') return;
    if (!(await isSilent(tx, agent, LIMITS.heartbeatStaleMs))) return;
    await tx.query(`UPDATE agents SET status = 'unhealthy' WHERE tenant_id = $1 AND instance_id = $2`, [
      agent.tenant_id,
      agent.instance_id,
    ]);
    await recordHealth(tx, row, 'unhealthy');
  });
}

/** Marks agents without a sign of life for 90 s as `unhealthy`. @returns how many it found */
export async function markSilentAgents(db: Db): Promise<number> {
  const silent = await db.system((tx) =>
    silentFor(tx, LIMITS.heartbeatStaleMs, ['available', 'busy', 'unknown', 'draining']),
  );
  for (const agent of silent) await markUnhealthy(db, agent);
  return silent.length;
}

/**
 * Deregisters agents without a sign of life for ten minutes. It does so only once some node has been up that long, because agents cannot
 * give a sign of life while the platform is down.
 * @returns how many it found
 */
export async function reapAgents(db: Db, releaseAgent: ReleaseAgent): Promise<number> {
  const silent = await db.system(async (tx) => {
    if (!(await hasNodeUpFor(tx, LIMITS.agentReapMs))) return [];
    return silentFor(tx, LIMITS.agentReapMs, ['unhealthy', 'offline', 'unknown', 'busy', 'draining']);
  });
  for (const agent of silent) {
    await db.tenant(agent.tenant_id, async (tx) => {
      const row = await lockAgent(tx, agent.tenant_id, agent.instance_id);
      if (!row || !(await isSilent(tx, agent, LIMITS.agentReapMs))) return;
      await deregisterAgent(tx, row, REAPED, releaseAgent);
    });
  }
  return silent.length;
}
