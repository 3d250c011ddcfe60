import type { ErrorCode, FrameErrorCode } from '../contracts/errors.js';
import type { ErrorPayload } from '../contracts/frames.js';
import { LIMITS } from '../contracts/limits.js';
import type { ToolResult } from '../contracts/tools.js';
import { PlatformError } from '../runtime/errors.js';

/** Why the platform refuses a tool call, or ends it. */
export type ToolErrorCode = FrameErrorCode | ErrorCode;

/** Only codes that the same call may not meet a little later, and behind which nothing was done. */
const RETRYABLE: ReadonlySet<ToolErrorCode> = new Set<ToolErrorCode>([
  'RATE_LIMITED',
  'AGENT_BUSY',
  'TARGET_UNAVAILABLE',
]);

/** A result that says why there is none. */
export function refusal(code: ToolErrorCode, message: string, retryable = RETRYABLE.has(code)): ToolResult {
  return { ok: false, error: { code, message, retryable } };
}

/** What became of a call. Nothing of one that was not `sent` has reached an agent or a tool, nor will. */
export interface Outcome {
  sent: boolean;
  result: ToolResult;
}

/** A call that went nowhere. */
export function unsent(code: ToolErrorCode, message: string, retryable?: boolean): Outcome {
  return { sent: false, result: refusal(code, message, retryable) };
}

/** The result of a call that a defect or an absent database ended. */
export function resultOfThrown(error: unknown): ToolResult {
  if (!(error instanceof PlatformError)) return refusal('INTERNAL', 'The platform failed while it handled the call.');
  return refusal(error.code, error.message, error.code === 'SERVICE_UNAVAILABLE');
}

/** Of an agent's own error code and message. */
const CODE_CHARS = 64;
const MESSAGE_CHARS = 4_096;

/** The result of a call whose agent reports an error: in its own words, as far as a result has room for them. */
export function failureOf({ code, message, retryable }: ErrorPayload): ToolResult {
  const said = code.slice(0, CODE_CHARS).toWellFormed() || 'HANDLER_ERROR';
  const why = message.slice(0, MESSAGE_CHARS).toWellFormed();
  return { ok: false, error: { code: said, message: why || said, retryable } };
}

/** An agent's result as callers are given it: bounded, and only the platform says which policy decided. */
export function sized(payload: ToolResult): ToolResult {
  if (Buffer.byteLength(JSON.stringify(payload)) > LIMITS.toolResultBytes) {
    return refusal('HANDLER_ERROR', `The tool's result has more than ${LIMITS.toolResultBytes} bytes.`);
  }
  if (payload.ok) return { ok: true, result: payload.result ?? null };
  return failureOf(payload.error);
}
