import { type AgentConnection, LATENCY_WINDOW_SECONDS } from '../contracts/api/agents.js';
import type { Tx } from '../db/pool.js';

/** Dispatches that are read of one agent. If it has more in the hour, the newest stand for all, so that a read stays quick. */
const DISPATCHES_MAX = 10_000;
/**
 * Dispatches that are read of each agent of a list. With a thousand each, a list of a hundred agents took 0.6 s on two busy cores; with ten
 * thousand each, 13 s.
 */
const LISTED_DISPATCHES_MAX = 1_000;

/**
 * The times for which calls of one dispatch waited may be added, because two requests about them are never open at once
 * (`input_requests_one_open`). If all dispatches that the limit allows were sent within a minute, `sent_per_minute` is extrapolated from the
 * time that they cover.
 */
const PACE = `
  WITH recent AS MATERIALIZED (
    SELECT d.* FROM unnest($2::text[]) AS one (instance_id) CROSS JOIN LATERAL (
      SELECT x.instance_id, x.dispatch_id, x.message_id, x.state, x.sent_at, x.ended_at FROM dispatches x
       WHERE x.tenant_id = $1 AND x.instance_id = one.instance_id AND x.created_at > now() - $3 * interval '1 s'
       ORDER BY x.created_at DESC LIMIT $4) d),
  waits AS (
    SELECT g.dispatch_id, sum(r.ended_at - r.requested_at) AS waited
      FROM tool_grants g JOIN input_requests r USING (tenant_id, request_id)
     WHERE g.tenant_id = $1 AND g.message_id IN (SELECT message_id FROM recent) AND r.ended_at IS NOT NULL
     GROUP BY g.dispatch_id),
  timed AS (
    SELECT d.instance_id, d.sent_at, CASE WHEN d.state IN ('completed', 'failed', 'input_required') AND d.sent_at IS NOT NULL
             THEN greatest(0, extract(epoch FROM d.ended_at - d.sent_at - coalesce(w.waited, interval '0')) * 1000)::float8 END AS ms
      FROM recent d LEFT JOIN waits w USING (dispatch_id))
  SELECT t.instance_id, count(t.ms) AS count,
         percentile_disc(0.5) WITHIN GROUP (ORDER BY t.ms) AS p50, percentile_disc(0.95) WITHIN GROUP (ORDER BY t.ms) AS p95,
         CASE WHEN count(*) = $4 AND min(t.sent_at) > now() - interval '1 minute'
           THEN round(count(*) * 60 / extract(epoch FROM greatest(now() - min(t.sent_at), interval '1 ms')))::float8
           ELSE count(*) FILTER (WHERE t.sent_at > now() - interval '1 minute') END AS sent_per_minute
    FROM timed t GROUP BY t.instance_id`;

/** How an instance has worked in the last hour. Times are in milliseconds; null where it ended nothing. */
export interface AgentPace extends Pick<AgentConnection['latency_ms'], 'p50' | 'p95' | 'count'> {
  sent_per_minute: number;
}

async function readPace(
  tx: Tx,
  tenantId: string,
  instanceIds: string[],
  most: number,
): Promise<Map<string, AgentPace>> {
  const values = [tenantId, instanceIds, LATENCY_WINDOW_SECONDS, most];
  const rows = await tx.query<AgentPace & { instance_id: string }>(PACE, values);
  return new Map(rows.map(({ instance_id, ...pace }) => [instance_id, pace]));
}

/** The pace of these instances. An instance that was sent nothing in the last hour is missing. */
export function listedPace(tx: Tx, tenantId: string, instanceIds: string[]): Promise<Map<string, AgentPace>> {
  return readPace(tx, tenantId, instanceIds, LISTED_DISPATCHES_MAX);
}

/**
 * How long an instance took for its dispatches of the last hour that it answered or that failed, in milliseconds, from the time each was sent
 * until its end was recorded, without the times for which a tool call waited for a human. Read from rows that every dispatch has.
 */
export async function readLatency(
  tx: Tx,
  tenantId: string,
  instanceId: string,
): Promise<AgentConnection['latency_ms']> {
  const {
    p50 = null,
    p95 = null,
    count = 0,
  } = (await readPace(tx, tenantId, [instanceId], DISPATCHES_MAX)).get(instanceId) ?? {};
  return { p50, p95, count, window_seconds: LATENCY_WINDOW_SECONDS };
}
