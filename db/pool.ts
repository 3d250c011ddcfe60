import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { errorMessage, isTransient, PlatformError } from '../runtime/errors.js';
import { FairSemaphore, type TurnCounts } from '../runtime/fair-semaphore.js';
import type { Logger } from '../runtime/logger.js';
import { type BatchCounts, createBatches } from './connections/batcher.js';
import { createPool } from './connections/create-pool.js';
import {
  callOnce,
  connectionOf,
  execute,
  noteFailure,
  retried,
  type Statement,
  type TenantCall,
} from './connections/statement.js';
import {
  isDatabaseUnavailable,
  isLockTimeout,
  isOutdated,
  isOutOfRoom,
  isTimedOut,
  lockHeld,
  tooManyCalls,
  unavailable,
} from './errors.js';

pg.types.setTypeParser(pg.types.builtins.INT8, (text) => Number(text));

/** An open transaction. */
export interface Tx {
  /** @param name makes it a prepared statement, which each connection parses and plans once */
  query<Row extends pg.QueryResultRow = pg.QueryResultRow>(
    text: string,
    values?: unknown[],
    name?: string,
  ): Promise<Row[]>;
  /** Runs a statement that is a whole transaction elsewhere. */
  run<Row>(statement: Statement<Row>, values: string[]): Promise<Row[]>;
}

/**
 * The database. Every access is a transaction for one tenant or for the platform. Tenants have their turns at the connections; work of a
 * tenant that has too much waiting is refused with `RATE_LIMITED`.
 */
export interface Db {
  /** Runs `work` in a transaction as the application role, which sees the rows of `tenantId` only. */
  tenant<T>(tenantId: string, work: (tx: Tx) => Promise<T>): Promise<T>;
  /**
   * Runs one statement of a tenant as a whole transaction, in one round trip. Its function in `db/functions/` sets role and tenant itself.
   * @param name each connection prepares the statement once under this name
   */
  call<Row extends pg.QueryResultRow>(tenantId: string, name: string, text: string, values: unknown[]): Promise<Row[]>;
  /**
   * As `call`, for a function that takes a JSON array of calls and whether the first may wait for locks, and returns a row for each call.
   * Concurrent calls share a round trip and a transaction (batcher.ts); the failure of one does not fail the others, and those that
   * wait for a lock wait apart from them, together with others for the same lock (lock-waits.ts).
   */
  batch<Row>(statement: Statement<Row>, call: TenantCall): Promise<Row>;
  /** Runs `work` in a transaction as the platform role, which sees every tenant: for sign-in, sweeper and health. */
  system<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /**
   * Runs one statement of the platform as a whole transaction, in one round trip: for loops. Its function in `db/functions/` sets the role
   * itself.
   */
  systemCall<Row>(statement: Statement<Row>, values: string[]): Promise<Row[]>;
  /**
   * As `system`, on a connection of its own and with a time limit of 4 s in all (and 2 s to connect), so that nothing else holds it up: for
   * renewals by which other nodes see that this one lives.
   */
  renewal<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /** How long a statement may take, in milliseconds. A transaction may set less for itself (`limitMs` in db/pages/page.ts). */
  readonly timeoutMs: number;
  /** What the connections do now, and did so far, for metrics. */
  counts(): DbCounts;
  close(): Promise<void>;
}

/** The connections of one pool. */
export interface PoolCounts {
  open: number;
  idle: number;
  /** Transactions that wait for a connection. */
  waiting: number;
  max: number;
}

/** What the database connections of this process do. */
export interface DbCounts {
  /** By role: `fleet_app` for the work of tenants, `fleet_system` for the platform's own. */
  pools: Record<'fleet_app' | 'fleet_system', PoolCounts>;
  /** How tenants' work waited for its turns at the connections; without batched statements. */
  turns: TurnCounts;
  /** By the name of the statement. */
  batches: Record<string, BatchCounts>;
}

const countsOf = (pool: pg.Pool): PoolCounts => ({
  open: pool.totalCount,
  idle: pool.idleCount,
  waiting: pool.waitingCount,
  max: pool.options.max,
});

const TENANT_ID = /^ten_[0-9a-f-]{36}$/;
/** How long a statement may take, where the settings say nothing. */
const TIMEOUT_MS = 30_000;
/** Limit of a whole renewal; connecting may take half of it. */
const RENEWAL_MS = 4_000;
/** Statements that run in batches: the accept and the complete transaction. */
const BATCHED_STATEMENTS = 2;
/** Transactions of one tenant that wait for a connection, and how long in milliseconds; 429 beyond. */
const WAITING_MAX = 1_000;
const WAIT_MAX_MS = 5_000;

/**
 * Divides the connections for tenants' work, so that none of it takes those of another kind: `lanes` for each batched statement, `repeats`
 * for calls that wait for locks, the rest for all other transactions, of which one tenant has three quarters at most.
 */
function connectionShares(max: number): {
  lanes: number;
  repeats: number;
  transactions: number;
  perTenant: number;
} {
  const lanes = max < 8 ? 1 : Math.max(2, Math.floor(max / 6));
  const repeats = Math.max(1, Math.floor(max / 5));
  const transactions = Math.max(2, max - BATCHED_STATEMENTS * lanes - repeats);
  return { lanes, repeats, transactions, perTenant: Math.ceil((transactions * 3) / 4) };
}

/** Every transaction sets its role, in the round trip of BEGIN, so that no pooler or connection string can lose it. */
function beginAs(role: 'fleet_app' | 'fleet_system'): string {
  return `BEGIN; SET LOCAL ROLE ${role}`;
}

/** @param limitMs for all of it together, besides the limits of each statement; none by default */
async function transact<T>(pool: pg.Pool, begin: string, work: (tx: Tx) => Promise<T>, limitMs?: number): Promise<T> {
  let client: pg.PoolClient | undefined;
  let broken: Error | undefined;
  const endsAtMs = performance.now() + (limitMs ?? 0);
  const limit = () => limitMs && { query_timeout: Math.max(1, Math.floor(endsAtMs - performance.now())) };
  try {
    client = await connectionOf(pool);
    const connection = client;
    await connection.query({ text: begin, ...limit() });
    const result = await work({
      query: async <Row extends pg.QueryResultRow>(text: string, values?: unknown[], name?: string) =>
        (await connection.query<Row>({ text, values, name, ...limit() })).rows,
      run: (statement, values) => execute(connection, statement, values),
    });
    await connection.query({ text: 'COMMIT', ...limit() });
    return result;
  } catch (error) {
    if (isDatabaseUnavailable(error)) {
      broken = error as Error;
      noteFailure(pool, error);
      throw unavailable(error);
    }
    if (isOutdated(error)) broken = error as Error;
    await client?.query('ROLLBACK').catch((rollbackError: Error) => {
      broken = rollbackError;
    });
    // A renewal that runs out of time means that the database stands still, whether this process or the server ends it first.
    const standsStill = limitMs !== undefined && isTimedOut(error);
    throw isOutOfRoom(error) || standsStill ? unavailable(error) : error;
  } finally {
    client?.release(broken);
  }
}

/**
 * Opens the database. Its transactions fail with `SERVICE_UNAVAILABLE` while the server is away. Work is repeated after a deadlock, so it
 * must have no other effects than its transaction.
 * @param options.url a login that may `SET ROLE` to fleet_app and fleet_system (the migrations grant that)
 * @param options.max connections for tenants' work; the platform role has a quarter as many, at least 4, and one for renewals
 * @param options.timeoutMs how long a statement may take; a connection that says nothing for a sixth longer is closed
 * @param options.turnWaitMs how long work waits for a turn of its tenant, 5 s by default
 * @param options.renewalMs for a whole renewal, 4 s by default, and half of it to connect
 */
export function openDb(options: {
  url: string;
  max?: number;
  timeoutMs?: number;
  turnWaitMs?: number;
  renewalMs?: number;
  log: Logger;
}): Db {
  const { url, max = 20, timeoutMs = TIMEOUT_MS, turnWaitMs = WAIT_MAX_MS, renewalMs = RENEWAL_MS, log } = options;
  const app = createPool({ url, role: 'fleet_app', max, timeoutMs, log });
  const shares = connectionShares(max);
  const turns = new FairSemaphore({
    limit: shares.transactions,
    perKey: shares.perTenant,
    waitingMax: WAITING_MAX,
    waitMaxMs: turnWaitMs,
    refusal: tooManyCalls,
  });
  const batches = createBatches(app, shares);
  const platform = createPool({ url, role: 'fleet_system', max: Math.max(4, Math.ceil(max / 4)), timeoutMs, log });
  const ofRenewals = { max: 1, timeoutMs: renewalMs, connectMs: renewalMs / 2 };
  const renewals = createPool({ url, role: 'fleet_system', ...ofRenewals, log });
  return {
    tenant: async (tenantId, work) => {
      if (!TENANT_ID.test(tenantId)) throw new PlatformError('NOT_FOUND', 'Unknown tenant.');
      const begin = `${beginAs('fleet_app')}; SELECT set_config('app.tenant_id', '${tenantId}', true)`;
      try {
        return await turns.run(tenantId, () => retried(() => transact(app, begin, work)));
      } catch (error) {
        throw isLockTimeout(error) ? lockHeld() : error;
      }
    },
    call: <Row extends pg.QueryResultRow>(tenantId: string, name: string, text: string, values: unknown[]) => {
      const query = async (client: pg.PoolClient) => (await client.query<Row>({ name, text, values })).rows;
      return turns.run(tenantId, () => retried(() => callOnce(app, query)));
    },
    batch: batches.call,
    system: (work) => retried(() => transact(platform, beginAs('fleet_system'), work)),
    systemCall: (statement, values) =>
      retried(() => callOnce(platform, (client) => execute(client, statement, values))),
    renewal: (work) => transact(renewals, beginAs('fleet_system'), work, renewalMs),
    timeoutMs,
    counts: () => ({
      pools: { fleet_app: countsOf(app), fleet_system: countsOf(platform) },
      turns: turns.counts(),
      batches: batches.counts(),
    }),
    close: async () => {
      await Promise.all([app.end(), platform.end(), renewals.end()]);
    },
  };
}

/** The pauses of `persist`: the first one, doubling up to the second. */
const [PERSIST_PAUSE_MS, PERSIST_PAUSE_MAX_MS] = [50, 2_000];
/** Retried failures that are neither an absent database nor too much work, for example a deadlock or a statement's time limit. */
const PERSIST_FAILURES_MAX = 5;

/**
 * Retries database work until it succeeds. It retries forever, with growing pauses, while the database cannot be reached or is busy with
 * work of the same tenant: an agent's answer must not be lost. It throws any other failure after `PERSIST_FAILURES_MAX` attempts.
 * @param signal ends the retries; the promise then rejects with its reason
 */
export async function persist<T>(work: () => Promise<T>, log: Pick<Logger, 'warn'>, signal?: AbortSignal): Promise<T> {
  let pauseMs = PERSIST_PAUSE_MS;
  for (let failures = 0; ; ) {
    signal?.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      if (!isTransient(error)) failures += 1;
      if (failures >= PERSIST_FAILURES_MAX) throw error;
      log.warn({ err: errorMessage(error), retry_in_ms: pauseMs }, 'database write failed, retrying');
    }
    await sleep(pauseMs, undefined, signal && { signal });
    pauseMs = Math.min(pauseMs * 2, PERSIST_PAUSE_MAX_MS);
  }
}
