import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { type Author, type Change, recordAudit } from '../audit/record-audit.js';
import type { AgentInstance, AgentRegisterRequest, AgentStatus, DeploymentMode } from '../contracts/api/agents.js';
import { isObject } from '../contracts/json-guard.js';
import { recordEvent, recordEvents } from '../db/events.js';
import type { Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import { uuidv7 } from '../runtime/ids.js';
import { type Secrets, UnreadableValue } from '../runtime/secrets.js';
import { reportSessions } from './agent-health.js';
import type { AgentRow, DeregistrationCause } from './agent-row.js';
import { getAgent, lockAgent, recordCapacity, recordHealth } from './agents.js';
import { type AgentCredential, sealCredential, shownAuth, unsealCredential } from './dispatch-auth.js';

/** A registration request with its card fetched and its deployment mode decided. */
export interface Registration {
  /** The credential of the caller's token, in its tenant. */
  author: Author;
  body: AgentRegisterRequest;
  deployment_mode: DeploymentMode;
  agent_card: Record<string, unknown>;
  /** Whether the card was just fetched from the agent itself, which proves that a hosted agent is reachable. */
  reached: boolean;
  /** Encrypts the credential that the agent wants of the platform, and decrypts the one before to tell whether it has changed. */
  secrets: Pick<Secrets, 'encrypt' | 'decrypt' | 'activate'>;
  /** Whether the caller may take an instance over from another agent type (scope `full`). */
  may_change_type: boolean;
}

/** The status after a registration: a connected agent with a live socket keeps its status, a hosted one depends on whether it was reached. */
function registeredStatus(registration: Registration, existing: AgentRow | undefined): AgentStatus {
  if (registration.deployment_mode === 'hosted') return registration.reached ? 'available' : 'unknown';
  return existing?.mesh_id ? existing.status : 'offline';
}

const UPSERT = `
  INSERT INTO agents (tenant_id, instance_id, agent_type, deployment_mode, public_url, status, max_concurrent_sessions, max_concurrent_tasks,
    agent_version, provider_organization, provider_url, agent_card, skills, tools, context, credential_id,
    updated_by, dispatch_auth, last_seen)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $17, $8, $9, $10, $11, $12, offerable_tools($1, $3, $13), $14, $15, $15, $16, now())
  ON CONFLICT (tenant_id, instance_id) DO UPDATE SET agent_type = $3, public_url = $5, status = $6,
    max_concurrent_sessions = $7, max_concurrent_tasks = $17, agent_version = $8, provider_organization = $9, provider_url = $10, agent_card = $11,
    skills = $12, tools = offerable_tools($1, $3, $13), context = $14, credential_id = $15, dispatch_auth = $16, updated_by = $15, last_seen = now(),
    consecutive_failures = 0, deregistered_at = NULL, deregistration_cause = NULL,
    registered_at = CASE WHEN agents.deregistered_at IS NULL AND agents.agent_type = $3 THEN agents.registered_at
      ELSE now() END`;

/** A value from an agent card if it is a string of at most `maxLength` characters, else null. */
function cardText(value: unknown, maxLength: number): string | null {
  return typeof value === 'string' && value.length <= maxLength ? value : null;
}

async function upsert(tx: Tx, instanceId: string, status: AgentStatus, registration: Registration): Promise<void> {
  const { body, agent_card: card } = registration;
  const provider = isObject(card.provider) ? card.provider : {};
  await tx.query(UPSERT, [
    registration.author.tenant_id,
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
    registration.author.principal.id,
    await sealCredential(tx, registration.secrets, body.dispatch_auth),
    body.max_concurrent_tasks,
  ]);
}

async function recordRegistration(
  tx: Tx,
  agent: AgentInstance,
  existing: AgentRow | undefined,
  status: AgentStatus,
): Promise<void> {
  const { tenant_id, agent_type, instance_id, deployment_mode: connect_mode } = agent;
  await recordEvent(tx, { tenant_id }, 'agent.registered', { agent_type, instance_id, tenant_id, connect_mode });
  if (!existing || existing.deregistered_at) return;
  if (existing.max_concurrent_sessions !== agent.max_concurrent_sessions) await recordCapacity(tx, agent);
  if (existing.status !== status) await recordHealth(tx, { ...existing, agent_type }, status);
}

const AUDITED = `
  SELECT agent_type, deployment_mode, public_url, max_concurrent_sessions, max_concurrent_tasks, agent_version, provider_organization,
         provider_url, skills, tools, context, agent_card, dispatch_auth, credential_id
    FROM agents WHERE tenant_id = $1 AND instance_id = $2`;

/** What a registration sets of an agent. */
interface AuditedAgent {
  /** As the audit shows it. The card can be large, so its digest stands for it. */
  shown: object;
  /** The credential that the agent wants, with its secret; null where it cannot be read. */
  auth: AgentCredential | undefined | null;
}

function readableAuth(secrets: Pick<Secrets, 'decrypt'>, sealed: Buffer | null): AuditedAgent['auth'] {
  if (sealed === null) return undefined;
  try {
    return unsealCredential(secrets, sealed);
  } catch (error) {
    if (error instanceof UnreadableValue) return null;
    throw error;
  }
}

async function auditedAgent(tx: Tx, { secrets, author }: Registration, instanceId: string): Promise<AuditedAgent> {
  const [row] = await tx.query<{ agent_card: object; dispatch_auth: Buffer | null }>(AUDITED, [
    author.tenant_id,
    instanceId,
  ]);
  const { agent_card = {}, dispatch_auth: sealed = null, ...rest } = row ?? {};
  const auth = readableAuth(secrets, sealed);
  const dispatch_auth = auth === null ? null : shownAuth(auth);
  return { shown: { ...rest, dispatch_auth, agent_card_sha256: hash('sha256', JSON.stringify(agent_card)) }, auth };
}

/** Audits what a registration has changed. Agents register at each start; one that changes nothing is not audited. */
async function auditRegistration(
  tx: Tx,
  { author, body }: Registration,
  instanceId: string,
  before: AuditedAgent | null,
  after: AuditedAgent,
): Promise<void> {
  if (isDeepStrictEqual(before, after)) return;
  const isSecretNew = before !== null && !isDeepStrictEqual(before.auth, after.auth);
  await recordAudit(tx, author, {
    action: 'agent.register',
    target: { type: 'agent', id: instanceId, name: body.agent_type },
    before: before?.shown ?? null,
    after: { ...after.shown, ...(isSecretNew && { dispatch_auth_changed: true }) },
  });
}

/**
 * Registers an agent, or registers it again: writes the row, `agent.registered` and the events of what changed. Instance ids are unique
 * per tenant; a deregistered instance becomes registered again. An instance that changes its type is first deregistered as its old type,
 * because its sessions need an agent of that type.
 * @throws PlatformError `DEPLOYMENT_MODE_MISMATCH` when the instance has the other mode; `forbidden` when it has another type and the
 * caller may not change that
 */
export async function registerAgent(
  tx: Tx,
  registration: Registration,
): Promise<{ agent: AgentInstance; warnings: string[] }> {
  const { author, body } = registration;
  const { tenant_id } = author;
  const instanceId = body.instance_id ?? `inst_${uuidv7()}`;
  // Two first registrations of one instance id have no row to lock yet, hence an advisory lock.
  await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`register:${tenant_id}:${instanceId}`]);
  const existing = await lockAgent(tx, tenant_id, instanceId);
  if (existing && existing.deployment_mode !== registration.deployment_mode) {
    const message = `The instance is registered as ${existing.deployment_mode}.`;
    throw new PlatformError('DEPLOYMENT_MODE_MISMATCH', message);
  }
  if (existing && existing.agent_type !== body.agent_type && !registration.may_change_type) {
    throw new PlatformError('forbidden', 'The instance belongs to another agent type.');
  }
  const sameType = existing?.agent_type === body.agent_type ? existing : undefined;
  if (existing && !sameType) await unbindAndReport(tx, tenant_id, [existing], 'registered as another type');
  const before = existing && !existing.deregistered_at ? await auditedAgent(tx, registration, instanceId) : null;
  const status = registeredStatus(registration, existing);
  if (registration.deployment_mode === 'hosted') await reportSessions(tx, { tenant_id, instance_id: instanceId }, 0);
  await upsert(tx, instanceId, status, registration);
  const agent = await getAgent(tx, tenant_id, instanceId);
  await recordRegistration(tx, agent, sameType, status);
  await auditRegistration(tx, registration, instanceId, before, await auditedAgent(tx, registration, instanceId));
  return { agent, warnings: await toolWarnings(tx, registration) };
}

const OF_OTHERS = `
  SELECT o.tool, o.agent_types FROM tool_owners o
   WHERE o.tenant_id = $1 AND o.tool = ANY ($2) AND $3 <> ALL (o.agent_types) ORDER BY o.tool`;

/** A sentence for each tool that was left out because other types own it. */
async function toolWarnings(tx: Tx, { author: { tenant_id }, body }: Registration): Promise<string[]> {
  const names = (body.tools ?? []).map((tool) => (typeof tool === 'string' ? tool : tool.name));
  if (names.length === 0) return [];
  const values = [tenant_id, names, body.agent_type];
  const owned = await tx.query<{ tool: string; agent_types: string[] }>(OF_OTHERS, values);
  return owned.map(({ tool, agent_types: types }) => {
    const owners = types.length === 0 ? 'no agent type may' : `only ${types.join(', ')} may`;
    return `tools: ${tool} was left out, because ${owners} offer it (/tools/set_owner).`;
  });
}

/** Why an agent is deregistered, and by whom. `reason`: of the event `agent.deregistered`. */
export type Deregistration =
  | { cause: Extract<DeregistrationCause, 'explicit'>; reason: string; author: Author }
  | { cause: Extract<DeregistrationCause, 'inactivity'>; reason: string };

/**
 * Deregisters agents of a tenant, in three statements however many they are: they get no new work, their sessions are unbound, their sockets
 * are no longer used, and `agent.deregistered` is written for each. Repeating it changes nothing, except that an explicit deregistration
 * overrides an earlier one for inactivity. The caller has locked the rows.
 */
export async function deregisterAgents(tx: Tx, tenantId: string, rows: AgentRow[], why: Deregistration): Promise<void> {
  const { cause, reason } = why;
  const changed = rows.filter((row) => !row.deregistered_at || cause === 'explicit');
  if (changed.length === 0) return;
  await tx.query(
    `UPDATE agents SET status = 'offline', mesh_id = NULL, connected_at = NULL, deregistration_cause = $3, dispatch_auth = NULL,
       deregistered_at = coalesce(deregistered_at, now()), updated_by = $4
      WHERE tenant_id = $1 AND instance_id = ANY ($2)`,
    [tenantId, changed.map(({ instance_id }) => instance_id), cause, 'author' in why ? why.author.principal.id : null],
  );
  if ('author' in why) await recordAudit(tx, why.author, ...changed.map((row) => deregistrationOf(row, reason)));
  await unbindAndReport(tx, tenantId, changed, reason);
}

function deregistrationOf({ instance_id: id, agent_type: name, deployment_mode }: AgentRow, reason: string): Change {
  const before = { agent_type: name, deployment_mode };
  return { action: 'agent.deregister', target: { type: 'agent', id, name }, before, after: { reason } };
}

/**
 * Unbinds the sessions that count on agents, those from `/sessions/init`, and writes `agent.deregistered` for their types. The rows and the
 * sockets stay. Other sessions, of which there may be millions, are routed to another agent when their next message comes.
 */
async function unbindAndReport(tx: Tx, tenantId: string, rows: AgentRow[], reason: string): Promise<void> {
  const leaving = rows.filter((row) => !row.deregistered_at);
  if (leaving.length === 0) return;
  await tx.query(
    `UPDATE sessions SET instance_id = NULL WHERE tenant_id = $1 AND instance_id = ANY ($2) AND status = 'active' AND explicit`,
    [tenantId, leaving.map(({ instance_id }) => instance_id)],
  );
  const events = leaving.map(({ agent_type, instance_id }) => ({
    tenant_id: tenantId,
    payload: { agent_type, instance_id, reason },
  }));
  await recordEvents(tx, 'agent.deregistered', events);
}
