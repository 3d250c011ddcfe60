import { heartbeat, reportSessions } from '../../agents/agent-health.js';
import type { AgentRow } from '../../agents/agent-row.js';
import { isUnwanted } from '../../agents/agent-row.js';
import { getAgent, lockAgent, recordCapacity, recordHealth } from '../../agents/agents.js';
import type { AgentStatus, HeartbeatPayload } from '../../contracts/agents.js';
import type { HelloPayload } from '../../contracts/frames.js';
import type { Tx } from '../../db/pool.js';

/** One connection of an agent: a newer one has a higher epoch (architecture.md, decision 5). */
export interface ConnectionRef {
  tenant_id: string;
  instance_id: string;
  epoch: number;
}

/** Names an open dispatch; the same fields as `DispatchRef` of messages/. */
export interface OpenRef {
  tenant_id: string;
  message_id: string;
  dispatch_id: string;
  /** The node that sent it. */
  mesh_id: string | null;
}

/**
 * What the handshake knows of an instance. `unwanted`: somebody deregistered it, and it is to stay away. `elsewhere`: only another tenant
 * has one of that name.
 */
export type InstanceLookup =
  | { found: true; agent_type: string; deployment_mode: string; may_join: boolean; unwanted: boolean }
  | { found: false; elsewhere: boolean };

/** As `isUnwanted`, of an agent's row `a`. */
const UNWANTED = `(a.deregistered_at IS NOT NULL AND a.deregistration_cause IS NOT DISTINCT FROM 'explicit')`;

/** Looks an instance up across tenants. Needs a system transaction. */
export async function findInstance(tx: Tx, tenantId: string, instanceId: string): Promise<InstanceLookup> {
  const [row] = await tx.query<{
    own: boolean;
    agent_type: string;
    deployment_mode: string;
    may_join: boolean;
    registered: boolean;
    unwanted: boolean;
  }>(
    `SELECT tenant_id = $1 AS own, agent_type, deployment_mode, type_may_join(tenant_id, agent_type) AS may_join,
            deregistered_at IS NULL AS registered, ${UNWANTED} AS unwanted
       FROM agents a WHERE instance_id = $2 AND (tenant_id = $1 OR deregistered_at IS NULL) ORDER BY own DESC LIMIT 1`,
    [tenantId, instanceId],
  );
  if (!row?.own) return { found: false, elsewhere: row !== undefined };
  const { agent_type, deployment_mode, may_join, unwanted } = row;
  if (!row.registered && !unwanted) return { found: false, elsewhere: false };
  return { found: true, agent_type, deployment_mode, may_join, unwanted };
}

/** What opening a connection needs to know. `resumes` is the epoch of the connection that it continues. */
export interface OpeningConnection {
  tenant_id: string;
  instance_id: string;
  mesh_id: string;
  hello: HelloPayload;
  resumes: number | null;
}

/**
 * Makes this the instance's newest connection: raises the epoch, so that an older one is fenced off, takes over what `hello`
 * says, and makes the agent routable. A connection that resumes re-stamps the open dispatches of the one before.
 * @returns the new epoch and the dispatches open at that moment (for one that resumes: those re-stamped); or why there is no
 * connection: `deregistered` when it is to stay away, `unknown` when it is to register anew, or `kept_out` when its type may not join any
 * more
 */
export async function openConnection(
  tx: Tx,
  opening: OpeningConnection,
): Promise<{ epoch: number; open: OpenRef[] } | 'deregistered' | 'unknown' | 'kept_out'> {
  const { tenant_id, instance_id, hello } = opening;
  const before = await lockAgent(tx, tenant_id, instance_id);
  if (before && isUnwanted(before)) return 'deregistered';
  if (!before || before.deregistered_at || before.deployment_mode !== 'connected') return 'unknown';
  const [after] = await tx.query<{ connection_epoch: number; max_concurrent_sessions: number }>(TAKE_OVER, [
    tenant_id,
    instance_id,
    opening.mesh_id,
    hello.max_concurrent_sessions ?? null,
    hello.agent_version ?? null,
    jsonOrNull(hello.agent_card),
    jsonOrNull(hello.skills),
    jsonOrNull(hello.tools),
  ]);
  if (!after) return 'kept_out';
  await reportSessions(tx, opening, hello.current_sessions ?? 0);
  if (before.status !== 'available') await recordHealth(tx, before, 'available');
  if (before.max_concurrent_sessions !== after.max_concurrent_sessions) {
    await recordCapacity(tx, await getAgent(tx, tenant_id, instance_id));
  }
  const open = await tx.query<OpenRef>(opening.resumes === null ? OPEN_DISPATCHES : RESTAMP_DISPATCHES, [
    tenant_id,
    instance_id,
    ...(opening.resumes === null ? [] : [opening.resumes, after.connection_epoch]),
  ]);
  return { epoch: after.connection_epoch, open };
}

const TAKE_OVER = `
  UPDATE agents SET connection_epoch = connection_epoch + 1, mesh_id = $3, connected_at = now(), last_seen = now(),
    status = 'available', consecutive_failures = 0,
    max_concurrent_sessions = coalesce($4, max_concurrent_sessions), agent_version = coalesce($5, agent_version),
    agent_card = coalesce($6, agent_card), skills = coalesce($7, skills), tools = coalesce($8, tools)
  WHERE tenant_id = $1 AND instance_id = $2 AND type_may_join(tenant_id, agent_type)
  RETURNING connection_epoch, max_concurrent_sessions`;
const OPEN_DISPATCHES = `
  SELECT tenant_id, message_id, dispatch_id, mesh_id FROM dispatches WHERE tenant_id = $1 AND instance_id = $2 AND state IN ('open', 'sent')`;
const RESTAMP_DISPATCHES = `
  UPDATE dispatches SET epoch = $4 WHERE tenant_id = $1 AND instance_id = $2 AND state IN ('open', 'sent') AND epoch = $3
  RETURNING tenant_id, message_id, dispatch_id, mesh_id`;

function jsonOrNull(value: unknown): string | null {
  return value === undefined ? null : JSON.stringify(value);
}

/** What a heartbeat frame says, and what became of the connection. */
export interface ConnectionChange {
  beat?: HeartbeatPayload;
  /** `offline` also takes the agent off its node, so that routing skips it. */
  status?: Extract<AgentStatus, 'draining' | 'offline'>;
}

/**
 * Changes the row of a connected agent, with the events of it. When a newer connection exists nothing happens; when the agent is
 * deregistered, at most its node is taken away.
 * @returns the agent when it may have room that it had not before; else null
 */
export async function changeConnection(
  tx: Tx,
  connection: ConnectionRef,
  change: ConnectionChange,
): Promise<Pick<AgentRow, 'agent_type' | 'instance_id'> | null> {
  const { tenant_id, instance_id, epoch } = connection;
  const [fence] = await tx.query<{ registered: boolean }>(
    `SELECT deregistered_at IS NULL AS registered FROM agents
      WHERE tenant_id = $1 AND instance_id = $2 AND connection_epoch = $3 FOR UPDATE`,
    [tenant_id, instance_id, epoch],
  );
  if (!fence) return null;
  const beats = change.beat !== undefined && fence.registered;
  const roomy = beats ? await heartbeat(tx, tenant_id, instance_id, change.beat ?? {}) : null;
  if (change.status && (fence.registered || change.status === 'offline'))
    await setStatus(tx, connection, change.status);
  return change.status ? null : roomy;
}

async function setStatus(tx: Tx, connection: ConnectionRef, status: 'draining' | 'offline'): Promise<void> {
  const { tenant_id, instance_id } = connection;
  const before: AgentRow | undefined = await lockAgent(tx, tenant_id, instance_id);
  const offNode = status === 'offline' ? ', mesh_id = NULL, connected_at = NULL' : '';
  await tx.query(`UPDATE agents SET status = $3${offNode} WHERE tenant_id = $1 AND instance_id = $2`, [
    tenant_id,
    instance_id,
    status,
  ]);
  if (before && before.status !== status) await recordHealth(tx, before, status);
}

/** How these dispatches of an instance stand, by id; what it never had is missing. */
export async function dispatchStates(
  tx: Tx,
  agent: { tenant_id: string; instance_id: string },
  dispatchIds: readonly string[],
): Promise<Map<string, string>> {
  // By the key alone: an agent may have had more dispatches than are asked for.
  const rows = await tx.query<{ dispatch_id: string; instance_id: string; state: string }>(
    `SELECT dispatch_id, instance_id, CASE WHEN state IN ('open', 'sent') THEN 'open' ELSE state END AS state
       FROM dispatches WHERE tenant_id = $1 AND dispatch_id = ANY ($2)`,
    [agent.tenant_id, dispatchIds],
  );
  const own = rows.filter((row) => row.instance_id === agent.instance_id);
  return new Map(own.map((row) => [row.dispatch_id, row.state]));
}

const AS_TABLE = 'unnest($1::text[], $2::text[], $3::bigint[]) AS live (tenant_id, instance_id, epoch)';

function asColumns(connections: readonly ConnectionRef[]): [string[], string[], number[]] {
  return [
    connections.map((connection) => connection.tenant_id),
    connections.map((connection) => connection.instance_id),
    connections.map((connection) => connection.epoch),
  ];
}

/** Notes a sign of life of each of these connections, in one statement. Needs a system transaction. */
export async function touchConnections(tx: Tx, connections: readonly ConnectionRef[]): Promise<void> {
  await tx.query(
    `UPDATE agents a SET last_seen = now() FROM ${AS_TABLE}
      WHERE a.tenant_id = live.tenant_id AND a.instance_id = live.instance_id AND a.connection_epoch = live.epoch`,
    asColumns(connections),
  );
}

/** A connection that the database no longer knows as the agent's own: a newer one, a deregistration, or taken for dead (reaped, too). */
export interface OutdatedConnection extends ConnectionRef {
  reason: 'replaced' | 'deregistered' | 'presumed_dead';
}

/** Which of a node's connections are outdated. Needs a system transaction. */
export async function outdatedConnections(
  tx: Tx,
  meshId: string,
  connections: readonly ConnectionRef[],
): Promise<OutdatedConnection[]> {
  return tx.query<OutdatedConnection & Record<string, unknown>>(
    `SELECT live.*, CASE WHEN ${UNWANTED} THEN 'deregistered' WHEN a.connection_epoch <> live.epoch
                    THEN 'replaced' ELSE 'presumed_dead' END AS reason
       FROM ${AS_TABLE} JOIN agents a USING (tenant_id, instance_id)
      WHERE a.deregistered_at IS NOT NULL OR a.connection_epoch <> live.epoch OR a.mesh_id IS DISTINCT FROM $4`,
    [...asColumns(connections), meshId],
  );
}
