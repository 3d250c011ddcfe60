import type { HealthResponse } from '../contracts/api/health.js';
import type { Db } from '../db/pool.js';
import type { Clocks } from '../runtime/clocks.js';
import { settledWithin } from '../runtime/promises/settled-within.js';

const CHECK_MS = 3_000;
const LIVE_NODES = `SELECT mesh_id FROM mesh_nodes WHERE renewed_at > now() - $1 * interval '1 ms'`;

async function check(work: Promise<boolean>): Promise<'ok' | 'down'> {
  const answered = work.catch(() => false); // any error of a check means down
  return (await settledWithin(answered, CHECK_MS)) ? 'ok' : 'down';
}

/** The checks of `GET /health`: `degraded` when any is down. The route decides which of them answer 503. */
export function createHealth(options: {
  db: Db;
  /** Whether Temporal answers, and this process has done what needs it at the start. */
  temporal: () => Promise<boolean>;
  version: string;
  redis: (() => Promise<boolean>) | null;
  clocks: Pick<Clocks, 'deadNodeMs'>;
}): () => Promise<HealthResponse> {
  const { db, temporal, version, redis, clocks } = options;
  return async () => {
    const nodes = db.system((tx) => tx.query(LIVE_NODES, [clocks.deadNodeMs]));
    const [database, mesh, cluster, cache] = await Promise.all([
      check(nodes.then(() => true)),
      check(nodes.then(({ length }) => length > 0)),
      check(temporal()),
      redis && check(redis()),
    ]);
    const checks = { database, temporal: cluster, mesh, ...(cache && { redis: cache }) };
    return { status: Object.values(checks).includes('down') ? 'degraded' : 'ok', version, checks };
  };
}
