import { type ErrorCode, HTTP_ERRORS } from '../contracts/errors.js';

/** An error with a stable code of the HTTP face. The status follows from the code; the message is shown to the caller. */
export class PlatformError extends Error {
  readonly code: ErrorCode;
  readonly statusCode: number;
  /** Extra response headers, for example `Retry-After` in seconds. */
  readonly headers: Record<string, string>;

  constructor(code: ErrorCode, message: string, options: { headers?: Record<string, string>; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.name = 'PlatformError';
    this.code = code;
    this.statusCode = HTTP_ERRORS[code];
    this.headers = options.headers ?? {};
  }
}

/** The message of anything thrown. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
