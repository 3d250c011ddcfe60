import type { AgentConnection, AgentInstance, ConnectionStats, ConnectionStatus } from '../contracts/agents.js';
import { AGENT_STATUSES } from '../contracts/agents.js';
import type { Reader } from '../contracts/permissions.js';
import type { Db, Tx } from '../db/pool.js';
import { getAgentFor, INSTANCES } from './agents.js';
import { dispatchTotals } from './dispatch-totals.js';

const TRANSPORTS = { connected: 'ws', hosted: 'callback' } as const;

/**
 * How the way to an agent stands (decisions.md, Agents). `offline`: no socket, or deregistered. `degraded`: it fails, or gives no sign.
 * Else a socket is `online`; an address is `unknown` until it was heard of, then `healthy`.
 */
export function connectionStatus(
  agent: Pick<AgentInstance, 'deployment_mode' | 'status' | 'consecutive_failures'>,
): ConnectionStatus {
  if (agent.status === 'offline') return 'offline';
  if (agent.status === 'unhealthy' || agent.consecutive_failures > 0) return 'degraded';
  if (agent.deployment_mode === 'connected') return 'online';
  return agent.status === 'unknown' ? 'unknown' : 'healthy';
}

/** The way to one agent, and how its dispatches fared. @throws PlatformError NOT_FOUND */
export async function getConnection(db: Db, reader: Reader, instanceId: string): Promise<AgentConnection> {
  const tenantId = reader.tenant_id;
  const { agent, since } = await db.tenant(tenantId, async (tx) => {
    const [row] = await tx.query<{ connected_at: Date | null }>(
      'SELECT connected_at FROM agents WHERE tenant_id = $1 AND instance_id = $2',
      [tenantId, instanceId],
    );
    return { agent: await getAgentFor(tx, reader, instanceId), since: row?.connected_at ?? null };
  });
  const { last_dispatch_at, ...totals } = await dispatchTotals(db, tenantId, instanceId);
  return {
    transport: TRANSPORTS[agent.deployment_mode],
    connection_status: connectionStatus(agent),
    owner_mesh_id: agent.mesh_id,
    connected_since: since?.toISOString() ?? null,
    last_dispatch_at: last_dispatch_at?.toISOString() ?? null,
    ...totals,
    status: agent.status,
    last_seen: agent.last_seen,
  };
}

/** How many agents there are of each kind; deregistered ones count as `offline`, as in the list. */
export async function connectionStats(tx: Tx, tenantId: string, agentType?: string): Promise<ConnectionStats> {
  const groups = await tx.query<Pick<AgentInstance, 'deployment_mode' | 'status'> & { count: number }>(
    `SELECT i.deployment_mode, i.status, count(*) AS count
       FROM (${INSTANCES} WHERE a.tenant_id = $1 AND ($2::text IS NULL OR a.agent_type = $2)) i GROUP BY 1, 2`,
    [tenantId, agentType ?? null],
  );
  const sum = (fits: (group: (typeof groups)[number]) => boolean): number =>
    groups.filter(fits).reduce((total, { count }) => total + count, 0);
  const connected = sum((group) => group.deployment_mode === 'connected');
  const hosted = sum((group) => group.deployment_mode === 'hosted');
  return {
    total: connected + hosted,
    by_deployment_mode: { connected, hosted },
    by_status: Object.fromEntries(
      AGENT_STATUSES.map((status) => [status, sum((group) => group.status === status)]),
    ) as ConnectionStats['by_status'],
    by_transport: { ws: connected, callback: hosted },
  };
}
