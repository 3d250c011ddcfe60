import { heartbeat, reportSessions } from '../../agents/agent-health.js';
import { isDeregisteredOnRequest } from '../../agents/agent-row.js';
import { getAgent, lockAgent, recordCapacity, recordHealth } from '../../agents/agents.js';
import type { AgentStatus, HeartbeatPayload } from '../../contracts/api/agents.js';
import type { HelloPayload } from '../../contracts/frames.js';
import type { Tx } from '../../db/pool.js';
import { moveDispatches, type OpenDispatchRef, openDispatches } from '../../messages/dispatch/agent-dispatches.js';
import { recordDecision } from '../../policy/enforce.js';
import type { tokenFacts } from '../../policy/token-facts.js';
import type { DecisionEvent } from '../../policy/verdict.js';

/** One connection of an agent; a newer one has a higher epoch. */
export interface ConnectionRef {
  tenant_id: string;
  instance_id: string;
  epoch: number;
}

/** The agent that opened a socket, as the handshake authenticated it. */
export interface AuthenticatedAgent {
  tenant_id: string;
  instance_id: string;
  agent_type: string;
  credential_id: string;
  token: string;
  /** When the token expires, in seconds since 1970. */
  token_exp: number;
  /** What policies see of the token. */
  claims: ReturnType<typeof tokenFacts>;
}

/**
 * What the handshake knows about an instance. `deregistered`: by a request, so it may not connect. `of_other_tenant`: only another tenant
 * has an instance of that name.
 */
export type InstanceLookup =
  | { found: true; agent_type: string; deployment_mode: string; may_join: boolean; deregistered: boolean }
  | { found: false; of_other_tenant: boolean };

/** `isDeregisteredOnRequest` (agents/agent-row.ts) in SQL, for an agent's row `a`: the agent was deregistered on request. */
const DEREGISTERED = `(a.deregistered_at IS NOT NULL AND a.deregistration_cause IS NOT DISTINCT FROM 'explicit')`;

/** Finds an instance in all tenants. Needs a system transaction. */
export async function findInstance(tx: Tx, tenantId: string, instanceId: string): Promise<InstanceLookup> {
  const [row] = await tx.query<{
    own: boolean;
    agent_type: string;
    deployment_mode: string;
    may_join: boolean;
    registered: boolean;
    deregistered: boolean;
  }>(
    `SELECT tenant_id = $1 AS own, agent_type, deployment_mode, type_may_join(tenant_id, agent_type) AS may_join,
            deregistered_at IS NULL AS registered, ${DEREGISTERED} AS deregistered
       FROM agents a WHERE instance_id = $2 AND (tenant_id = $1 OR deregistered_at IS NULL) ORDER BY own DESC LIMIT 1`,
    [tenantId, instanceId],
  );
  if (!row?.own) return { found: false, of_other_tenant: row !== undefined };
  const { agent_type, deployment_mode, may_join, deregistered } = row;
  if (!row.registered && !deregistered) return { found: false, of_other_tenant: false };
  return { found: true, agent_type, deployment_mode, may_join, deregistered };
}

/** A connection that is being opened. `resumes`: the epoch of the connection that it continues. */
export interface OpeningConnection {
  tenant_id: string;
  instance_id: string;
  mesh_id: string;
  hello: HelloPayload;
  /** Events of policy decisions about what its `hello` changes. */
  decided: readonly DecisionEvent[];
  resumes: number | null;
  /** Claims the dispatches that another node offers to the agent; absent if its token is for none. @returns their ids */
  offered?: { claim(tx: Tx, epoch: number, meshId: string): Promise<string[]> } | undefined;
}

/** A connection that was opened. */
export interface OpenedConnection {
  epoch: number;
  /** The open dispatches of the agent, without `claimed`; with `resumes`, those that were moved to the new epoch. */
  open: OpenDispatchRef[];
  /** Ids of the dispatches that this node continues for another. */
  claimed: string[];
}

/**
 * Makes this the instance's newest connection: raises the epoch, which fences off older connections, stores what `hello` says, and makes the
 * agent routable. A connection that resumes moves the open dispatches of the previous one to its epoch. With `offered`, it claims what another
 * node offers.
 * @returns the connection, or why there is none: `deregistered` by a request, `unknown` when the instance has to register again, `not_admitted`
 * when its type may no longer join
 */
export async function openConnection(
  tx: Tx,
  opening: OpeningConnection,
): Promise<OpenedConnection | 'deregistered' | 'unknown' | 'not_admitted'> {
  const { tenant_id, instance_id, hello } = opening;
  const before = await lockAgent(tx, tenant_id, instance_id);
  if (before && isDeregisteredOnRequest(before)) return 'deregistered';
  if (!before || before.deregistered_at || before.deployment_mode !== 'connected') return 'unknown';
  const [after] = await tx.query<{ connection_epoch: number; max_concurrent_sessions: number }>(OPEN_CONNECTION, [
    tenant_id,
    instance_id,
    opening.mesh_id,
    hello.max_concurrent_sessions ?? null,
    hello.agent_version ?? null,
    jsonOrNull(hello.agent_card),
    jsonOrNull(hello.skills),
    jsonOrNull(hello.tools),
    opening.resumes !== null,
    hello.max_concurrent_tasks ?? null,
  ]);
  if (!after) return 'not_admitted';
  await recordDecision(tx, tenant_id, '', opening.decided);
  await reportSessions(tx, opening, hello.current_sessions ?? 0);
  if (before.status !== 'available') await recordHealth(tx, before, 'available');
  if (before.max_concurrent_sessions !== after.max_concurrent_sessions) {
    await recordCapacity(tx, await getAgent(tx, tenant_id, instance_id));
  }
  const { connection_epoch: epoch } = after;
  const { resumes, offered, mesh_id: meshId } = opening;
  const claimed = offered ? await offered.claim(tx, epoch, meshId) : [];
  const found = await (resumes === null ? openDispatches(tx, opening) : moveDispatches(tx, opening, resumes, epoch));
  return { epoch, open: found.filter(({ dispatch_id }) => !claimed.includes(dispatch_id)), claimed };
}

const OPEN_CONNECTION = `
  UPDATE agents SET connection_epoch = connection_epoch + 1, mesh_id = $3, connected_at = now(), last_seen = now(),
    status = 'available', consecutive_failures = 0, saturated_until = CASE WHEN $9 THEN saturated_until END,
    max_concurrent_sessions = coalesce($4, max_concurrent_sessions), max_concurrent_tasks = coalesce($10, max_concurrent_tasks), agent_version = coalesce($5, agent_version),
    agent_card = coalesce($6, agent_card), skills = coalesce($7, skills), tools = coalesce(offerable_tools(tenant_id, agent_type, $8), tools)
  WHERE tenant_id = $1 AND instance_id = $2 AND type_may_join(tenant_id, agent_type)
  RETURNING connection_epoch, max_concurrent_sessions`;

function jsonOrNull(value: unknown): string | null {
  return value === undefined ? null : JSON.stringify(value);
}

/** What a heartbeat reports, and the connection's new status. */
export interface ConnectionChange {
  beat?: HeartbeatPayload;
  /** `offline` also clears the agent's node, so that routing skips it. */
  status?: Extract<AgentStatus, 'draining' | 'offline'>;
}

/**
 * Writes a heartbeat or a new status to the row of a connected agent, with its events. Writes nothing when a newer connection exists, and only
 * `offline` when the agent is deregistered.
 * @returns whether the agent may have got room
 */
export async function changeConnection(tx: Tx, connection: ConnectionRef, change: ConnectionChange): Promise<boolean> {
  const { tenant_id, instance_id, epoch } = connection;
  const [fence] = await tx.query<{ registered: boolean }>(
    `SELECT deregistered_at IS NULL AS registered FROM agents
      WHERE tenant_id = $1 AND instance_id = $2 AND connection_epoch = $3 FOR UPDATE`,
    [tenant_id, instance_id, epoch],
  );
  if (!fence) return false;
  const hasRoom =
    change.beat !== undefined && fence.registered && (await heartbeat(tx, tenant_id, instance_id, change.beat));
  if (change.status && (fence.registered || change.status === 'offline'))
    await setStatus(tx, connection, change.status);
  return hasRoom && !change.status;
}

async function setStatus(tx: Tx, connection: ConnectionRef, status: 'draining' | 'offline'): Promise<void> {
  const { tenant_id, instance_id } = connection;
  const before = await lockAgent(tx, tenant_id, instance_id);
  const offNode = status === 'offline' ? ', mesh_id = NULL, connected_at = NULL' : '';
  await tx.query(`UPDATE agents SET status = $3${offNode} WHERE tenant_id = $1 AND instance_id = $2`, [
    tenant_id,
    instance_id,
    status,
  ]);
  if (before && before.status !== status) await recordHealth(tx, before, status);
}

const AS_TABLE = 'unnest($1::text[], $2::text[], $3::bigint[]) AS live (tenant_id, instance_id, epoch)';

function asColumns(connections: readonly ConnectionRef[]): [string[], string[], number[]] {
  return [
    connections.map((connection) => connection.tenant_id),
    connections.map((connection) => connection.instance_id),
    connections.map((connection) => connection.epoch),
  ];
}

/**
 * Sets `last_seen` of these connections' agents in one statement. Needs a system transaction. It skips rows that are locked, because while it
 * waited it would hold the rows of other tenants; the next call sets those.
 */
export async function touchConnections(tx: Tx, connections: readonly ConnectionRef[]): Promise<void> {
  await tx.query(
    `WITH free AS MATERIALIZED (
       SELECT a.tenant_id, a.instance_id FROM ${AS_TABLE} JOIN agents a USING (tenant_id, instance_id)
        WHERE a.connection_epoch = live.epoch FOR NO KEY UPDATE OF a SKIP LOCKED)
     UPDATE agents a SET last_seen = now() FROM free WHERE a.tenant_id = free.tenant_id AND a.instance_id = free.instance_id`,
    asColumns(connections),
  );
}

/** A connection that is no longer its agent's: there is a newer one, or the agent was deregistered, or it was presumed dead or reaped. */
export interface OutdatedConnection extends ConnectionRef {
  reason: 'replaced' | 'deregistered' | 'presumed_dead';
}

/** Which of a node's connections are outdated. Needs a system transaction. */
export async function outdatedConnections(
  tx: Tx,
  meshId: string,
  connections: readonly ConnectionRef[],
): Promise<OutdatedConnection[]> {
  return tx.query<OutdatedConnection>(
    `SELECT live.*, CASE WHEN ${DEREGISTERED} THEN 'deregistered' WHEN a.connection_epoch <> live.epoch
                    THEN 'replaced' ELSE 'presumed_dead' END AS reason
       FROM ${AS_TABLE} JOIN agents a USING (tenant_id, instance_id)
      WHERE a.deregistered_at IS NOT NULL OR a.connection_epoch <> live.epoch OR a.mesh_id IS DISTINCT FROM $4`,
    [...asColumns(connections), meshId],
  );
}
