import { z } from 'zod';
import { ToolCallPayload, type ToolResult } from '../../contracts/api/tools.js';
import { LIMITS } from '../../contracts/limits.js';
import { pause } from '../client/api/retries.js';
import { errorText, type Field, sendable, shown, UnsendableError } from '../handlers/sendable.js';
import type { TaskDeadline } from '../handlers/task-deadline.js';
import type { AgentLog } from '../log.js';
import { currentTraceparent } from '../tracing.js';
import { toWire } from '../wire/names.js';
import { AwaitedOrLogged } from './awaited-or-logged.js';
import { ToolError, unwrapped } from './tool-error.js';

export interface CallToolOptions {
  /** The agent to call; it must match every given member. By default the only available agent that lists the tool, or the platform's tool. */
  target?: { instanceId?: string; agentType?: string; skillId?: string };
  /** Time limit in milliseconds; by default the remaining time of the task. */
  deadlineMs?: number;
  /** A repeat with the same key, while the call is kept, returns the same result without a second call. */
  idempotencyKey?: string;
  /** Cancels the call. */
  signal?: AbortSignal;
}

/**
 * Calls a tool of another agent, or of the platform. A call that needs the approval of a human waits for it, for days if need be: the
 * deadline of the task stands still meanwhile. If the agent or the platform is lost in between, the task begins anew with the decision among
 * `task.resolutions`, and the same call passes without a further question.
 * @throws ToolError when the call fails or is denied, when no agent offers the tool, and when the arguments cannot be sent (`BAD_REQUEST`,
 *   `PAYLOAD_TOO_LARGE`); the signal's reason once it is aborted
 */
export type CallTool = (tool: string, args?: Record<string, unknown>, options?: CallToolOptions) => Promise<unknown>;

/** Sends tool calls: as frames of a connected agent, or as requests of a hosted one. */
export interface ToolCaller {
  /**
   * Waits for the result, also through the approval of a human.
   * @param deadline stands still while the call waits for a human
   * @throws the signal's reason once it is aborted
   */
  call(
    payload: ToolCallPayload,
    traceparent: string,
    signal: AbortSignal | undefined,
    deadline?: TaskDeadline,
  ): Promise<ToolResult>;
}

/** The dispatch or tool call that calls are part of; they are aborted with it. */
interface CallContext {
  /** Id of the dispatch, or of the tool call that is being answered. */
  dispatchId: string;
  traceparent: string;
  signal: AbortSignal;
  /** Of the dispatch. */
  deadline?: TaskDeadline | undefined;
  /** Whether a human has approved a call of the task in an earlier run. */
  isApproved?: boolean;
}

/** An approved call waits this long for an agent that offers the tool, as messages do, and asks again at this interval. */
const AVAILABLE_WITHIN_MS = 30_000;
const PAUSE_MS = 1_000;

function isUnavailable(answer: ToolResult): boolean {
  return !answer.ok && answer.error.retryable && answer.error.code === 'TARGET_UNAVAILABLE';
}

/**
 * `callTool` for one task or tool call; without `context`, for the agent itself.
 * @param log gets the failure of a call that was not awaited
 */
export function callToolBy(caller: ToolCaller, log: AgentLog, context?: CallContext): CallTool {
  const call: CallTool = async (tool, args = {}, { target, deadlineMs, idempotencyKey, signal } = {}) => {
    const signals = [context?.signal, signal].filter((candidate) => candidate !== undefined);
    const ended = signals.length > 0 ? AbortSignal.any(signals) : undefined;
    ended?.throwIfAborted();
    const named = toWire({ tool, target, dispatchId: context?.dispatchId, deadlineMs, idempotencyKey });
    const payload = sendableCall({ ...(named as { tool: string }), arguments: args });
    const traceparent = currentTraceparent() || (context?.traceparent ?? '');
    const attempt = () => caller.call(payload, traceparent, ended, context?.deadline);
    let answer = await attempt();
    const isApproved = context?.isApproved || (!answer.ok && answer.error.approved);
    for (const until = performance.now() + AVAILABLE_WITHIN_MS; isApproved && isUnavailable(answer); ) {
      if (performance.now() >= until) break;
      await pause(PAUSE_MS, ended);
      answer = await attempt();
    }
    return unwrapped(answer);
  };
  return (tool, ...rest) =>
    new AwaitedOrLogged(call(tool, ...rest), (error) => {
      const fields = { tool, ...(context && { dispatch_id: context.dispatchId }) };
      log.warn({ ...fields, error: errorText(error) }, 'a tool call that was not awaited failed');
    });
}

const ARGUMENTS: Field = {
  name: 'arguments',
  schema: z.record(z.string(), z.unknown()),
  depth: 3,
  maxBytes: LIMITS.toolArgumentsBytes,
  remedy: 'arguments are an object that JSON can represent',
};
const CALL: Field = {
  name: 'call',
  schema: ToolCallPayload.omit({ arguments: true }),
  depth: 2,
  remedy: 'see CallToolOptions',
};

/** @throws ToolError when the mesh would refuse the call */
function sendableCall({ arguments: args, ...call }: ToolCallPayload): ToolCallPayload {
  try {
    return { ...sendable(call, CALL), arguments: sendable(args, ARGUMENTS) };
  } catch (error) {
    if (!(error instanceof UnsendableError)) throw error;
    throw new ToolError(`callTool(${shown(call.tool)}): ${error.message}`, { code: error.code, cause: error });
  }
}
