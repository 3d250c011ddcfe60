/**
 * Why an outbound exchange failed.
 * - `BAD_URL`: not an absolute http(s) URL, credentials in it, or a method, header or body HTTP does not allow
 * - `FORBIDDEN_ADDRESS`: the target, or one address its name resolves to, is not public and not opened
 * - `CONNECT_FAILED`: name resolution, TCP or TLS failed
 * - `TIMEOUT`: a timeout of the caller, or that of connecting
 * - `REDIRECT`: the answer was 3xx, which is not followed
 * - `TOO_LARGE`: a streamed answer is larger than the caller's limit
 * - `ABORTED`: the caller's signal or `cancel()`, or the client was closed
 * - `BROKEN`: the connection or its HTTP framing broke after the request was sent
 */
export type OutboundErrorCode =
  | 'BAD_URL'
  | 'FORBIDDEN_ADDRESS'
  | 'CONNECT_FAILED'
  | 'TIMEOUT'
  | 'REDIRECT'
  | 'TOO_LARGE'
  | 'ABORTED'
  | 'BROKEN';

const MESSAGES: Record<OutboundErrorCode, string> = {
  BAD_URL: 'not a request that can be sent',
  FORBIDDEN_ADDRESS: 'the target address is not allowed',
  CONNECT_FAILED: 'the connection could not be opened',
  TIMEOUT: 'no complete answer in time',
  REDIRECT: 'the answer is a redirect, which is not followed',
  TOO_LARGE: 'the answer is larger than allowed',
  ABORTED: 'the request was aborted',
  BROKEN: 'the connection broke before the answer was complete',
};

/** A failed outbound exchange. The message is constant for a code, so it never shows the address of a name. */
export class OutboundError extends Error {
  readonly code: OutboundErrorCode;
  /** False only when no byte of the request can have been sent: only then may it be sent to another target. */
  readonly requestSent: boolean;
  /** Present where the failure came after the response headers. */
  readonly status: number | undefined;

  constructor(
    code: OutboundErrorCode,
    options: { requestSent?: boolean; status?: number | undefined; cause?: unknown } = {},
  ) {
    super(MESSAGES[code], { cause: options.cause });
    this.name = 'OutboundError';
    this.code = code;
    this.requestSent = options.requestSent ?? false;
    this.status = options.status;
  }
}

const UNDICI_CODES: Partial<Record<string, OutboundErrorCode>> = {
  UND_ERR_CONNECT_TIMEOUT: 'TIMEOUT',
  UND_ERR_HEADERS_TIMEOUT: 'TIMEOUT',
  UND_ERR_BODY_TIMEOUT: 'TIMEOUT',
  UND_ERR_ABORTED: 'ABORTED',
  UND_ERR_DESTROYED: 'ABORTED',
  UND_ERR_CLOSED: 'ABORTED',
  UND_ERR_INVALID_ARG: 'BAD_URL',
  UND_ERR_REQ_CONTENT_LENGTH_MISMATCH: 'BAD_URL',
};

/** The code for an error of the guard, undici or a socket. For unknown errors it depends on whether the request was sent. */
export function outboundErrorCode(error: unknown, requestSent: boolean): OutboundErrorCode {
  if (error instanceof OutboundError) return error.code;
  const known = UNDICI_CODES[(error as { code?: string } | null)?.code ?? ''];
  return known ?? (requestSent ? 'BROKEN' : 'CONNECT_FAILED');
}
