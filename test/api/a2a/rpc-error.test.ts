import { expect, test } from 'vitest';
import { RpcError, rpcErrorOf } from '../../../api/send/rpc-error.js';
import { type ErrorCode, HTTP_ERRORS, SEND_ERRORS } from '../../../contracts/errors.js';
import { PlatformError } from '../../../runtime/errors.js';

/** What goes over the wire, which clients know by heart. */
const WIRE = {
  INVALID_PARAMS: [-32602, undefined],
  IDEMPOTENCY_MISMATCH: [-32602, 'IDEMPOTENCY_MISMATCH'],
  SESSION_NOT_FOUND: [-32602, 'NOT_FOUND'],
  TARGET_REQUIRED: [-32602, 'TARGET_REQUIRED'],
  TASK_NOT_FOUND: [-32001, 'NOT_FOUND'],
  PUSH_CONFIG_NOT_FOUND: [-32001, undefined],
  UNSUPPORTED_OPERATION: [-32004, undefined],
  SESSION_CLOSED: [-32004, 'SESSION_CLOSED'],
  ALREADY_TERMINAL: [-32004, 'ALREADY_TERMINAL'],
  NOT_AWAITING_INPUT: [-32004, 'NOT_AWAITING_INPUT'],
  CALLBACK_TOKEN_EXPIRED: [-32004, 'CALLBACK_TOKEN_EXPIRED'],
  CONTENT_TYPE_NOT_SUPPORTED: [-32005, undefined],
} as const satisfies Partial<Record<ErrorCode, readonly [number, string | undefined]>>;

test.each(Object.entries(WIRE))('%s becomes %j', (code, wire) => {
  const error = rpcErrorOf(new PlatformError(code as ErrorCode, 'why'));
  expect([error?.rpcCode, error?.code]).toEqual(wire);
  expect(error?.message).toBe('why');
});

test.each(Object.keys(HTTP_ERRORS).filter((code) => !(code in WIRE)))('%s keeps its HTTP status', (code) => {
  expect(rpcErrorOf(new PlatformError(code as ErrorCode, 'why'))).toBeUndefined();
});

test('codes that only /send can meet are all answered by it', () => {
  expect(Object.keys(SEND_ERRORS).filter((code) => !(code in WIRE))).toEqual([]);
});

test('a JSON-RPC error stays what it is, and what is unexpected is none', () => {
  const error = new RpcError('PARSE_ERROR', 'why');
  expect(rpcErrorOf(error)).toBe(error);
  expect(rpcErrorOf(new Error('why'))).toBeUndefined();
});
