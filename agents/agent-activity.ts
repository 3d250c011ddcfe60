import type { AgentInstance, ListedAgent } from '../contracts/api/agents.js';
import { queryJson } from '../db/json-rows.js';
import type { Tx } from '../db/pool.js';
import { listedPace } from './agent-latency.js';

/** Failed messages that are looked at, the newest of the tenant: where an hour has more, the counts are of those. */
const FAILED_MAX = 10_000;

/** Messages that rules, people or the lack of an agent failed say nothing about the instance that they were with. */
const BY_OTHERS = `'{POLICY_DENIED,GUARD_DENIED,APPROVAL_REJECTED,APPROVAL_EXPIRED,TARGET_UNAVAILABLE}'`;

const WORK = `
  WITH failed AS (
    SELECT m.instance_id, count(*) AS count, (array_agg(m.error_code ORDER BY m.completed_at DESC))[1] AS last_error
      FROM (SELECT x.instance_id, x.error_code, x.completed_at FROM messages x
             WHERE x.tenant_id = $1 AND x.unsuccessful_state = 'failed' AND x.message_id >= id_bound('msg', now() - interval '1 hour')
             ORDER BY x.message_id DESC LIMIT ${FAILED_MAX}) m
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
