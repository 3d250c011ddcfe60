import type { AgentInstance, AgentRegisterRequest, AgentStatus, DeploymentMode } from '../contracts/agents.js';
import { isOwnType, type Reader } from '../contracts/permissions.js';
import { recordEvent } from '../db/events.js';
import type { Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import { uuidv7 } from '../runtime/ids.js';
import { reportSessions } from './agent-reports.js';
import type { AgentRow } from './agent-row.js';
import { isUnwanted, leaveType, type ReleaseAgent } from './deregister.js';

const ROW = `tenant_id, instance_id, agent_type, deployment_mode, status, mesh_id, connection_epoch,
  max_concurrent_sessions, consecutive_failures, deregistered_at, deregistration_cause`;

type InstanceRow = Omit<AgentInstance, 'last_seen' | 'registered_at'> & { last_seen: Date | null; registered_at: Date };

/** Agents as the API shows them: the load is the larger of the counted and the reported number, and who is full reads `busy` (decisions.md, Agents). */
export const INSTANCES = `
  SELECT a.instance_id, a.agent_type, a.public_url, a.deployment_mode, a.tenant_id, a.mesh_id, l.load AS current_sessions,
         CASE WHEN a.status IN ('available', 'unknown') AND a.max_concurrent_sessions > 0 AND l.load >= a.max_concurrent_sessions
              THEN 'busy' ELSE a.status END AS status,
         a.max_concurrent_sessions, a.consecutive_failures, a.last_seen, a.registered_at, a.agent_version,
         a.provider_organization, a.provider_url, a.agent_card, a.context
    FROM agents a CROSS JOIN LATERAL (SELECT agent_load(a.tenant_id, a.instance_id) AS load) l`;

function toInstance(row: InstanceRow): AgentInstance {
  return { ...row, last_seen: row.last_seen?.toISOString() ?? null, registered_at: row.registered_at.toISOString() };
}

/** What is answered for an instance that is not there, or not the caller's to see. */
export function unknownInstance(): PlatformError {
  return new PlatformError('NOT_FOUND', 'There is no agent of that instance_id.');
}

/** One agent, deregistered ones too. @throws PlatformError NOT_FOUND */
export async function getAgent(tx: Tx, tenantId: string, instanceId: string): Promise<AgentInstance> {
  const [row] = await tx.query<InstanceRow>(`${INSTANCES} WHERE a.tenant_id = $1 AND a.instance_id = $2`, [
    tenantId,
    instanceId,
  ]);
  if (!row) throw unknownInstance();
  return toInstance(row);
}

/** As `getAgent`, where it is the reader's to see. @throws PlatformError NOT_FOUND */
export async function getAgentFor(tx: Tx, reader: Reader, instanceId: string): Promise<AgentInstance> {
  const agent = await getAgent(tx, reader.tenant_id, instanceId);
  if (!isOwnType(reader, agent.agent_type)) throw unknownInstance();
  return agent;
}

export interface AgentFilter {
  status?: AgentStatus;
  agent_type?: string;
  deployment_mode?: DeploymentMode;
}

/** A page of a tenant's agents, the newest registration first; `count` is the total. */
export async function listAgents(
  tx: Tx,
  tenantId: string,
  query: AgentFilter & { page: number; page_size: number },
): Promise<{ count: number; agents: AgentInstance[] }> {
  const instances = `(${INSTANCES} WHERE a.tenant_id = $1 AND ($2::text IS NULL OR a.agent_type = $2)
    AND ($3::text IS NULL OR a.deployment_mode = $3)) i WHERE ($4::text IS NULL OR i.status = $4)`;
  const values = [tenantId, query.agent_type ?? null, query.deployment_mode ?? null, query.status ?? null];
  const [total] = await tx.query<{ count: number }>(`SELECT count(*) AS count FROM ${instances}`, values);
  const rows = await tx.query<InstanceRow>(
    `SELECT * FROM ${instances} ORDER BY i.registered_at DESC, i.instance_id DESC LIMIT $5 OFFSET $6`,
    [...values, query.page_size, (query.page - 1) * query.page_size],
  );
  return { count: total?.count ?? 0, agents: rows.map(toInstance) };
}

/** Reads and locks an agent's row until the transaction ends; undefined when there is none. */
export async function lockAgent(tx: Tx, tenantId: string, instanceId: string): Promise<AgentRow | undefined> {
  const [row] = await tx.query<AgentRow>(
    `SELECT ${ROW} FROM agents WHERE tenant_id = $1 AND instance_id = $2 FOR UPDATE`,
    [tenantId, instanceId],
  );
  return row;
}

/** As `lockAgent`, for what only a registered agent may do. @throws PlatformError DEREGISTERED where it is to stay away, else NOT_FOUND */
export async function lockRegistered(tx: Tx, tenantId: string, instanceId: string): Promise<AgentRow> {
  const row = await lockAgent(tx, tenantId, instanceId);
  if (row && isUnwanted(row)) throw new PlatformError('DEREGISTERED', 'The instance was deregistered.');
  if (!row || row.deregistered_at) throw unknownInstance();
  return row;
}

/** A registration whose card is at hand and whose mode is decided. */
export interface Registration {
  tenant_id: string;
  /** Of the caller's token. */
  credential_id: string;
  body: AgentRegisterRequest;
  deployment_mode: DeploymentMode;
  agent_card: Record<string, unknown>;
  /** Whether the card was fetched from the agent itself just now, which proves a hosted one reachable. */
  reached: boolean;
  /** Whether the caller may take an instance over from another agent type (scope `full`). */
  may_change_type: boolean;
}

/** The status that a registration leads to: a live socket keeps what it says, a hosted agent counts by whether it answered. */
function registeredStatus(registration: Registration, existing: AgentRow | undefined): AgentStatus {
  if (registration.deployment_mode === 'hosted') return registration.reached ? 'available' : 'unknown';
  return existing?.mesh_id ? existing.status : 'offline';
}

const UPSERT = `
  INSERT INTO agents (tenant_id, instance_id, agent_type, deployment_mode, public_url, status, max_concurrent_sessions,
    agent_version, provider_organization, provider_url, agent_card, skills, tools, context, credential_id, last_seen)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, now())
  ON CONFLICT (tenant_id, instance_id) DO UPDATE SET agent_type = $3, public_url = $5, status = $6,
    max_concurrent_sessions = $7, agent_version = $8, provider_organization = $9, provider_url = $10, agent_card = $11,
    skills = $12, tools = $13, context = $14, credential_id = $15, last_seen = now(), consecutive_failures = 0, deregistered_at = NULL,
    deregistration_cause = NULL,
    registered_at = CASE WHEN agents.deregistered_at IS NULL AND agents.agent_type = $3 THEN agents.registered_at
      ELSE now() END`;

/** A member of an agent card, where it is text of that length at most. */
function cardText(value: unknown, maxLength: number): string | null {
  return typeof value === 'string' && value.length <= maxLength ? value : null;
}

async function upsert(tx: Tx, instanceId: string, status: AgentStatus, registration: Registration): Promise<void> {
  const { body, agent_card: card } = registration;
  const provider = (typeof card.provider === 'object' && card.provider !== null ? card.provider : {}) as Record<
    string,
    unknown
  >;
  await tx.query(UPSERT, [
    registration.tenant_id,
    instanceId,
    body.agent_type,
    registration.deployment_mode,
    body.public_url ?? body.url ?? null,
    status,
    body.max_concurrent_sessions,
    body.agent_version ?? cardText(card.version, 128),
    body.provider_organization ?? cardText(provider.organization, 256),
    body.provider_url ?? cardText(provider.url, 2048),
    JSON.stringify(card),
    JSON.stringify(body.skills ?? []),
    JSON.stringify(body.tools ?? []),
    JSON.stringify(body.context ?? {}),
    registration.credential_id,
  ]);
}

async function recordRegistration(
  tx: Tx,
  agent: AgentInstance,
  existing: AgentRow | undefined,
  status: AgentStatus,
): Promise<void> {
  const { tenant_id, agent_type, instance_id } = agent;
  const before = existing?.deregistered_at ? undefined : existing;
  await recordEvent(tx, { tenant_id }, 'agent.registered', {
    agent_type,
    instance_id,
    tenant_id,
    connect_mode: agent.deployment_mode,
  });
  if (!before) return;
  if (before.max_concurrent_sessions !== agent.max_concurrent_sessions) await recordCapacity(tx, agent);
  if (before.status !== status) await recordHealth(tx, { ...before, agent_type }, status);
}

/** Writes `agent.capacity_changed` with what the database counts now. */
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

/** Writes `agent.health_changed` from the status in `before` to `status`. */
export async function recordHealth(
  tx: Tx,
  before: Pick<AgentRow, 'tenant_id' | 'agent_type' | 'instance_id' | 'status'>,
  status: AgentStatus,
): Promise<void> {
  const { tenant_id, agent_type, instance_id, status: previous_status } = before;
  const severity = status === 'unhealthy' ? 'warning' : 'info';
  await recordEvent(tx, { tenant_id, severity }, 'agent.health_changed', {
    agent_type,
    instance_id,
    status,
    previous_status,
  });
}

/**
 * Registers an agent, or registers it again: the row, `agent.registered` and what changed with it. Names are unique per
 * tenant; a deregistered instance comes back. One that becomes of another type leaves as what it was first: its sessions want that type.
 * @param releaseAgent unbinds its sessions in the same transaction
 * @throws PlatformError `DEPLOYMENT_MODE_MISMATCH` when the instance is of the other mode; `forbidden` when it is of another
 * type and the caller may not change that
 */
export async function registerAgent(
  tx: Tx,
  registration: Registration,
  releaseAgent: ReleaseAgent,
): Promise<AgentInstance> {
  const { tenant_id, body } = registration;
  const instanceId = body.instance_id ?? `inst_${uuidv7()}`;
  // Two first registrations of one name have no row to lock yet.
  await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`register:${tenant_id}:${instanceId}`]);
  const existing = await lockAgent(tx, tenant_id, instanceId);
  if (existing && existing.deployment_mode !== registration.deployment_mode) {
    const message = `The instance is registered as ${existing.deployment_mode}.`;
    throw new PlatformError('DEPLOYMENT_MODE_MISMATCH', message);
  }
  if (existing && existing.agent_type !== body.agent_type && !registration.may_change_type) {
    throw new PlatformError('forbidden', 'The instance belongs to another agent type.');
  }
  const known = existing?.agent_type === body.agent_type ? existing : undefined;
  if (existing && !known) await leaveType(tx, existing, 'registered as another type', releaseAgent);
  const status = registeredStatus(registration, existing);
  if (registration.deployment_mode === 'hosted') await reportSessions(tx, { tenant_id, instance_id: instanceId }, 0);
  await upsert(tx, instanceId, status, registration);
  const agent = await getAgent(tx, tenant_id, instanceId);
  await recordRegistration(tx, agent, known, status);
  return agent;
}
