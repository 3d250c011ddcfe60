import type pg from 'pg';
import {
  isDatabaseUnavailable,
  isOutdated,
  isOutOfRoom,
  isRetryable,
  isSilent,
  isUndone,
  unavailable,
} from '../errors.js';

/** One call of a batch, in the columns of its type in `db/functions/`. */
export interface TenantCall {
  tenant_id: string;
  [column: string]: unknown;
}

/**
 * A statement that is a whole transaction. Its rows have one column, a `Row` as JSON: the driver spends 40 µs on describing twenty columns, for each
 * execution anew.
 */
export interface Statement<Row> {
  /** Each connection prepares it once under this name. */
  name: string;
  text: string;
  /** For batches: the lock for which the call has to be repeated, because another transaction holds it; null if the call was made. */
  awaits?(row: Row): string | null;
}

const AS_TEXT = { getTypeParser: () => (value: string) => value };

/**
 * Executes a statement on a connection, by the driver's public query. Writing the protocol past it would save 15 to 28 µs of processor time,
 * measured, and depend on what the driver keeps to itself.
 */
export async function execute<Row>(
  client: pg.PoolClient,
  { name, text }: Statement<Row>,
  values: string[],
): Promise<Row[]> {
  const { rows } = await client.query<[string | null]>({ name, text, values, rowMode: 'array', types: AS_TEXT });
  return rows.map(([json]) => JSON.parse(json ?? 'null') as Row);
}

/** When each connection was made, and since when the connections of a pool are trusted; on `performance.now()`. */
const connectionMadeAtMs = new WeakMap<pg.PoolClient, number>();
const trustedSinceMs = new WeakMap<pg.Pool, number>();

/** Has a pool note when its connections are made. */
export function noteConnectionTimes(pool: pg.Pool): void {
  pool.on('connect', (client) => void connectionMadeAtMs.set(client, performance.now()));
}

/** A connection of the pool. Connections that are older than the silence of another one are closed instead: their server may be gone too. */
export async function connectionOf(pool: pg.Pool): Promise<pg.PoolClient> {
  for (;;) {
    const client = await pool.connect();
    if ((connectionMadeAtMs.get(client) ?? 0) >= (trustedSinceMs.get(pool) ?? 0)) return client;
    client.release(new Error('another connection of its age has given no answer'));
  }
}

/** If a connection failed by silence, trusts only connections made since its silence began: those have heard from the server. */
export function noteFailure(pool: pg.Pool, error: unknown): void {
  if (!isSilent(error)) return;
  const silentSinceMs = performance.now() - (pool.options.query_timeout ?? 0);
  trustedSinceMs.set(pool, Math.max(silentSinceMs, trustedSinceMs.get(pool) ?? 0));
}

/** Runs one statement, which is a whole transaction. @throws PlatformError SERVICE_UNAVAILABLE */
export async function callOnce<Row>(pool: pg.Pool, query: (client: pg.PoolClient) => Promise<Row[]>): Promise<Row[]> {
  let client: pg.PoolClient | undefined;
  let broken: Error | undefined;
  try {
    client = await connectionOf(pool);
    return await query(client);
  } catch (error) {
    const away = isDatabaseUnavailable(error);
    // The connection is discarded unless the server itself reported the error, and for an outdated plan.
    if (away || !isUndone(error) || isOutdated(error)) broken = error as Error;
    noteFailure(pool, error);
    throw away || isOutOfRoom(error) ? unavailable(error) : error;
  } finally {
    client?.release(broken);
  }
}

/** Retries for outdated plans: each connection of a pool may have one. */
const OUTDATED_PLANS_MAX = 50;

/** Repeats a transaction after a deadlock, a serialization failure or an outdated plan. */
export async function retried<T>(run: () => Promise<T>): Promise<T> {
  for (let failures = 0, outdated = 0; ; ) {
    try {
      return await run();
    } catch (error) {
      if (isOutdated(error)) outdated += 1;
      else failures += 1;
      if (!isRetryable(error) || failures === 3 || outdated > OUTDATED_PLANS_MAX) throw error;
    }
  }
}
