import { type AgentConnection, LATENCY_WINDOW_SECONDS } from '../contracts/api/agents.js';
import type { Tx } from '../db/pool.js';

/** Of an agent that answers thousands a second the newest dispatches speak for the hour, so that a read stays quick. */
const DISPATCHES_MAX = 10_000;

/** Two requests about calls of one dispatch are never open at once (`input_requests_one_open`), so their times may be added. */
const LATENCY = `
  WITH recent AS (
    SELECT d.dispatch_id, d.message_id, d.ended_at - d.sent_at AS took FROM dispatches d
     WHERE d.tenant_id = $1 AND d.instance_id = $2 AND d.created_at > now() - $3 * interval '1 s'
       AND d.state IN ('completed', 'failed', 'input_required') AND d.sent_at IS NOT NULL
     ORDER BY d.created_at DESC LIMIT $4),
  waits AS (
    SELECT g.dispatch_id, sum(r.ended_at - r.requested_at) AS waited
      FROM tool_grants g JOIN input_requests r USING (tenant_id, request_id)
     WHERE g.tenant_id = $1 AND g.message_id IN (SELECT message_id FROM recent) AND r.ended_at IS NOT NULL
     GROUP BY g.dispatch_id),
  answers AS (
    SELECT greatest(0, extract(epoch FROM took - coalesce(waited, interval '0')) * 1000)::float8 AS ms
      FROM recent LEFT JOIN waits USING (dispatch_id))
  SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY ms) AS p50, percentile_disc(0.95) WITHIN GROUP (ORDER BY ms) AS p95,
         count(*) AS count FROM answers`;

/**
 * How long an instance took for its dispatches of the last hour that it answered or that failed, in milliseconds, from the time each was sent
 * until its end was recorded, without the times for which a tool call waited for a human. Read from rows that every dispatch has.
 */
export async function readLatency(
  tx: Tx,
  tenantId: string,
  instanceId: string,
): Promise<AgentConnection['latency_ms']> {
  const values = [tenantId, instanceId, LATENCY_WINDOW_SECONDS, DISPATCHES_MAX];
  const [row] = await tx.query<{ p50: number | null; p95: number | null; count: number }>(LATENCY, values);
  const { p50 = null, p95 = null, count = 0 } = row ?? {};
  return { p50, p95, count, window_seconds: LATENCY_WINDOW_SECONDS };
}
