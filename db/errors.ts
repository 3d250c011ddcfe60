import pg from 'pg';
import { errorMessage, PlatformError } from '../runtime/errors.js';

/**
 * SQLSTATE classes and codes for a server that is away, or takes nothing for now: it starts, stops or has no connection left (57P, 53300), runs into a
 * limit of its own (53000, 53400), or is no primary any more (25006).
 */
const UNAVAILABLE = /^(08|57P0[1-5]|53[034]00|25P03|25006)/;
const SOCKET_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENETDOWN',
]);

/** Whether `error` means that the database cannot be reached. */
export function isDatabaseUnavailable(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  if (typeof code === 'string' && (UNAVAILABLE.test(code) || SOCKET_CODES.has(code))) return true;
  return /Connection terminated|timeout exceeded when trying to connect|Query read timeout|Client has encountered a connection error|not queryable/.test(
    errorMessage(error),
  );
}

/** Disk full, out of memory: nothing was written, and reads go on. */
const OUT_OF_ROOM = /^53[12]00$/;
/** Sent when the server has no room, which nobody makes within a second. */
const RETRY_AFTER_ROOM = { 'Retry-After': '10' };

/** Whether the server undid a statement because it has no room for it, on disk or in memory. The connection goes on to serve. */
export function isOutOfRoom(error: unknown): boolean {
  return OUT_OF_ROOM.test((error as { code?: string } | null)?.code ?? '');
}

/** Whether a connection gave no answer in time: its server may be gone, and with it the other end of older connections. */
export function isSilent(error: unknown): boolean {
  return /Query read timeout/.test(errorMessage(error));
}

/** The error of all database work while its server is away, or has no room for it. */
export function unavailable(cause: unknown): PlatformError {
  if (isOutOfRoom(cause)) {
    const message = 'The database has no room left, so nothing was written. Try again later.';
    return new PlatformError('SERVICE_UNAVAILABLE', message, { headers: RETRY_AFTER_ROOM, cause });
  }
  return new PlatformError('SERVICE_UNAVAILABLE', 'The database cannot be reached. Try again.', { cause });
}

/** Whether the server itself reported the error of a statement, which it then undid. */
export function isUndone(error: unknown): boolean {
  return error instanceof pg.DatabaseError;
}

/** Whether a migration has changed the columns of a prepared statement. On the same connection every execution would fail. */
export function isOutdated(error: unknown): boolean {
  return (error as { code?: string }).code === '0A000';
}

/** Deadlocks, serialization failures and outdated plans: the transaction is repeated. */
export function isRetryable(error: unknown): boolean {
  return /^(40P01|40001|0A000)$/.test((error as { code?: string }).code ?? '');
}

/** Classes of errors for a database in trouble: connections, transaction states, conflicts, room, locks, shutdown and timeout, system. */
const IN_TROUBLE = /^(08|25|40|53|55|57|58)/;

/** Whether the content of a statement is why the server undid it, and not the state of the database: repeated unchanged, it fails again. */
export function isOwnFault(error: unknown): boolean {
  return isUndone(error) && !IN_TROUBLE.test((error as { code?: string }).code ?? '');
}

/** Whether a statement took longer than its transaction allows. */
export function isTimedOut(error: unknown): boolean {
  return (error as { code?: string }).code === '57014';
}

/** Whether a value is why a statement failed: text that is no number, or a character that Postgres cannot store, for example. */
export function isDataException(error: unknown): boolean {
  return /^22/.test((error as { code?: string }).code ?? '');
}

/** Whether a statement waited for a lock for as long as it may. */
export function isLockTimeout(error: unknown): boolean {
  return (error as { code?: string }).code === '55P03';
}

const RETRY_SOON = { headers: { 'Retry-After': '1' } };

/** The error of a call that needs what other requests of its tenant keep locked. Nothing was written. */
export class LockHeldError extends PlatformError {
  constructor() {
    super('RATE_LIMITED', 'Other requests hold what this one needs, a session for example. Try again.', RETRY_SOON);
  }
}

/** The error of a call that met a lock which others hold. Nothing was written. */
export function lockHeld(): PlatformError {
  return new LockHeldError();
}

/** The error of a call that would wait behind too many of its tenant. Nothing was written. */
export function tooManyCalls(): PlatformError {
  return new PlatformError(
    'RATE_LIMITED',
    'Too many requests of the tenant wait for the database. Try again.',
    RETRY_SOON,
  );
}
