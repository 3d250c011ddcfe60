import type { z } from 'zod';
import { type ErrorCode, HTTP_ERRORS, SEND_ERRORS } from '../contracts/errors.js';

const STATUSES: Record<ErrorCode, number> = { ...HTTP_ERRORS, ...SEND_ERRORS };

/** An error with a stable code, from which its HTTP status follows. The message is shown to the caller. */
export class PlatformError extends Error {
  readonly code: ErrorCode;
  readonly statusCode: number;
  /** Extra response headers, for example `Retry-After` in seconds. */
  readonly headers: Record<string, string>;

  constructor(code: ErrorCode, message: string, options: { headers?: Record<string, string>; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.name = 'PlatformError';
    this.code = code;
    this.statusCode = STATUSES[code];
    this.headers = options.headers ?? {};
  }
}

/** The message of anything thrown. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Why a port could not be listened on, with the remedy. @param setting the setting that names the port */
export function listenError(error: unknown, setting: 'FLEET_API_PORT' | 'FLEET_MESH_PORT'): Error {
  const remedy = `set ${setting} to another port (0 picks a free one), or stop what has this one`;
  return new Error(`${errorMessage(error)}: ${remedy}`, { cause: error });
}

/** Whether the tenant has too much at work at this moment. Nothing was written; work of other tenants may succeed meanwhile. */
export function isTenantBusy(error: unknown): boolean {
  return error instanceof PlatformError && error.code === 'RATE_LIMITED';
}

/** Whether work may succeed if it is repeated: the database is away, or the tenant has too much at work at this moment. Nothing was written. */
export function isTransient(error: unknown): boolean {
  return isTenantBusy(error) || (error instanceof PlatformError && error.code === 'SERVICE_UNAVAILABLE');
}

/** Parses what an agent has sent. @param place begins the text of the problem @throws PlatformError BAD_REQUEST with its first problem */
export function parsedAs<Parsed>(schema: z.ZodType<Parsed>, given: unknown, place = ''): Parsed {
  const { data, error } = schema.safeParse(given);
  if (data !== undefined) return data;
  const [issue] = error?.issues ?? [];
  throw new PlatformError('BAD_REQUEST', `${place}${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`.trim());
}
