import type { ToolResult } from '../contracts/api/tools.js';
import type { ErrorCode, FrameErrorCode } from '../contracts/errors.js';
import type { ErrorPayload } from '../contracts/frames.js';
import { LIMITS } from '../contracts/limits.js';
import { isTransient, PlatformError } from '../runtime/errors.js';

/** The codes with which the platform refuses or ends a tool call. */
export type ToolErrorCode = FrameErrorCode | ErrorCode;

/** Codes of calls that did nothing and that may succeed when they are repeated a little later. */
const RETRYABLE = new Set<ToolErrorCode>(['RATE_LIMITED', 'AGENT_BUSY', 'TARGET_UNAVAILABLE']);

/** A failed result with an error of the platform. */
export function refusal(code: ToolErrorCode, message: string, retryable = RETRYABLE.has(code)): ToolResult {
  return { ok: false, error: { code, message, retryable } };
}

/** The outcome of a call. A call with `sent: false` has not reached an agent or a tool and will not. */
export interface Outcome {
  sent: boolean;
  result: ToolResult;
}

/** The outcome of a call that reached no agent or tool. */
export function unsent(code: ToolErrorCode, message: string, retryable?: boolean): Outcome {
  return { sent: false, result: refusal(code, message, retryable) };
}

/**
 * The outcome of an approved call that reached no agent or tool. `approved` says that the approval holds for a repeat,
 * so its caller may wait.
 */
export function stillApproved({ sent, result }: Outcome): Outcome {
  return result.ok ? { sent, result } : { sent, result: { ...result, error: { ...result.error, approved: true } } };
}

/** The result of a call that a thrown error ended. */
export function resultOfError(error: unknown): ToolResult {
  if (!(error instanceof PlatformError)) return refusal('INTERNAL', 'The platform failed while it handled the call.');
  return refusal(error.code, error.message, isTransient(error));
}

/** Limits of an agent's own error code and message. */
const CODE_CHARS = 64;
const MESSAGE_CHARS = 4_096;

/** The result of a call whose agent reports an error: the agent's code and message, cut to their limits. */
export function failureOf({ code, message, retryable }: ErrorPayload): ToolResult {
  const errorCode = code.slice(0, CODE_CHARS).toWellFormed() || 'HANDLER_ERROR';
  const text = message.slice(0, MESSAGE_CHARS).toWellFormed();
  return { ok: false, error: { code: errorCode, message: text || errorCode, retryable } };
}

/** An agent's result for the caller: limited in size, and without a `policy_id`, which only the platform may set. */
export function boundedResult(payload: ToolResult): ToolResult {
  if (Buffer.byteLength(JSON.stringify(payload)) > LIMITS.toolResultBytes) {
    return refusal('HANDLER_ERROR', `The tool's result has more than ${LIMITS.toolResultBytes} bytes.`);
  }
  if (payload.ok) return { ok: true, result: payload.result ?? null };
  return failureOf(payload.error);
}
