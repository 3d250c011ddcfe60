import { type ErrorCode, RPC_ERRORS, type RpcErrorName } from '../../contracts/errors.js';
import { PlatformError } from '../../runtime/errors.js';

/** A JSON-RPC error of `/send`, which has HTTP status 200. `code` goes into `error.data`. */
export class RpcError extends Error {
  /** A2A's name of the error: the `reason` of an ErrorInfo in 1.0. */
  readonly reason: RpcErrorName;
  readonly rpcCode: number;
  readonly code: string | undefined;

  constructor(reason: RpcErrorName, message: string, code?: string) {
    super(message);
    this.name = 'RpcError';
    this.reason = reason;
    this.rpcCode = RPC_ERRORS[reason];
    this.code = code;
  }
}

/** How `/send` answers a domain error: by the error of A2A, and the code that goes into `error.data`. */
interface RpcAnswer {
  name: RpcErrorName;
  dataCode?: string;
}

/** Domain errors that `/send` answers as JSON-RPC errors. Those of any other code keep their HTTP status. */
const ANSWERS: Partial<Record<ErrorCode, RpcAnswer>> = {
  INVALID_PARAMS: { name: 'INVALID_PARAMS' },
  IDEMPOTENCY_MISMATCH: { name: 'INVALID_PARAMS', dataCode: 'IDEMPOTENCY_MISMATCH' },
  SESSION_NOT_FOUND: { name: 'INVALID_PARAMS', dataCode: 'NOT_FOUND' },
  TARGET_REQUIRED: { name: 'INVALID_PARAMS', dataCode: 'TARGET_REQUIRED' },
  TASK_NOT_FOUND: { name: 'TASK_NOT_FOUND', dataCode: 'NOT_FOUND' },
  PUSH_CONFIG_NOT_FOUND: { name: 'TASK_NOT_FOUND' },
  UNSUPPORTED_OPERATION: { name: 'UNSUPPORTED_OPERATION' },
  SESSION_CLOSED: { name: 'UNSUPPORTED_OPERATION', dataCode: 'SESSION_CLOSED' },
  ALREADY_TERMINAL: { name: 'UNSUPPORTED_OPERATION', dataCode: 'ALREADY_TERMINAL' },
  NOT_AWAITING_INPUT: { name: 'UNSUPPORTED_OPERATION', dataCode: 'NOT_AWAITING_INPUT' },
  CALLBACK_TOKEN_EXPIRED: { name: 'UNSUPPORTED_OPERATION', dataCode: 'CALLBACK_TOKEN_EXPIRED' },
  CONTENT_TYPE_NOT_SUPPORTED: { name: 'CONTENT_TYPE_NOT_SUPPORTED' },
};

/** The JSON-RPC error of anything thrown; undefined for what keeps its HTTP status. */
export function rpcErrorOf(error: unknown): RpcError | undefined {
  if (error instanceof RpcError) return error;
  const answer = error instanceof PlatformError ? ANSWERS[error.code] : undefined;
  return answer && new RpcError(answer.name, (error as PlatformError).message, answer.dataCode);
}
