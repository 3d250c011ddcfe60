import { LIMITS } from '../contracts/limits.js';
import type { Db, Tx } from '../db/pool.js';
import { lockAgent, recordHealth } from './agents.js';
import { type Deregistration, deregisterAgent, type ReleaseAgent } from './deregister.js';

/** An agent, named across tenants. */
export interface WatchedAgent {
  tenant_id: string;
  instance_id: string;
}

/** A hosted agent whose card is to be asked for. */
export interface AgentToProbe extends WatchedAgent {
  public_url: string;
}

const BATCH = 1_000;
const REAPED: Deregistration = { cause: 'inactivity', reason: 'reaped for inactivity' };

/** Hosted agents that gave no sign for a heartbeat's time: the platform asks them itself, since an A2A server sends no heartbeats. */
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

function silentFor(tx: Tx, silentMs: number, statuses: string[]): Promise<WatchedAgent[]> {
  return tx.query<WatchedAgent & Record<string, unknown>>(
    `SELECT tenant_id, instance_id FROM agents
      WHERE deregistered_at IS NULL AND coalesce(last_seen, registered_at) < now() - $1 * interval '1 ms' AND status = ANY($2)
      ORDER BY last_seen NULLS FIRST LIMIT ${BATCH}`,
    [silentMs, statuses],
  );
}

/** Asked again under the row's lock: it may have come back since it was listed. */
async function isSilent(tx: Tx, agent: WatchedAgent, silentMs: number): Promise<boolean> {
  const silent = await tx.query(
    `SELECT 1 FROM agents WHERE tenant_id = $1 AND instance_id = $2
        AND coalesce(last_seen, registered_at) < now() - $3 * interval '1 ms'`,
    [agent.tenant_id, agent.instance_id, silentMs],
  );
  return silent.length > 0;
}

/** Whether some node has been up for `forMs`, so that agents could have given it a sign. */
async function hasWatched(tx: Tx, forMs: number): Promise<boolean> {
  const nodes = await tx.query(`SELECT 1 FROM mesh_nodes WHERE started_at < now() - $1 * interval '1 ms' LIMIT 1`, [
    forMs,
  ]);
  return nodes.length > 0;
}

async function silence(db: Db, agent: WatchedAgent): Promise<void> {
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

/** Marks agents without a sign of life for 90 s as `unhealthy`. @returns how many */
export async function markSilentAgents(db: Db): Promise<number> {
  const silent = await db.system((tx) =>
    silentFor(tx, LIMITS.heartbeatStaleMs, ['available', 'busy', 'unknown', 'draining']),
  );
  for (const agent of silent) await silence(db, agent);
  return silent.length;
}

/**
 * Deregisters agents without a sign of life for ten minutes; not before some node has been up for that long, because agents could give
 * no sign while the platform was down. @returns how many
 */
export async function reapAgents(db: Db, releaseAgent: ReleaseAgent): Promise<number> {
  const gone = await db.system(async (tx) => {
    if (!(await hasWatched(tx, LIMITS.agentReapMs))) return [];
    return silentFor(tx, LIMITS.agentReapMs, ['unhealthy', 'offline', 'unknown', 'busy', 'draining']);
  });
  for (const agent of gone) {
    await db.tenant(agent.tenant_id, async (tx) => {
      const row = await lockAgent(tx, agent.tenant_id, agent.instance_id);
      if (!row || !(await isSilent(tx, agent, LIMITS.agentReapMs))) return;
      await deregisterAgent(tx, row, REAPED, releaseAgent);
    });
  }
  return gone.length;
}
