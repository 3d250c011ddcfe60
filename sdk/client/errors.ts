/** The platform answered with an error body (specification section 7), or with a JSON-RPC error. */
export class ApiError extends Error {
  /** HTTP status; 200 for a JSON-RPC error. */
  readonly status: number;
  /** Machine-readable code, for example `NOT_FOUND`; for a JSON-RPC error its `data` code, or the number as text. */
  readonly code: string;
  /** For the operator's log search; empty when the answer had none. */
  readonly requestId: string;
  /** JSON-RPC error number; undefined outside of `/send`. */
  readonly rpcCode: number | undefined;
  /** How long the platform asks to wait before a repeat; undefined when it does not say. */
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

/** No answer came: the platform is down, unreachable, or the connection broke. Whether the request took effect is unknown. */
export class UnreachableError extends Error {
  constructor(url: string, cause: unknown) {
    super(`no answer from ${url}: ${innermostMessage(cause)}`, { cause });
    this.name = 'UnreachableError';
  }
}

/** Whether the same request may succeed later: no answer, 408, 429, 502, 503 or 504. */
export function isTransient(error: unknown): boolean {
  if (error instanceof UnreachableError) return true;
  return error instanceof ApiError && [408, 429, 502, 503, 504].includes(error.status);
}

/** How long the platform asks to wait before a repeat; undefined where it does not say. */
export function retryAfterMs(error: unknown): number | undefined {
  return error instanceof ApiError ? error.retryAfterMs : undefined;
}

function innermostMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.cause instanceof Error) return innermostMessage(error.cause);
  return error.message || String((error as { code?: unknown }).code ?? error.name);
}
