/** Why an outbound exchange failed, with the message that is constant for the code. */
const MESSAGES = {
  /** Not an absolute http(s) URL, credentials in it, or a method, header or body HTTP does not allow. */
  BAD_URL: 'not a request that can be sent',
  /** The target, or one address its name resolves to, is not public and not opened. */
  FORBIDDEN_ADDRESS: 'the target address is not allowed',
  /** Name resolution, TCP or TLS failed. */
  CONNECT_FAILED: 'the connection could not be opened',
  /** A timeout of the caller, or that of connecting. */
  TIMEOUT: 'no complete answer in time',
  /** The answer was 3xx, which is not followed. */
  REDIRECT: 'the answer is a redirect, which is not followed',
  /** A streamed answer is larger than the caller's limit. */
  TOO_LARGE: 'the answer is larger than allowed',
  /** The caller's signal or `cancel()`, or the client was closed. */
  ABORTED: 'the request was aborted',
  /** The connection or its HTTP framing broke after the request was sent. */
  BROKEN: 'the connection broke before the answer was complete',
};
export type OutboundErrorCode = keyof typeof MESSAGES;

/** A failed outbound exchange. The message never shows the address of a name. */
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
