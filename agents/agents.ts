import type { AgentInstance, AgentStatus, AgentsGetRequest, ListedAgent } from '../contracts/api/agents.js';
import { isOwnType, type Reader } from '../contracts/permissions.js';
import { recordEvent } from '../db/events.js';
import { queryJson } from '../db/json-rows.js';
import { type KeyList, type Page, readPage } from '../db/pages/page.js';
import type { Db, Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import { withActivity } from './agent-activity.js';
import { type AgentRow, isDeregisteredOnRequest, shownStatus } from './agent-row.js';

const ROW = `tenant_id, instance_id, agent_type, deployment_mode, status, mesh_id, connection_epoch,
  max_concurrent_sessions, max_concurrent_tasks, drained, consecutive_failures, deregistered_at, deregistration_cause`;

/**
 * Agents as the API shows them: the load is the larger of the counted and the reported number, an agent at capacity, or without room for
 * further dispatches, shows `busy`, and one that an operator drains `draining`.
 */
export const INSTANCES = `
  SELECT a.instance_id, a.agent_type, a.public_url, a.deployment_mode, a.tenant_id, a.mesh_id, l.load AS current_sessions,
         CASE WHEN a.drained AND a.status IN ('available', 'busy', 'unknown') THEN 'draining'
              WHEN a.status IN ('available', 'unknown') AND (is_full(a, l.load) OR is_saturated(a)) THEN 'busy' ELSE a.status END AS status,
         a.max_concurrent_sessions, a.max_concurrent_tasks, a.consecutive_failures, a.last_seen, a.registered_at, a.agent_version,
         a.provider_organization, a.provider_url, a.agent_card, a.context
    FROM agents a CROSS JOIN LATERAL (SELECT agent_load(a.tenant_id, a.instance_id) AS load) l`;

const NEWEST_FIRST = 'i.registered_at DESC, i.instance_id DESC';

/** The error for an instance that does not exist or that the caller may not see. */
export function unknownInstance(): PlatformError {
  return new PlatformError('NOT_FOUND', 'There is no agent of that instance_id.');
}

/** Reads one agent, deregistered ones included. @throws PlatformError NOT_FOUND */
export async function getAgent(tx: Tx, tenantId: string, instanceId: string): Promise<AgentInstance> {
  const one = `${INSTANCES} WHERE a.tenant_id = $1 AND a.instance_id = $2`;
  const [agent] = await queryJson<AgentInstance>(tx, one, [tenantId, instanceId]);
  if (!agent) throw unknownInstance();
  return agent;
}

/** Reads one agent if the reader may see it. @throws PlatformError NOT_FOUND */
export async function getAgentFor(tx: Tx, reader: Reader, instanceId: string): Promise<AgentInstance> {
  const agent = await getAgent(tx, reader.tenant_id, instanceId);
  if (!isOwnType(reader, agent.agent_type)) throw unknownInstance();
  return agent;
}

/** Lists a page of a tenant's agents, the newest registration first. @throws PlatformError REQUEST_TIMEOUT as `readPage` */
export function listAgents(db: Db, tenantId: string, query: AgentsGetRequest): Promise<Page<ListedAgent>> {
  const list: KeyList = {
    key: 'i.instance_id',
    from: `(${INSTANCES} WHERE a.tenant_id = $1 AND ($2::text IS NULL OR a.agent_type = $2)
      AND ($3::text IS NULL OR a.deployment_mode = $3)
      AND ($5::boolean IS NULL OR (coalesce(a.deregistered_at, 'infinity') = 'infinity') = $5)
      AND ($6::boolean IS NULL OR a.deregistered_at IS NULL AND EXISTS (
        SELECT 1 FROM agent_outcomes o WHERE o.tenant_id = $1 AND o.instance_id = a.instance_id AND o.failing_since IS NOT NULL))) i WHERE ($4::text IS NULL OR i.status = $4)`,
    orderBy: NEWEST_FIRST,
    values: [
      tenantId,
      ...[query.agent_type ?? null, query.deployment_mode ?? null, query.status ?? null],
      ...[query.registered ?? null, query.failing ?? null],
    ],
  };
  const select = `SELECT * FROM (${INSTANCES} WHERE a.tenant_id = $1 AND a.instance_id = ANY ($2)) i ORDER BY ${NEWEST_FIRST}`;
  return readPage(db, list, query, async (tx, ids) => {
    const agents = await queryJson<AgentInstance>(tx, select, [tenantId, ids]);
    return withActivity(tx, tenantId, agents);
  });
}

/** Reads an agent's row and locks it until the transaction ends; undefined when there is none. */
export async function lockAgent(tx: Tx, tenantId: string, instanceId: string): Promise<AgentRow | undefined> {
  const lock = `SELECT ${ROW} FROM agents WHERE tenant_id = $1 AND instance_id = $2 FOR UPDATE`;
  const [row] = await tx.query<AgentRow>(lock, [tenantId, instanceId]);
  return row;
}

/** Reads and locks the rows of the registered agents of a type. */
export function lockAgentsOfType(tx: Tx, tenantId: string, agentType: string): Promise<AgentRow[]> {
  const registered = 'tenant_id = $1 AND agent_type = $2 AND deregistered_at IS NULL';
  return tx.query(`SELECT ${ROW} FROM agents WHERE ${registered} ORDER BY instance_id FOR UPDATE`, [
    tenantId,
    agentType,
  ]);
}

/** Locks the row of a registered agent. @throws PlatformError DEREGISTERED when it was deregistered on request, else NOT_FOUND */
export async function lockRegistered(tx: Tx, tenantId: string, instanceId: string): Promise<AgentRow> {
  const row = await lockAgent(tx, tenantId, instanceId);
  if (row && isDeregisteredOnRequest(row)) throw new PlatformError('DEREGISTERED', 'The instance was deregistered.');
  if (!row || row.deregistered_at) throw unknownInstance();
  return row;
}

/** Writes `agent.capacity_changed` with the agent's load and limit. */
export async function recordCapacity(
  tx: Tx,
  agent: Pick<
    AgentInstance,
    'tenant_id' | 'agent_type' | 'instance_id' | 'current_sessions' | 'max_concurrent_sessions'
  >,
): Promise<void> {
  const { tenant_id, agent_type, instance_id, current_sessions, max_concurrent_sessions } = agent;
  const payload = { agent_type, instance_id, current_sessions, max_concurrent_sessions };
  await recordEvent(tx, { tenant_id }, 'agent.capacity_changed', payload);
}

/** Writes `agent.health_changed` for the change from `before` to a status, unless the same status shows (`shownStatus`). */
export async function recordHealth(
  tx: Tx,
  before: Pick<AgentRow, 'tenant_id' | 'agent_type' | 'instance_id' | 'status' | 'drained'>,
  newStatus: AgentStatus,
  drained = before.drained,
): Promise<void> {
  const { tenant_id, agent_type, instance_id } = before;
  const previous_status = shownStatus(before, before.status);
  const status = shownStatus({ drained }, newStatus);
  if (status === previous_status) return;
  const severity = status === 'unhealthy' ? 'warning' : 'info';
  const payload = { agent_type, instance_id, status, previous_status };
  await recordEvent(tx, { tenant_id, severity }, 'agent.health_changed', payload);
}
