import type { AgentStatus } from '../contracts/api/agents.js';
import { LIMITS } from '../contracts/limits.js';
import type { Db, Tx } from '../db/pool.js';
import type { AgentRef, AgentRow } from './agent-row.js';
import { lockAgent, recordHealth } from './agents.js';
import { type Deregistration, deregisterAgents } from './registration.js';
import type { WatchRound } from './watch-round.js';

/** A hosted agent whose card is to be requested. */
export interface AgentToProbe extends AgentRef {
  public_url: string;
}

/** Agents of one round: the first of each tenant, then the second of each, and so on, so that a tenant with thousands leaves room for the others. */
const BATCH = 1_000;
/** Agents that are marked or deregistered at once: few, so that other work of their tenants goes on. */
const AT_ONCE = { limit: 4, perTenant: 1 };
const REAPED: Deregistration = { cause: 'inactivity', reason: 'reaped for inactivity' };

/** The agents of a round, by tenant in turn. @param order of one tenant's agents */
function inTurns(columns: string, where: string, order: string): string {
  return `SELECT ${columns} FROM (SELECT ${columns}, row_number() OVER (PARTITION BY tenant_id ORDER BY ${order}) AS turn
            FROM agents WHERE deregistered_at IS NULL AND ${where}) AS silent ORDER BY turn LIMIT ${BATCH}`;
}

const TO_PROBE = inTurns(
  'tenant_id, instance_id, public_url',
  `deployment_mode = 'hosted' AND public_url IS NOT NULL AND (last_seen IS NULL OR last_seen < now() - $1 * interval '1 ms')`,
  // Those whose probes fail come last.
  'consecutive_failures, last_seen NULLS FIRST',
);

/** Hosted agents without a sign of life for one heartbeat interval. The platform probes them, because A2A servers send no heartbeats. */
export function agentsToProbe(db: Db): Promise<AgentToProbe[]> {
  const values = [LIMITS.heartbeatIntervalMs];
  return db.system((tx) => tx.query<AgentToProbe>(TO_PROBE, values));
}

/**
 * Acts on agents without a sign of life for `silentMs`, each in a transaction under the lock of its row.
 * @returns how many were found and could be looked at
 */
async function forEachSilent(
  db: Db,
  round: WatchRound,
  agents: { silentMs: number; statuses: AgentStatus[]; only?: string },
  act: (tx: Tx, row: AgentRow) => Promise<void>,
): Promise<number> {
  const isSilent = `coalesce(last_seen, registered_at) < now() - $1 * interval '1 ms'`;
  const where = `${isSilent} AND status = ANY($2) AND ${agents.only ?? 'true'}`;
  const listed = inTurns('tenant_id, instance_id', where, 'last_seen NULLS FIRST');
  const silent = await db.system((tx) => tx.query<AgentRef>(listed, [agents.silentMs, agents.statuses]));
  return round.forEach(silent, AT_ONCE, ({ tenant_id, instance_id }) =>
    db.tenant(tenant_id, async (tx) => {
      const row = await lockAgent(tx, tenant_id, instance_id);
      // It may have given a sign of life since it was listed.
      const still = `SELECT 1 FROM agents WHERE tenant_id = $2 AND instance_id = $3 AND ${isSilent}`;
      const found = await tx.query(still, [agents.silentMs, tenant_id, instance_id]);
      if (row && !row.deregistered_at && found.length > 0) await act(tx, row);
    }),
  );
}

/** Marks agents without a sign of life for 90 s as `unhealthy`. @returns how many it found */
export function markSilentAgents(db: Db, round: WatchRound): Promise<number> {
  const statuses: AgentStatus[] = ['available', 'busy', 'unknown', 'draining'];
  return forEachSilent(db, round, { silentMs: LIMITS.heartbeatStaleMs, statuses }, async (tx, row) => {
    if (!statuses.includes(row.status)) return;
    const mark = `UPDATE agents SET status = 'unhealthy' WHERE tenant_id = $1 AND instance_id = $2`;
    await tx.query(mark, [row.tenant_id, row.instance_id]);
    await recordHealth(tx, row, 'unhealthy');
  });
}

/**
 * Deregisters agents without a sign of life for ten minutes. It does so only once some node has been up that long without an outage of the
 * database, because agents cannot give a sign of life while the platform is down, and none is recorded while the database is away.
 * @returns how many it found
 */
export function reapAgents(db: Db, round: WatchRound): Promise<number> {
  const silentMs = LIMITS.agentReapMs;
  const statuses: AgentStatus[] = ['unhealthy', 'offline', 'unknown', 'busy', 'draining'];
  // Only nodes that renew their rows count: another may itself be living through an outage.
  const only = `EXISTS (SELECT 1 FROM mesh_nodes
    WHERE renewed_at > now() - $1 * interval '0.5 ms' AND coalesce(resumed_at, started_at) < now() - $1 * interval '1 ms')`;
  return forEachSilent(db, round, { silentMs, statuses, only }, (tx, row) =>
    deregisterAgents(tx, row.tenant_id, [row], REAPED),
  );
}
