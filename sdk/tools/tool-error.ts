import type { ToolResult } from '../../contracts/api/tools.js';
import { errorText, isErrorCode, UnsendableError } from '../handlers/sendable.js';

/** What a `ToolError` has beyond an `Error`. */
export interface ToolErrorOptions extends ErrorOptions {
  /** 1 to 64 characters. */
  code?: string;
  retryable?: boolean;
  policyId?: string;
}

/** A failed tool call. `callTool` throws it; a tool handler throws it to choose the error that the caller receives. */
export class ToolError extends Error {
  /** The platform's code (`TOOL_NOT_FOUND`, `POLICY_DENIED`, …), or the tool's own. */
  readonly code: string;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  /** The policy that denied the call, if one did. */
  readonly policyId: string | undefined;

  /** @param options `code` is `HANDLER_ERROR` by default; `cause` is not sent */
  constructor(message: string, options: ToolErrorOptions = {}) {
    super(message, options);
    this.name = 'ToolError';
    this.code = options.code ?? 'HANDLER_ERROR';
    this.retryable = options.retryable ?? false;
    this.policyId = options.policyId;
  }
}

/** The result of a tool call. @throws ToolError when it failed */
export function unwrapped(answer: ToolResult): unknown {
  if (answer.ok) return answer.result;
  const { code, message, retryable, policy_id } = answer.error;
  throw new ToolError(message || code, { code, retryable, ...(policy_id !== undefined && { policyId: policy_id }) });
}

/**
 * The error that the caller receives for an error that a tool handler threw.
 * @param handler the handler's name in the error message
 */
export function failureOf(error: unknown, handler = 'a tool'): ToolResult {
  const { code, retryable } = error instanceof ToolError ? error : { code: 'HANDLER_ERROR', retryable: false };
  const message = error instanceof UnsendableError ? `${handler}: ${error.message}` : errorText(error);
  if (isErrorCode(code)) return { ok: false, error: { code, message, retryable: retryable === true } };
  return failureOf(
    new Error(`${handler}: the code of a ToolError has 1 to 64 characters. The failure was: ${message}`),
  );
}
