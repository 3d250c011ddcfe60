import {
  AGENT_STATUSES,
  type AgentConnection,
  type AgentInstance,
  type ConnectionStats,
  type ConnectionStatus,
} from '../contracts/api/agents.js';
import { AGENT_NOT_READY } from '../contracts/errors.js';
import type { Reader } from '../contracts/permissions.js';
import { queryJson } from '../db/json-rows.js';
import type { Db, Tx } from '../db/pool.js';
import { readLatency } from './agent-latency.js';
import type { AgentRef } from './agent-row.js';
import { getAgentFor, INSTANCES } from './agents.js';

const TRANSPORTS = { connected: 'ws', hosted: 'callback' } as const;

type Health = Pick<AgentInstance, 'deployment_mode' | 'status' | 'consecutive_failures'>;

/** How many of an agent's last ten messages its handler failed, and the code of the last failure. */
interface HandlerFailures {
  failures: number;
  last_error: string;
}

/** An agent that fails while others of its type succeed. */
const FAILING = `
  SELECT bit_count(o.failures::integer::bit(10))::int AS failures, o.last_error
    FROM agent_outcomes o JOIN agents a USING (tenant_id, instance_id)
   WHERE a.tenant_id = $1 AND a.instance_id = $2 AND fails_beside_others(a.tenant_id, a.instance_id, a.agent_type)`;

/** Why an agent is degraded; null when it is not. @param failing given if the agent fails while others of its type succeed */
function degradedReason({ status, consecutive_failures }: Health, failing?: HandlerFailures): string | null {
  if (consecutive_failures > 1) return `Its last ${consecutive_failures} dispatches failed.`;
  if (consecutive_failures === 1) return 'Its last dispatch failed.';
  if (status === 'unhealthy') return 'It has given no sign of life for 90 s, or reports that it is unhealthy.';
  if (!failing) return null;
  const { failures, last_error } = failing;
  return `${failures} of its last 10 messages failed (${last_error}), while other agents of its type succeed.`;
}

/**
 * The state of the connection to an agent. `offline`: no socket, or deregistered. `degraded`: it fails, or gives no
 * sign of life. Otherwise a connected agent is `online`, and a hosted one is `unknown` until it was first reached, then `healthy`.
 */
export function connectionState(
  agent: Health,
  failing?: HandlerFailures,
): { connection_status: ConnectionStatus; degraded_reason?: string } {
  if (agent.status === 'offline') return { connection_status: 'offline' };
  const degraded_reason = degradedReason(agent, failing);
  if (degraded_reason !== null) return { connection_status: 'degraded', degraded_reason };
  if (agent.deployment_mode === 'connected') return { connection_status: 'online' };
  return { connection_status: agent.status === 'unknown' ? 'unknown' : 'healthy' };
}

/** Reads the connection to one agent, the results of its dispatches and how long they took. @throws PlatformError NOT_FOUND */
export async function getConnection(db: Db, reader: Reader, instanceId: string): Promise<AgentConnection> {
  const { tenant_id } = reader;
  const { agent, failing } = await db.tenant(tenant_id, async (tx) => ({
    agent: await getAgentFor(tx, reader, instanceId),
    failing: (await tx.query<HandlerFailures>(FAILING, [tenant_id, instanceId]))[0],
  }));
  return {
    transport: TRANSPORTS[agent.deployment_mode],
    ...connectionState(agent, failing),
    owner_mesh_id: agent.mesh_id,
    ...(await dispatchTotals(db, tenant_id, instanceId)),
    latency_ms: await db.tenant(tenant_id, (tx) => readLatency(tx, tenant_id, instanceId)),
    status: agent.status,
    last_seen: agent.last_seen,
  };
}

/** Counts agents by mode, status and transport. Deregistered agents count as `offline`, as in the list. */
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

/**
 * Since when an instance is connected, when its newest dispatch was sent, how many dispatches succeeded (or asked for human input) and how
 * many failed (or did not reach it; canceled ones count as neither), and the error code of the newest failure.
 */
type DispatchTotals = Pick<
  AgentConnection,
  'connected_since' | 'last_dispatch_at' | 'dispatches_succeeded' | 'dispatches_failed' | 'last_dispatch_error'
>;

/** Dispatches newer than this are not added to the totals yet: a transaction that began in that time may still commit one. */
const SETTLED_AFTER = "interval '10 minutes'";
/** Dispatches added to the totals in one transaction. */
const STEP = 50_000;

const OF_INSTANCE = 'd.tenant_id = $1 AND d.instance_id = $2';
const FAILED = `(d.state IN ('failed', 'lost') OR d.state = 'released' AND d.error_code IN ('CONNECT_FAILED', '${AGENT_NOT_READY}'))`;
const COUNTS = `
  count(*) FILTER (WHERE d.state IN ('completed', 'input_required')) AS succeeded, count(*) FILTER (WHERE ${FAILED}) AS failed,
  (array_agg(d.error_code ORDER BY d.ended_at DESC) FILTER (WHERE ${FAILED}))[1] AS last_error,
  coalesce(max(d.ended_at) FILTER (WHERE ${FAILED}), '-infinity') AS last_failed_at`;
/** The error of the failed dispatch that ended last. A dispatch of the totals may have ended after a newer one, so both sides are compared. */
const LAST_ERROR = (newer: string): string =>
  `CASE WHEN ${newer}.last_failed_at > t.last_failed_at THEN ${newer}.last_error ELSE t.last_error END`;

const LOCK = `
  INSERT INTO dispatch_totals (tenant_id, instance_id) VALUES ($1, $2)
  ON CONFLICT (tenant_id, instance_id) DO UPDATE SET until = dispatch_totals.until`;

/** Adds the dispatches before the oldest open one to the totals, at most one step of them. */
const ADD_STEP = `
  WITH bound AS (
    SELECT least(now() - ${SETTLED_AFTER},
             (SELECT min(d.created_at) FROM running_messages r JOIN dispatches d
                  ON d.tenant_id = r.tenant_id AND d.dispatch_id = r.current_dispatch_id
               WHERE r.tenant_id = $1 AND r.instance_id = $2 AND r.holds_slot AND d.state IN ('open', 'sent'))) AS settled,
           (SELECT d.created_at FROM dispatches d WHERE ${OF_INSTANCE} AND d.created_at >= t.until
             ORDER BY d.created_at OFFSET $3 LIMIT 1) AS step, t.until AS since
      FROM dispatch_totals t WHERE t.tenant_id = $1 AND t.instance_id = $2),
  counted AS (
    SELECT ${COUNTS} FROM dispatches d, bound
     WHERE ${OF_INSTANCE} AND d.created_at >= bound.since AND d.created_at < least(bound.settled, bound.step))
  UPDATE dispatch_totals t SET until = greatest(t.until, least(bound.settled, bound.step)),
    succeeded = t.succeeded + counted.succeeded, failed = t.failed + counted.failed,
    last_error = ${LAST_ERROR('counted')}, last_failed_at = greatest(t.last_failed_at, counted.last_failed_at)
    FROM bound, counted WHERE t.tenant_id = $1 AND t.instance_id = $2
  RETURNING bound.step < bound.settled AND bound.step > bound.since AS more`;

const READ = `
  SELECT t.succeeded + recent.succeeded AS dispatches_succeeded, t.failed + recent.failed AS dispatches_failed,
         ${LAST_ERROR('recent')} AS last_dispatch_error,
         (SELECT d.sent_at FROM dispatches d WHERE ${OF_INSTANCE} AND d.sent_at IS NOT NULL
           ORDER BY d.created_at DESC LIMIT 1) AS last_dispatch_at,
         (SELECT a.connected_at FROM agents a WHERE a.tenant_id = $1 AND a.instance_id = $2) AS connected_since
    FROM dispatch_totals t
    CROSS JOIN LATERAL (SELECT ${COUNTS} FROM dispatches d WHERE ${OF_INSTANCE} AND d.created_at >= t.until) recent
   WHERE t.tenant_id = $1 AND t.instance_id = $2`;

/**
 * Counts the dispatches to an instance. A read adds settled dispatches to stored totals, in steps, and counts only newer ones, so that
 * repeated reads stay cheap and messages write nothing extra while they run.
 * @param step dispatches added in one transaction, at least 1
 */
export async function dispatchTotals(
  db: Db,
  tenantId: string,
  instanceId: string,
  step = STEP,
): Promise<DispatchTotals> {
  const addStep = async (tx: Tx): Promise<boolean> => {
    await tx.query(LOCK, [tenantId, instanceId]);
    const [row] = await tx.query<{ more: boolean | null }>(ADD_STEP, [tenantId, instanceId, step]);
    return row?.more === true;
  };
  while (await db.tenant(tenantId, addStep));
  const [totals] = await db.tenant(tenantId, (tx) => queryJson<DispatchTotals>(tx, READ, [tenantId, instanceId]));
  if (!totals) throw new Error('the dispatch totals of an instance are missing');
  return totals;
}

const UNCOUNTED = `
  SELECT u.tenant_id, u.instance_id FROM uncounted_agents($1) u
   WHERE (u.tenant_id, u.instance_id) > ($2, $3) AND EXISTS (SELECT 1 FROM dispatches d
     WHERE d.tenant_id = u.tenant_id AND d.instance_id = u.instance_id AND d.created_at >= u.since AND d.created_at < $1)
   ORDER BY u.tenant_id, u.instance_id LIMIT 500`;

/** Brings the totals up to date for all agents that have uncounted dispatches from before a time. */
export async function settleTotals(db: Db, before: Date): Promise<void> {
  for (let last: AgentRef | undefined = { tenant_id: '', instance_id: '' }; last; ) {
    const after: AgentRef = last;
    const agents = await db.system((tx) => tx.query<AgentRef>(UNCOUNTED, [before, after.tenant_id, after.instance_id]));
    for (const { tenant_id, instance_id } of agents) await dispatchTotals(db, tenant_id, instance_id);
    last = agents.at(-1);
  }
}

const ADD_ERASED = `
  UPDATE dispatch_totals t SET succeeded = t.succeeded + c.succeeded, failed = t.failed + c.failed,
    last_error = ${LAST_ERROR('c')}, last_failed_at = greatest(t.last_failed_at, c.last_failed_at)
    FROM (SELECT d.instance_id, ${COUNTS} FROM dispatches d JOIN dispatch_totals u ON u.tenant_id = $1 AND u.instance_id = d.instance_id
           WHERE d.tenant_id = $1 AND d.dispatch_id = ANY ($2) AND d.created_at >= u.until GROUP BY d.instance_id) c
   WHERE t.tenant_id = $1 AND t.instance_id = c.instance_id`;

/** Adds dispatches that this transaction is about to erase to the totals of their agents, unless they are counted already. */
export async function countErased(tx: Tx, tenantId: string, dispatchIds: readonly string[]): Promise<void> {
  if (dispatchIds.length === 0) return;
  const agents = await tx.query<{ instance_id: string }>(
    'SELECT DISTINCT instance_id FROM dispatches WHERE tenant_id = $1 AND dispatch_id = ANY ($2) ORDER BY instance_id',
    [tenantId, dispatchIds],
  );
  for (const { instance_id } of agents) await tx.query(LOCK, [tenantId, instance_id]);
  await tx.query(ADD_ERASED, [tenantId, dispatchIds]);
}
