import type { HealthResponse } from '../contracts/api/health.js';
import type { Db } from '../db/pool.js';
import type { Clocks } from '../runtime/clocks.js';
import { settledWithin } from '../runtime/promises/settled-within.js';

const CHECK_MS = 3_000;
/** A server that only reads, or whose disk is full, is down for who sends messages. One write a second and process shows it, however often it is asked. */
const WRITE =
  "INSERT INTO platform_facts (name, value) VALUES ('health', now()) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
const WRITE_EVERY_MS = 1_000;
const LIVE_NODES = `SELECT mesh_id FROM mesh_nodes WHERE renewed_at > now() - $1 * interval '1 ms'`;

async function check(work: Promise<boolean>): Promise<'ok' | 'down'> {
  const answered = work.catch(() => false); // any error of a check means down
  return (await settledWithin(answered, CHECK_MS)) ? 'ok' : 'down';
}

/** The checks of `GET /health`: `degraded` when any is down, `stopping` once the process stops. */
export function createHealth(options: {
  db: Db;
  /** Whether Temporal answers, and this process has done what needs it at the start. */
  temporal: () => Promise<boolean>;
  version: string;
  redis: (() => Promise<boolean>) | null;
  clocks: Pick<Clocks, 'deadNodeMs'>;
  stopping: AbortSignal;
}): () => Promise<HealthResponse> {
  const { db, temporal, version, redis, clocks, stopping } = options;
  let written: Promise<unknown> = Promise.resolve();
  let writtenAtMs = Number.NEGATIVE_INFINITY;
  const write = (): Promise<unknown> => {
    if (performance.now() - writtenAtMs < WRITE_EVERY_MS) return written;
    writtenAtMs = performance.now();
    written = db.system((tx) => tx.query(WRITE));
    return written;
  };
  return async () => {
    const nodes = db.system((tx) => tx.query(LIVE_NODES, [clocks.deadNodeMs]));
    const [database, mesh, cluster, cache] = await Promise.all([
      check(write().then(() => true)),
      check(nodes.then(({ length }) => length > 0)),
      check(temporal()),
      redis && check(redis()),
    ]);
    const checks = { database, temporal: cluster, mesh, ...(cache && { redis: cache }) };
    const status = Object.values(checks).includes('down') ? 'degraded' : 'ok';
    return { status: stopping.aborted ? 'stopping' : status, version, checks };
  };
}
