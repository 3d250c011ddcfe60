import { RPC_ERRORS, type RpcErrorName } from '../contracts/errors.js';

/** A JSON-RPC error of `/send`; it rides on HTTP 200 (a2a.md). `code` goes into `error.data`. */
export class RpcError extends Error {
  /** What went wrong in A2A's words: the `reason` of an ErrorInfo in 1.0. */
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
