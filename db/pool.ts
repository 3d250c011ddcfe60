import pg from 'pg';
import { errorMessage, PlatformError } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';
import { Batcher } from './batcher.js';
import { FUNCTION_SCHEMA } from './migrate.js';
import { Execution, type Statement } from './statement.js';

pg.types.setTypeParser(pg.types.builtins.INT8, (text) => Number(text));

/** One open transaction. */
export interface Tx {
  /**
   * Gives the rows.
   * @param name of a statement that many transactions run: each connection parses and plans it once
   */
  query<Row extends pg.QueryResultRow = pg.QueryResultRow>(
    text: string,
    values?: unknown[],
    name?: string,
  ): Promise<Row[]>;
}

/** The database: every access is a transaction that says on whose behalf it runs. */
export interface Db {
  /** Runs `work` in one transaction as the application role, which sees the rows of `tenantId` only. */
  tenant<T>(tenantId: string, work: (tx: Tx) => Promise<T>): Promise<T>;
  /**
   * Runs one statement that is a whole transaction: a function of `db/functions/` that names its tenant and takes its role itself. One
   * round trip; the plan is kept under `name`.
   */
  call<Row extends pg.QueryResultRow>(name: string, text: string, values: unknown[]): Promise<Row[]>;
  /**
   * As `call`, for a function that takes a JSON array of calls, and whether it may wait for locks, and gives a row for each in its order.
   * Calls that come while others are under way share a round trip and a transaction (batcher.ts); one never fails with another.
   */
  batch<Row>(statement: Statement<Row>, call: object): Promise<Row>;
  /** Runs `work` in one transaction as the platform role, which sees every tenant: sign-in, sweeper, health. */
  system<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

const TENANT_ID = /^ten_[0-9a-f-]{36}$/;
/** SQLSTATE classes and codes that say the server is not there, not that the statement is wrong. */
const UNAVAILABLE = /^(08|57P0[1-5]|53300|25P03)/;
const SOCKET_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
]);

/** Whether `error` says that the database cannot be reached or has just gone away. */
export function isDatabaseUnavailable(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  if (typeof code === 'string' && (UNAVAILABLE.test(code) || SOCKET_CODES.has(code))) return true;
  return /Connection terminated|timeout exceeded when trying to connect|Query read timeout|Client has encountered a connection error|not queryable/.test(
    errorMessage(error),
  );
}

function unavailable(cause: unknown): PlatformError {
  return new PlatformError('SERVICE_UNAVAILABLE', 'The database cannot be reached. Try again.', { cause });
}

/** A process that stands still in a transaction keeps its locks from the others no longer than this. */
const IDLE_IN_TRANSACTION_MS = 10_000;

/** Connections that stay open however long nobody uses them: the first T1 of a new one takes 15 ms, to connect takes 5. */
const WARM = 2;

function createPool(url: string, role: string, max: number, log: Logger): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    max,
    min: Math.min(WARM, max),
    options: `-c search_path=${FUNCTION_SCHEMA},public -c timezone=UTC -c statement_timeout=30000 -c idle_in_transaction_session_timeout=${IDLE_IN_TRANSACTION_MS}`,
    connectionTimeoutMillis: 5_000,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    query_timeout: 35_000,
    application_name: role,
  });
  // A connection that is lost between two queries of a transaction reports to itself only; unheard, that would end the process.
  pool.on('connect', (client) =>
    client.on('error', (error) => log.warn({ err: error.message, role }, 'database connection lost')),
  );
  pool.on('error', () => undefined); // idle ones report here too
  return pool;
}

/** The role is taken in every transaction, in the same round trip: no pooler or connection string can lose it. */
function beginAs(role: 'fleet_app' | 'fleet_system'): string {
  return `BEGIN; SET LOCAL ROLE ${role}`;
}

async function transact<T>(pool: pg.Pool, begin: string, work: (tx: Tx) => Promise<T>): Promise<T> {
  let client: pg.PoolClient | undefined;
  let broken: Error | undefined;
  try {
    client = await pool.connect();
    const connection = client;
    await connection.query(begin);
    const result = await work({
      query: async <Row extends pg.QueryResultRow>(text: string, values?: unknown[], name?: string) =>
        (await connection.query<Row>({ text, values, name })).rows,
    });
    await connection.query('COMMIT');
    return result;
  } catch (error) {
    if (isDatabaseUnavailable(error)) {
      broken = error as Error;
      throw unavailable(error);
    }
    if (isOutdated(error)) broken = error as Error;
    await client?.query('ROLLBACK').catch((rollbackError: Error) => {
      broken = rollbackError;
    });
    throw error;
  } finally {
    client?.release(broken);
  }
}

async function callOnce<Row>(pool: pg.Pool, query: (client: pg.PoolClient) => Promise<Row[]>): Promise<Row[]> {
  let client: pg.PoolClient | undefined;
  let broken: Error | undefined;
  try {
    client = await pool.connect();
    return await query(client);
  } catch (error) {
    const away = isDatabaseUnavailable(error);
    // What the server has not said itself, or says of a plan that a newer version has outdated, is the connection's matter.
    if (away || !isUndone(error) || isOutdated(error)) broken = error as Error;
    throw away ? unavailable(error) : error;
  } finally {
    client?.release(broken);
  }
}

async function execute<Row>(client: pg.PoolClient, statement: Statement<Row>, values: string[]): Promise<Row[]> {
  const rows = await new Promise<(string | null)[][]>((resolve, reject) => {
    client.query(new Execution(statement, values, (error, found) => (found ? resolve(found) : reject(error))));
  });
  return rows.map((fields) => statement.row(fields));
}

/** Whether an error of one statement says that the server undid it: it said so itself. */
function isUndone(error: unknown): boolean {
  return error instanceof pg.DatabaseError;
}

/** Whether a prepared statement's result has changed its columns since: a migration has run. Its connection would go on to say so. */
function isOutdated(error: unknown): boolean {
  return (error as { code?: string }).code === '0A000';
}

/** Deadlock and serialization failures, and a plan that is outdated: the same work may be tried again from its start. */
const RETRYABLE = new Set(['40P01', '40001', '0A000']);

/** Each connection of a pool may have one outdated plan of the statement. */
const OUTDATED_PLANS_MAX = 50;

async function retried<T>(run: () => Promise<T>): Promise<T> {
  for (let failures = 0, outdated = 0; ; ) {
    try {
      return await run();
    } catch (error) {
      if (isOutdated(error)) outdated += 1;
      else failures += 1;
      const retryable = RETRYABLE.has((error as { code?: string }).code ?? '');
      if (!retryable || failures === 3 || outdated > OUTDATED_PLANS_MAX) throw error;
    }
  }
}

/**
 * Opens the database. Work that meets a deadlock is run again, so it must do nothing but its transaction.
 * @param options.url a login that may `SET ROLE` to fleet_app and fleet_system (the migrations grant that)
 * @param options.max connections for tenants' work; the platform role has a quarter of it, at least 4
 * @returns transactions; they fail with `SERVICE_UNAVAILABLE` while the server is away
 */
export function openDb(options: { url: string; max?: number; log: Logger }): Db {
  const max = options.max ?? 20;
  const app = createPool(options.url, 'fleet_app', max, options.log);
  const platform = createPool(options.url, 'fleet_system', Math.max(4, Math.ceil(max / 4)), options.log);
  const batchers = new Map<string, Batcher<unknown>>();
  const batcherOf = (statement: Statement<unknown>) => {
    const found = batchers.get(statement.name);
    if (found) return found;
    const run = (calls: string, waitForLocks: boolean) =>
      retried(() => callOnce(app, (client) => execute(client, statement, [calls, String(waitForLocks)])));
    const made = new Batcher<unknown>(run, isUndone);
    batchers.set(statement.name, made);
    return made;
  };
  return {
    tenant: async (tenantId, work) => {
      if (!TENANT_ID.test(tenantId)) throw new PlatformError('NOT_FOUND', 'Unknown tenant.');
      const begin = `${beginAs('fleet_app')}; SELECT set_config('app.tenant_id', '${tenantId}', true)`;
      return retried(() => transact(app, begin, work));
    },
    call: <Row extends pg.QueryResultRow>(name: string, text: string, values: unknown[]) =>
      retried(() => callOnce(app, async (client) => (await client.query<Row>({ name, text, values })).rows)),
    batch: <Row>(statement: Statement<Row>, call: object) =>
      batcherOf(statement).call(JSON.stringify(call)) as Promise<Row>,
    system: (work) => retried(() => transact(platform, beginAs('fleet_system'), work)),
    close: async () => {
      await Promise.all([app.end(), platform.end()]);
    },
  };
}
