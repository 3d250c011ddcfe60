/** The error codes of the HTTP API with their statuses. `UNAUTHORIZED` is of the handshake, `unauthorized` of all else. */
export const HTTP_ERRORS = {
  /** The body is no JSON; a field is missing, unknown or does not fit; the content type is wrong; an address may not be called. */
  BAD_REQUEST: 400,
  /** There is no token, or it is wrong, expired or revoked; the client id or secret is wrong. */
  unauthorized: 401,
  /**
   * The token lacks the scope, names another tenant or agent type, or acts as an agent, which [may do less](agents.md#what-agents-may-do);
   * the agent type may not join the tenant.
   */
  forbidden: 403,
  /** There is no such path, or nothing of that id in your tenant; for an agent, also what is not its own. */
  NOT_FOUND: 404,
  /** The path exists for another method; `Allow` names it. */
  METHOD_NOT_ALLOWED: 405,
  /**
   * The request did not arrive in time; or the page of a list was not found within 10 s: ask for an earlier page, a session or a shorter
   * time.
   */
  REQUEST_TIMEOUT: 408,
  /** The state does not allow it, for example rotating a revoked credential, or inviting a second agent of a type. */
  CONFLICT: 409,
  /** The message has ended. */
  ALREADY_TERMINAL: 409,
  /** The question has been answered, or the `request_id` is not the open one any more. */
  ALREADY_RESOLVED: 409,
  /** The message does not wait for a human. */
  NOT_AWAITING_INPUT: 409,
  /** The session has ended. */
  SESSION_CLOSED: 409,
  /** The agent has as many sessions as it takes. */
  AGENT_AT_CAPACITY: 409,
  /** The instance is registered as hosted and the request says connected, or the reverse. */
  DEPLOYMENT_MODE_MISMATCH: 409,
  /** A `messageId` was sent before with other content (on `/send` inside a JSON-RPC error, see below). */
  IDEMPOTENCY_MISMATCH: 409,
  /** The time to answer ran out. */
  CALLBACK_TOKEN_EXPIRED: 410,
  /** The endpoint was withdrawn; none is yet. */
  ENDPOINT_SUNSET: 410,
  /** The body has more than 1 MiB. */
  PAYLOAD_TOO_LARGE: 413,
  /**
   * Too many failed logins, too many calls, too many streams and waiting calls that are open, too many messages that wait for agents or for input,
   * or too much work of the tenant that waits for the database or for a lock; `Retry-After` says when to try again.
   */
  RATE_LIMITED: 429,
  /** The tenant has used up a [quota](usage.md#quotas) of its day or month; `Retry-After` and the text say when it begins anew. */
  QUOTA_EXCEEDED: 429,
  /** A fault of the platform; the log has the cause. */
  INTERNAL_ERROR: 500,
  /** The agent card of a hosted agent could not be fetched. */
  BAD_GATEWAY: 502,
  /**
   * Postgres or Temporal cannot be reached, the tenant's policies cannot be confirmed or have no room to ask an evaluator, the node is
   * stopping, or no such agent can take a session now.
   */
  SERVICE_UNAVAILABLE: 503,
  // The WebSocket upgrade, in the order of its checks
  /** The request is plain `ws` or plain HTTP. */
  UPGRADE_REQUIRED: 426,
  /** The query has no `instance_id`. */
  MISSING_INSTANCE_ID: 400,
  /** The client does not offer `service.v1`. */
  UNSUPPORTED_SUBPROTOCOL: 400,
  /** There is no token, or a bad one (upper case here). */
  UNAUTHORIZED: 401,
  /** Only another tenant has an instance of that name. */
  TENANT_MISMATCH: 403,
  /** The instance is not registered, not any more after ten minutes of silence, or of another type than the token's: register. */
  INSTANCE_NOT_FOUND: 404,
  /** Somebody deregistered the instance: stay away until you are started again. Also the answer to its `/agents/heartbeat`. */
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

/** Codes that end a message or travel in `error` frames. Existing codes never change meaning. */
export const FRAME_ERROR_CODES = [
  /**
   * The frame breaks the schema, or the first frame is not `hello`; what the frame answers fails with `HANDLER_ERROR` first. The socket
   * stays open for an unknown frame type.
   */
  'BAD_FRAME',
  /** No `hello` came within 10 s. */
  'HELLO_TIMEOUT',
  /** A second `hello` came. */
  'DUPLICATE_HELLO',
  /**
   * A frame names another instance than the address; at `hello`, the instance is not registered any more after ten minutes of silence
   * (register again), or its type may not join any more.
   */
  'INSTANCE_ID_MISMATCH',
  /** A newer socket of the same instance took over. */
  'REPLACED',
  /** The token ended or was revoked; come back with a new one. */
  'TOKEN_EXPIRED',
  /** The token in a `reauth` frame is not one for this socket; the old one stays in force until its end. */
  'REAUTH_REFUSED',
  /** The agent reads too slowly. */
  'BACKPRESSURE',
  /**
   * A `reauth` frame: more than one in ten seconds (five at once), or one is being checked. Heartbeats and frames about dispatches that are
   * not in flight: more than 20 a second (512 at once); the frame was dropped. A dispatch: more than 2,000 chunks a second (20,000 at
   * once). A tool call: 64 of the caller are in flight, or as many of its tenant as a node takes.
   */
  'RATE_LIMITED',
  /** The agent, or the node that held its socket, was lost; the work may have been carried out. */
  'AGENT_DISCONNECTED',
  /** No answer came within `deadline_ms`. */
  'DEADLINE_EXCEEDED',
  /** This instance never had such a dispatch or tool call; a tool call names a dispatch that is not its caller's, or not open. */
  'UNKNOWN_DISPATCH',
  /** The dispatch or tool call has ended, or is not at work on this connection; the frame is dropped. */
  'DISPATCH_ALREADY_TERMINAL',
  /** A chunk is missing; the dispatch fails. */
  'CHUNK_SEQ_GAP',
  /** The SDK cannot read the dispatch, or has no handler for it, or the data does not fit the skill's schema. */
  'INVALID_DISPATCH',
  /**
   * The agent failed: it threw, answered HTTP 4xx or 5xx, its answer is no A2A answer (the text names the member), or it asked with a form
   * that is not flat; also where the code that an agent gives is no word of at most 64 letters, digits and `_`. The token server of a hosted agent refuses the platform's client.
   */
  'HANDLER_ERROR',
  /** The agent takes no more; or it answers 64 tool calls already, or does not read its socket. */
  'AGENT_BUSY',
  /** The message was canceled, or the answer to a tool call is not wanted any more; sent to the agent that works on it. */
  'CANCELED',
  /**
   * A [policy](policies.md) denies the message or the tool call, and its `reason` is the text; a tool call is nested too deep, or would
   * wait for itself, or needs an approval that it cannot wait for; an agent asked for approval of a tool again and again. At `hello`, which
   * closes the socket: it denies the skills, tools or card that the agent brings; the SDK then stops.
   */
  'POLICY_DENIED',
  /**
   * A [guard](guards.md) denies a message, withholds an agent's output or a tool's result, or stops a tool call; the text says what was
   * found. Output about which a human is asked is [held](guards.md#output-that-is-held) instead.
   */
  'GUARD_DENIED',
  /** A tool call waits for a human. On a WebSocket the result follows by itself; over HTTP repeat the call with the same `idempotency_key`. */
  'APPROVAL_PENDING',
  /** A human rejected the message or the tool call. */
  'APPROVAL_REJECTED',
  /** Nobody answered the question in time (24 h). */
  'APPROVAL_EXPIRED',
  /**
   * The type, skill or instance is not registered (at once), or no registered agent took the message in time: within its `deadline_ms` while one
   * was online, within `QUEUE_WAIT_MS` (30 s) while none was, after a human's answer within the time that the question was open; the text says
   * which and why. The token server of a hosted agent cannot be reached. A tool call: no agent that lists the tool is available, or its node was
   * lost.
   */
  'TARGET_UNAVAILABLE',
  /** No agent that fits a tool call lists the tool. */
  'TOOL_NOT_FOUND',
  /**
   * Somebody deregistered the instance, or disallowed its type: stay away, as the SDK does. An agent that is started again and registers is
   * welcome.
   */
  'DEREGISTERED',
  /** A fault of the platform; also a message whose workflow an operator terminated. */
  'INTERNAL',
] as const;

/** A code in an `error` frame, or the reason why a message failed. */
export type FrameErrorCode = (typeof FRAME_ERROR_CODES)[number];

/** WebSocket close codes. One with the name of a frame error closes the socket after that frame. */
export const CLOSE_CODES = {
  /** The end after a `close_request`. */
  NORMAL: 1000,
  /**
   * Three pings in a row are unanswered, or the node is stopping (at the end of its grace: come back with the `resume_token`, the work goes
   * on at another node).
   */
  GOING_AWAY: 1001,
  BAD_FRAME: 1002,
  /** A binary frame. */
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

/** JSON-RPC and A2A error numbers by the names that A2A 1.0 gives them; all have the HTTP status 200. */
export const RPC_ERRORS = {
  /** The body is no JSON. */
  PARSE_ERROR: -32700,
  /** The body is no JSON-RPC 2.0 request; batches too. */
  INVALID_REQUEST: -32600,
  /**
   * The version that `A2A-Version` names has no such method. Where the other version has it, the message names the header to send: without
   * one a call is of 0.3.
   */
  METHOD_NOT_FOUND: -32601,
  /**
   * The parameters do not fit; there is no such session (`NOT_FOUND`); `IDEMPOTENCY_MISMATCH`; no target is named, and the tenant has
   * neither a default type nor a single one (`TARGET_REQUIRED`).
   */
  INVALID_PARAMS: -32602,
  /** A fault of the platform; as the last event of a stream with the code `unauthorized`: its token has ended, the task continues. */
  INTERNAL: -32603,
  /** The id names no task of yours. */
  TASK_NOT_FOUND: -32001,
  /** The task has ended (`ALREADY_TERMINAL`); also for a second cancel. */
  TASK_NOT_CANCELABLE: -32002,
  /** Reserved by A2A; not sent, because push notifications are supported. */
  PUSH_NOTIFICATION_NOT_SUPPORTED: -32003,
  /**
   * The session has ended (`SESSION_CLOSED`), the task has ended (`ALREADY_TERMINAL`), or it does not wait for an answer
   * (`NOT_AWAITING_INPUT`).
   */
  UNSUPPORTED_OPERATION: -32004,
  /**
   * In 1.0 the `Content-Type` is not `application/json` (in 0.3 that is HTTP 400), or no agent takes the message's files and gives what
   * `acceptedOutputModes` names.
   */
  CONTENT_TYPE_NOT_SUPPORTED: -32005,
  /** Reserved by A2A; not sent, because there is an extended agent card. */
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: -32007,
  /** `A2A-Version` is neither 0.3 nor 1.0. */
  VERSION_NOT_SUPPORTED: -32009,
} as const;

/** The name of a JSON-RPC error. */
export type RpcErrorName = keyof typeof RPC_ERRORS;
