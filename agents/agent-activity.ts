import type { AgentInstance, AgentTypeActivity, ListedAgent } from '../contracts/api/agents.js';
import { queryJson } from '../db/json-rows.js';
import type { Tx } from '../db/pool.js';
import { listedPace } from './agent-latency.js';

/** How many failed messages of the last hour are counted. If a tenant has more, the counts are those of the newest. */
const FAILED_MAX = 10_000;

/** Error codes that say nothing about the instance: rules, people or the lack of an agent failed the message. */
const BY_OTHERS = `'{POLICY_DENIED,GUARD_DENIED,APPROVAL_REJECTED,APPROVAL_EXPIRED,TARGET_UNAVAILABLE}'`;

/** The tenant's failures of the last hour. */
const FAILURES = `(SELECT x.instance_id, x.agent_type, x.error_code, x.completed_at FROM messages x
  WHERE x.tenant_id = $1 AND x.unsuccessful_state = 'failed' AND x.message_id >= id_bound('msg', now() - interval '1 hour')
  ORDER BY x.message_id DESC LIMIT ${FAILED_MAX})`;
const LAST_ERROR = '(array_agg(m.error_code ORDER BY m.completed_at DESC))[1] AS last_error';

const WORK = `
  WITH failed AS (
    SELECT m.instance_id, count(*) AS count, ${LAST_ERROR} FROM ${FAILURES} m
     WHERE m.instance_id = ANY ($2) AND m.error_code <> ALL (${BY_OTHERS}) GROUP BY m.instance_id)
  SELECT one.instance_id, queue_length($1, one.instance_id) AS queue_length, tasks_on($1, one.instance_id, NULL) AS in_flight,
         coalesce(f.count, 0) AS failed_last_hour, coalesce(f.last_error, o.last_error) AS last_error, o.failing_since
    FROM unnest($2::text[]) AS one (instance_id) LEFT JOIN failed f USING (instance_id)
    LEFT JOIN agent_outcomes o ON o.tenant_id = $1 AND o.instance_id = one.instance_id`;

interface WorkRow extends Pick<ListedAgent, 'instance_id' | 'queue_length' | 'in_flight' | 'failed_last_hour'> {
  last_error: string | null;
  failing_since: string | null;
}

/** These agents as `/agents/get` lists them: with what they have to do, and how they fared in the last hour. */
export async function withActivity(tx: Tx, tenantId: string, agents: AgentInstance[]): Promise<ListedAgent[]> {
  const ids = agents.map(({ instance_id }) => instance_id);
  const pace = await listedPace(tx, tenantId, ids);
  const work = await queryJson<WorkRow>(tx, WORK, [tenantId, ids]);
  const byInstance = new Map(work.map((row) => [row.instance_id, row]));
  return agents.map((agent) => {
    const { sent_per_minute = 0, p50 = null, p95 = null } = pace.get(agent.instance_id) ?? {};
    const {
      queue_length = 0,
      in_flight = 0,
      failed_last_hour = 0,
      last_error = null,
      failing_since = null,
    } = byInstance.get(agent.instance_id) ?? {};
    return {
      ...agent,
      ...{ queue_length, in_flight, sent_per_minute, failed_last_hour, latency_ms: { p50, p95 } },
      ...(last_error !== null && { last_error }),
      ...(failing_since !== null && { failing_since }),
    };
  });
}

/** Types that are listed, the first in the alphabet. */
const TYPES_MAX = 1_000;

/** The types with their registered agents, running and queued messages (`TENANT_MAX_QUEUED` at most) and `FAILURES`. Reads no other history. */
const TYPES = `
  WITH registered AS (
    SELECT a.agent_type, count(*) AS instances, count(*) FILTER (WHERE a.status <> 'offline') AS online,
           count(*) FILTER (WHERE a.status = 'draining' OR a.drained AND a.status IN ('available', 'busy', 'unknown')) AS draining,
           count(*) FILTER (WHERE a.status = 'unhealthy') AS unhealthy, count(o.failing_since) AS failing, min(o.failing_since) AS failing_since,
           (array_agg(o.last_error ORDER BY o.failing_since))[1] AS last_error,
           CASE WHEN coalesce(min(a.max_concurrent_sessions) FILTER (WHERE a.status <> 'offline'), 1) > 0
             THEN coalesce(sum(a.max_concurrent_sessions) FILTER (WHERE a.status <> 'offline'), 0) END AS max_concurrent_sessions
      FROM agents a LEFT JOIN agent_outcomes o ON o.tenant_id = $1 AND o.instance_id = a.instance_id AND o.failing_since IS NOT NULL
     WHERE a.tenant_id = $1 AND coalesce(a.deregistered_at, 'infinity') = 'infinity' GROUP BY 1),
  held AS (
    SELECT r.agent_type, count(*) AS count FROM running_messages r WHERE r.tenant_id = $1 AND r.holds_slot AND r.instance_id IS NOT NULL GROUP BY 1),
  queues AS (
    SELECT r.queue, count(*) AS count, min(r.created_at) AS since FROM running_messages r WHERE r.tenant_id = $1 AND r.queue >= '' GROUP BY 1),
  queued AS (
    SELECT coalesce(a.agent_type, t.agent_type) AS agent_type, sum(q.count)::integer AS count, min(q.since) AS since
      FROM queues q CROSS JOIN LATERAL queue_target(q.queue) t
      LEFT JOIN agents a ON a.tenant_id = $1 AND a.instance_id = nullif(t.instance_id, '') GROUP BY 1),
  failed AS (
    SELECT m.agent_type, count(*) AS count, ${LAST_ERROR} FROM ${FAILURES} m
     WHERE m.instance_id IS NOT NULL AND m.error_code <> ALL (${BY_OTHERS}) GROUP BY 1)
  SELECT agent_type, coalesce(a.instances, 0) AS instances, coalesce(a.online, 0) AS online, coalesce(a.draining, 0) AS draining,
         coalesce(a.unhealthy, 0) AS unhealthy, coalesce(h.count, 0) AS in_flight,
         CASE WHEN a.instances IS NULL THEN 0 ELSE a.max_concurrent_sessions END AS max_concurrent_sessions,
         coalesce(q.count, 0) AS queue_length, q.since AS queued_since, coalesce(f.count, 0) AS failed_last_hour,
         coalesce(f.last_error, a.last_error) AS last_error, coalesce(a.failing, 0) AS failing, a.failing_since
    FROM registered a FULL JOIN held h USING (agent_type) FULL JOIN queued q USING (agent_type) FULL JOIN failed f USING (agent_type)
   WHERE agent_type <> '' ORDER BY agent_type LIMIT ${TYPES_MAX}`;

/** The tenant's agent types, including those without an agent for which messages still wait. */
export async function listTypes(tx: Tx, tenantId: string): Promise<AgentTypeActivity[]> {
  const rows = await queryJson<Record<string, unknown>>(tx, TYPES, [tenantId]);
  const known = (row: Record<string, unknown>) =>
    Object.entries(row).filter(([name, value]) => value !== null || name === 'max_concurrent_sessions');
  return rows.map((row) => Object.fromEntries(known(row)) as AgentTypeActivity);
}
