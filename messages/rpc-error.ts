import { RPC_ERRORS } from '../contracts/errors.js';

/** A JSON-RPC error of `/send`; it rides on HTTP 200 (a2a.md). `code` goes into `error.data.code`. */
export class RpcError extends Error {
  readonly rpcCode: number;
  readonly code: string | undefined;

  constructor(name: keyof typeof RPC_ERRORS, message: string, code?: string) {
    super(message);
    this.name = 'RpcError';
    this.rpcCode = RPC_ERRORS[name];
    this.code = code;
  }
}
