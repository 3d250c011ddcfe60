import type { HealthResponse } from '../contracts/api/health.js';
import type { Db } from '../db/pool.js';
import type { TemporalLink } from '../messages/supervise/temporal-link.js';
import { settledWithin } from '../runtime/settled-within.js';

const CHECK_MS = 3_000;
/** A mesh node that has not renewed its row for this long counts as down. */
const NODE_FRESH_MS = 15_000;

async function check(work: Promise<boolean>): Promise<'ok' | 'down'> {
  // Any error of a check means down.
  return (await settledWithin(
    work.catch(() => false),
    CHECK_MS,
  ))
    ? 'ok'
    : 'down';
}

async function liveNodes(db: Db): Promise<number> {
  const [row] = await db.system((tx) =>
    tx.query<{ nodes: number }>(
      `SELECT count(*) AS nodes FROM mesh_nodes WHERE renewed_at > now() - ${NODE_FRESH_MS} * interval '1 ms'`,
    ),
  );
  return row?.nodes ?? 0;
}

/** The checks of `GET /health`: `degraded` when any is down. The route decides which of them answer 503. */
export function createHealth(options: {
  db: Db;
  temporal: TemporalLink;
  version: string;
  redis: (() => Promise<boolean>) | null;
}): () => Promise<HealthResponse> {
  const { db, temporal, version, redis } = options;
  return async () => {
    const nodes = liveNodes(db);
    const [database, mesh, cluster, cache] = await Promise.all([
      check(nodes.then(() => true)),
      check(nodes.then((count) => count > 0)),
      check(temporal.isReachable()),
      redis && check(redis()),
    ]);
    const checks = { database, temporal: cluster, mesh, ...(cache && { redis: cache }) };
    return { status: Object.values(checks).includes('down') ? 'degraded' : 'ok', version, checks };
  };
}
