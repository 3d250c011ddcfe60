import type { AgentRow } from '../agents/agent-row.js';
import type { FleetGetAgentsArguments, ToolCallPayload } from '../contracts/api/tools.js';
import type { Reader } from '../contracts/permissions.js';
import { ownSessions, viewOf } from '../db/ownership.js';
import type { Tx } from '../db/pool.js';
import type { OpenDispatch } from '../messages/dispatch/dispatches.js';

/** Agents that offer a tool whose loads are compared at most. */
const COMPARED_MAX = 100;
const CANDIDATES_MAX = 20;

/** An agent that can take a tool call. */
export interface ToolCandidate
  extends Pick<AgentRow, 'instance_id' | 'agent_type' | 'deployment_mode' | 'mesh_id' | 'max_concurrent_sessions'> {
  /** The agent reports that it accepts no more work. */
  busy: boolean;
  /** The sessions that it serves. */
  load: number;
}

/** The agents that can take a tool call, and the counts that explain an empty list. */
export interface ToolTargets {
  /** Registered agents that match the target. */
  matching: number;
  /** The types of matching agents that offer the tool: those with an agent that is available first, then the one that has offered it longest. */
  offered_by: string[];
  /** False when the call names a session that does not exist for the caller. */
  session_known: boolean;
  /** Agents that can take the call now: the least loaded first, then the longest idle. */
  candidates: ToolCandidate[];
}

const OFFERS = (name: string) =>
  `(a.tools @> to_jsonb(${name}::text) OR a.tools @> jsonb_build_array(jsonb_build_object('name', ${name}::text)))`;
/** The owners of a tool decide which types offer it, whatever an agent has registered. */
const MAY_OFFER = (name: string) =>
  `NOT EXISTS (SELECT 1 FROM tool_owners o WHERE o.tenant_id = $1 AND o.tool = ${name} AND a.agent_type <> ALL (o.agent_types))`;
/** Busy agents are included, as the last choice: a tool call does not wait for a free agent. */
const AVAILABLE = `(NOT a.drained AND a.status IN ('available', 'unknown', 'busy') AND (a.deployment_mode = 'hosted' OR a.mesh_id IS NOT NULL))`;

const TARGETS = `
  WITH matching AS MATERIALIZED (
    SELECT a.instance_id, a.agent_type, a.deployment_mode, a.mesh_id, a.max_concurrent_sessions, a.status = 'busy' AS busy, ${AVAILABLE} AS available,
           a.registered_at, ${OFFERS('$2')} AND ${MAY_OFFER('$2')} AS offers
      FROM agents a
     WHERE a.tenant_id = $1 AND a.deregistered_at IS NULL AND ($3::text IS NULL OR a.instance_id = $3)
       AND ($4::text IS NULL OR a.agent_type = $4) AND has_skill(a, $5)),
  compared AS MATERIALIZED (SELECT * FROM matching WHERE available AND offers ORDER BY busy, random() LIMIT ${COMPARED_MAX}),
  best AS (
    SELECT c.instance_id, c.agent_type, c.deployment_mode, c.mesh_id, c.max_concurrent_sessions, c.busy, serving.load, last.created_at
      FROM compared c
      CROSS JOIN LATERAL (SELECT agent_load($1, c.instance_id) AS load) serving
      LEFT JOIN LATERAL (SELECT d.created_at FROM dispatches d WHERE d.tenant_id = $1 AND d.instance_id = c.instance_id
                            AND d.dispatch_id >= id_bound('dsp', (date_trunc('month', now()) - interval '1 month')::date)
                          ORDER BY d.created_at DESC LIMIT 1) last ON true
     ORDER BY c.busy, serving.load, last.created_at NULLS FIRST, c.instance_id
     LIMIT ${CANDIDATES_MAX})
  SELECT (SELECT count(*) FROM matching) AS matching, ARRAY(SELECT o.agent_type FROM matching o WHERE o.offers GROUP BY o.agent_type
           ORDER BY bool_or(o.available) DESC, min(o.registered_at), o.agent_type) AS offered_by,
         $6::text IS NULL OR EXISTS (SELECT 1 FROM sessions s WHERE s.tenant_id = $1 AND s.session_id = $6
           AND ${ownSessions('s', '$7')}) AS session_known,
         (SELECT coalesce(jsonb_agg(to_jsonb(best) - 'created_at' ORDER BY busy, load, created_at NULLS FIRST, instance_id), '[]')
            FROM best) AS candidates`;

/** Finds the agents of the caller's tenant that can take a tool call. An agent must match all members of `target`. */
export async function findToolTargets(
  tx: Tx,
  caller: Reader,
  { tool, target, session_id }: Pick<ToolCallPayload, 'tool' | 'target' | 'session_id'>,
): Promise<ToolTargets> {
  const { instance_id = null, agent_type = null, skill_id = null } = target ?? {};
  const values = [caller.tenant_id, tool, instance_id, agent_type, skill_id, session_id ?? null, viewOf(caller)];
  const [found] = await tx.query<ToolTargets>(TARGETS, values, 'tool_targets');
  return found ?? { matching: 0, offered_by: [], session_known: true, candidates: [] };
}

/** Address, card and credential of a hosted agent. */
export type HostedTarget = Pick<OpenDispatch, 'public_url' | 'agent_card' | 'dispatch_auth'>;

/** Reads a hosted agent; undefined when the instance is not registered as hosted. */
export async function findHosted(tx: Tx, tenantId: string, instanceId: string): Promise<HostedTarget | undefined> {
  const [row] = await tx.query<HostedTarget>(
    `SELECT public_url, agent_card, dispatch_auth FROM agents
      WHERE tenant_id = $1 AND instance_id = $2 AND deployment_mode = 'hosted' AND deregistered_at IS NULL`,
    [tenantId, instanceId],
  );
  return row;
}

const LISTED_MAX = 100;
const LISTED_BYTES_MAX = 256 * 1024;

const LISTED = `
  WITH listed AS (
    SELECT a.instance_id, a.agent_type, a.deployment_mode, offerable_tools(a.tenant_id, a.agent_type, a.tools) AS tools,
           a.skills || CASE WHEN jsonb_array_length(a.skills) = 0 AND jsonb_typeof(a.agent_card -> 'skills') = 'array'
                            THEN a.agent_card -> 'skills' ELSE '[]' END AS skills
      FROM agents a
     WHERE a.tenant_id = $1 AND a.deregistered_at IS NULL AND ${AVAILABLE} AND ($2::text IS NULL OR a.agent_type = $2)
       AND has_skill(a, $3) AND ($4::text IS NULL OR ${OFFERS('$4')} AND ${MAY_OFFER('$4')})),
  measured AS (
    SELECT *, count(*) OVER () AS total, sum(octet_length(tools::text) + octet_length(skills::text))
                OVER (ORDER BY agent_type, instance_id) AS bytes FROM listed ORDER BY agent_type, instance_id LIMIT ${LISTED_MAX})
  SELECT * FROM measured WHERE bytes <= ${LISTED_BYTES_MAX} ORDER BY agent_type, instance_id`;

/** Lists the available agents of a tenant: at most 100, with at most 256 KiB of skills and tools. `count` is the total. */
export async function listToolAgents(
  tx: Tx,
  tenantId: string,
  filter: FleetGetAgentsArguments,
): Promise<{ count: number; agents: object[] }> {
  const values = [tenantId, filter.agent_type ?? null, filter.skill_id ?? null, filter.tool ?? null];
  const rows = await tx.query<{ total: number; bytes: number }>(LISTED, values);
  return { count: rows[0]?.total ?? 0, agents: rows.map(({ total: _total, bytes: _bytes, ...agent }) => agent) };
}

/** A running dispatch whose agent calls a tool by HTTP. */
export interface CallingDispatch {
  message_id: string;
  session_id: string;
  instance_id: string;
  agent_type: string;
  skill_id: string | null;
  ms_left: number;
  trace_id: string;
  /** Whether the trace is sampled. */
  sampled: boolean;
}

/** Reads a dispatch that was sent and has not ended; null otherwise. `ms_left` is set also while its deadline stands still. */
export async function findCallingDispatch(
  tx: Tx,
  tenantId: string,
  dispatchId: string,
): Promise<CallingDispatch | null> {
  const [row] = await tx.query<CallingDispatch>(
    `SELECT d.message_id, m.session_id, d.instance_id, d.agent_type, d.skill_id, trace_of(m.trace_id, m.message_id) AS trace_id,
            m.propagation ->> 'sampled' IS DISTINCT FROM 'false' AS sampled, coalesce((extract(epoch FROM d.deadline_at - now()) * 1000)::float8, g.deadline_left_ms, m.deadline_ms)::float8 AS ms_left
       FROM dispatches d JOIN messages m USING (tenant_id, message_id)
       LEFT JOIN tool_grants g ON g.tenant_id = d.tenant_id AND g.message_id = d.message_id AND g.dispatch_id = d.dispatch_id
        AND g.decided_at IS NULL
      WHERE d.tenant_id = $1 AND d.dispatch_id = $2 AND d.state = 'sent'`,
    [tenantId, dispatchId],
  );
  return row ?? null;
}

/** The type of a registered agent; null when the instance is not registered. */
export async function typeOfAgent(tx: Tx, tenantId: string, instanceId: string): Promise<string | null> {
  const [row] = await tx.query<{ agent_type: string }>(
    'SELECT agent_type FROM agents WHERE tenant_id = $1 AND instance_id = $2 AND deregistered_at IS NULL',
    [tenantId, instanceId],
  );
  return row?.agent_type ?? null;
}

/** Whether a call names the agent that it is for. */
export function hasTarget({ target }: ToolCallPayload): boolean {
  return (target?.instance_id ?? target?.agent_type ?? target?.skill_id) !== undefined;
}
