import pg from 'pg';
import type { Logger } from '../../runtime/logger.js';
import { FUNCTION_SCHEMA } from '../migrate.js';
import { noteConnectionTimes } from './statement.js';

/** A process that hangs in a transaction holds its locks at most this long. */
const IDLE_IN_TRANSACTION_MS = 10_000;

/** To connect, and to get a connection of the pool. */
const CONNECT_MS = 5_000;
/** Idle connections that stay open: on a new one the first accept transaction takes 15 ms, and connecting 5 ms. */
const IDLE_MIN = 2;

/** The server ends a statement in time; a connection that says nothing for this much longer is dead. */
const SILENCE = 7 / 6;

/** Connections of one role. */
export interface PoolOptions {
  url: string;
  role: 'fleet_app' | 'fleet_system';
  max: number;
  /** Limit of each statement. The server undoes a longer one. */
  timeoutMs: number;
  /** To connect, and to get a connection: 5 s by default. */
  connectMs?: number;
  log: Logger;
}

/** Connections that are made as they are needed. */
export function createPool({ url, role, max, timeoutMs, connectMs = CONNECT_MS, log }: PoolOptions): pg.Pool {
  const limits = `-c statement_timeout=${timeoutMs} -c idle_in_transaction_session_timeout=${IDLE_IN_TRANSACTION_MS}`;
  const pool = new pg.Pool({
    connectionString: url,
    max,
    min: Math.min(IDLE_MIN, max),
    options: `-c search_path=${FUNCTION_SCHEMA},public -c timezone=UTC ${limits}`,
    connectionTimeoutMillis: connectMs,
    idleTimeoutMillis: 30_000,
    // A server that is gone without a word is noticed on idle connections within 15 s.
    keepAlive: true,
    keepAliveInitialDelayMillis: CONNECT_MS,
    query_timeout: Math.ceil(timeoutMs * SILENCE),
    application_name: role,
  });
  noteConnectionTimes(pool);
  // A connection that is lost between two queries of a transaction emits its error itself; without a listener the process would end.
  pool.on('connect', (client) =>
    client.on('error', (error) => log.warn({ err: error.message, role }, 'database connection lost')),
  );
  pool.on('error', () => undefined); // errors of idle connections, which the listener above has logged
  return pool;
}
