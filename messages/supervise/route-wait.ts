import type { Tx } from '../../db/pool.js';
import type { RunningRow } from '../read/rows.js';

/** Since when a message waits for an agent, and how long it may. */
export interface RouteWait {
  since: Date;
  waitedMs: number;
  leftMs: number;
}

/**
 * How long a message may wait for an agent: a decision as long as its request was open to be answered, because it must not be lost to an
 * agent that is full or restarts (decisions.md, Sessions).
 */
async function mayWaitMs(tx: Tx, row: RunningRow, queueWaitMs: number): Promise<number> {
  if (row.resolution === null || row.unrouted_since === null) return queueWaitMs;
  const [request] = await tx.query<{ lifetime_ms: number }>(
    `SELECT milliseconds_between(requested_at, expires_at) AS lifetime_ms FROM input_requests
      WHERE tenant_id = $1 AND request_id = $2`,
    [row.tenant_id, row.resolution.request_id],
  );
  return Math.max(queueWaitMs, request?.lifetime_ms ?? 0);
}

/** @param queueWaitMs how long a message that carries no decision may wait */
export async function routeWait(tx: Tx, row: RunningRow, queueWaitMs: number, now: Date): Promise<RouteWait> {
  const since = row.unrouted_since ?? now;
  const waitedMs = now.getTime() - since.getTime();
  return { since, waitedMs, leftMs: (await mayWaitMs(tx, row, queueWaitMs)) - waitedMs };
}
