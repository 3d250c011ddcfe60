/** The error codes of the HTTP API with their statuses (specification section 7). `UNAUTHORIZED` is of the handshake, `unauthorized` of all else. */
export const HTTP_ERRORS = {
  BAD_REQUEST: 400,
  unauthorized: 401,
  forbidden: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  REQUEST_TIMEOUT: 408,
  CONFLICT: 409,
  ALREADY_TERMINAL: 409,
  ALREADY_RESOLVED: 409,
  NOT_AWAITING_INPUT: 409,
  SESSION_CLOSED: 409,
  AGENT_AT_CAPACITY: 409,
  DEPLOYMENT_MODE_MISMATCH: 409,
  IDEMPOTENCY_MISMATCH: 409,
  CALLBACK_TOKEN_EXPIRED: 410,
  ENDPOINT_SUNSET: 410,
  PAYLOAD_TOO_LARGE: 413,
  RATE_LIMITED: 429,
  QUOTA_EXCEEDED: 429,
  INTERNAL_ERROR: 500,
  BAD_GATEWAY: 502,
  SERVICE_UNAVAILABLE: 503,
  UPGRADE_REQUIRED: 426,
  MISSING_INSTANCE_ID: 400,
  UNSUPPORTED_SUBPROTOCOL: 400,
  UNAUTHORIZED: 401,
  TENANT_MISMATCH: 403,
  INSTANCE_NOT_FOUND: 404,
  DEREGISTERED: 404,
} as const;

/** Codes that only `/send` meets, which answers them as JSON-RPC errors (api/send/rpc-error.ts); the status completes the record. */
export const SEND_ERRORS = {
  INVALID_PARAMS: 400,
  TARGET_REQUIRED: 400,
  CONTENT_TYPE_NOT_SUPPORTED: 400,
  TASK_NOT_FOUND: 404,
  SESSION_NOT_FOUND: 404,
  PUSH_CONFIG_NOT_FOUND: 404,
  UNSUPPORTED_OPERATION: 409,
} as const;

/** The machine-readable code of a `PlatformError`. */
export type ErrorCode = keyof typeof HTTP_ERRORS | keyof typeof SEND_ERRORS;

/** Codes that end a message or travel in `error` frames (decisions.md, WebSocket). Existing codes never change meaning. */
export const FRAME_ERROR_CODES = [
  'BAD_FRAME',
  'HELLO_TIMEOUT',
  'DUPLICATE_HELLO',
  'INSTANCE_ID_MISMATCH',
  'REPLACED',
  'TOKEN_EXPIRED',
  'REAUTH_REFUSED',
  'BACKPRESSURE',
  'RATE_LIMITED',
  'AGENT_DISCONNECTED',
  'DEADLINE_EXCEEDED',
  'UNKNOWN_DISPATCH',
  'DISPATCH_ALREADY_TERMINAL',
  'CHUNK_SEQ_GAP',
  'INVALID_DISPATCH',
  'HANDLER_ERROR',
  'AGENT_BUSY',
  'CANCELED',
  'POLICY_DENIED',
  'GUARD_DENIED',
  'APPROVAL_PENDING',
  'APPROVAL_REJECTED',
  'APPROVAL_EXPIRED',
  'TARGET_UNAVAILABLE',
  'TOOL_NOT_FOUND',
  'DEREGISTERED',
  'INTERNAL',
] as const;

/** A code in an `error` frame, or the reason why a message failed. */
export type FrameErrorCode = (typeof FRAME_ERROR_CODES)[number];

/** WebSocket close codes (decisions.md, WebSocket; mesh.md). */
export const CLOSE_CODES = {
  NORMAL: 1000,
  GOING_AWAY: 1001,
  PROTOCOL_ERROR: 1002,
  UNSUPPORTED_DATA: 1003,
  INSTANCE_ID_MISMATCH: 1008,
  INTERNAL: 1011,
  BACKPRESSURE: 1013,
  TOKEN_EXPIRED: 4401,
  POLICY_DENIED: 4403,
  HELLO_TIMEOUT: 4408,
  REPLACED: 4409,
  DEREGISTERED: 4410,
  DUPLICATE_HELLO: 4429,
} as const;

/**
 * `code` in the JSON body of a hosted agent's 503: it has begun nothing of the dispatch, and never will, so the message may go to another agent.
 * Any other answer leaves that open.
 */
export const AGENT_NOT_READY = 'AGENT_NOT_READY';

/** JSON-RPC and A2A error numbers (a2a.md) by the names that A2A 1.0 gives them; all have the HTTP status 200. */
export const RPC_ERRORS = {
  PARSE_ERROR: -32700,
  INVALID_REQUEST: -32600,
  METHOD_NOT_FOUND: -32601,
  INVALID_PARAMS: -32602,
  INTERNAL: -32603,
  TASK_NOT_FOUND: -32001,
  TASK_NOT_CANCELABLE: -32002,
  PUSH_NOTIFICATION_NOT_SUPPORTED: -32003,
  UNSUPPORTED_OPERATION: -32004,
  CONTENT_TYPE_NOT_SUPPORTED: -32005,
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: -32007,
  VERSION_NOT_SUPPORTED: -32009,
} as const;

/** The name of a JSON-RPC error. */
export type RpcErrorName = keyof typeof RPC_ERRORS;
