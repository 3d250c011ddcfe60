/** An error answer of the platform: an HTTP error or a JSON-RPC error. */
export class ApiError extends Error {
  /** HTTP status; for a JSON-RPC error the one that it would have over HTTP. */
  readonly status: number;
  /** Machine-readable code, for example `NOT_FOUND`; for a JSON-RPC error the code in its `data`, or its number as text. */
  readonly code: string;
  /** Request id, for a search in the platform's log; empty when the answer had none. */
  readonly requestId: string;
  /** Number of a JSON-RPC error; undefined for HTTP errors. */
  readonly rpcCode: number | undefined;
  /** The wait that the platform asks for before a retry (`Retry-After`); undefined without one. */
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    detail: { status: number; code: string; requestId?: string; rpcCode?: number; retryAfterMs?: number },
  ) {
    super(message);
    this.name = 'ApiError';
    this.status = detail.status;
    this.code = detail.code;
    this.requestId = detail.requestId ?? '';
    this.rpcCode = detail.rpcCode;
    this.retryAfterMs = detail.retryAfterMs;
  }
}

/** The platform did not answer: it is down or unreachable, or the connection broke. Whether the request took effect is unknown. */
export class UnreachableError extends Error {
  constructor(url: string, cause: unknown) {
    super(`no answer from ${url}: ${innermostMessage(cause)}`, { cause });
    this.name = 'UnreachableError';
  }
}

/** The client was closed before the call, so nothing was sent. */
export class ClientClosedError extends UnreachableError {
  constructor(url: string) {
    super(url, new Error('the client is closed'));
    this.name = 'ClientClosedError';
  }
}

/** Whether a retry may succeed soon: no answer, or status 408, 429, 502, 503 or 504; not where a quota is used up or the client is closed. */
export function isTransient(error: unknown): boolean {
  if (error instanceof UnreachableError) return !(error instanceof ClientClosedError);
  if (!(error instanceof ApiError) || error.code === 'QUOTA_EXCEEDED') return false;
  return [408, 429, 502, 503, 504].includes(error.status);
}

/** The wait that the platform asks for before a retry; undefined without one. */
export function retryAfterMs(error: unknown): number | undefined {
  return error instanceof ApiError ? error.retryAfterMs : undefined;
}

function innermostMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.cause instanceof Error) return innermostMessage(error.cause);
  return error.message || String((error as { code?: unknown }).code ?? error.name);
}
