import { z } from 'zod';
import { LIMITS } from '../../contracts/limits.js';
import { ToolCallPayload, type ToolResult } from '../../contracts/tools.js';
import { type Field, sendable, shown, UnsendableError } from '../handlers/sendable.js';
import { ToolError, unwrapped } from './tool-error.js';

export interface CallToolOptions {
  /** Which agent; what is given must all hold. Without it the one available agent that lists the tool, or the platform's own tool. */
  target?: { instanceId?: string; agentType?: string; skillId?: string };
  /** Milliseconds; by default what is left of the task. */
  deadlineMs?: number;
  /** The same key again, within the call's life, gives the same result without a second call. */
  idempotencyKey?: string;
  /** Withdraws the call. */
  signal?: AbortSignal;
}

/**
 * Calls a tool of another agent, or of the platform.
 * @throws ToolError when it failed, was denied, or nobody offers it, and when the arguments cannot be sent (`BAD_REQUEST`,
 *   `PAYLOAD_TOO_LARGE`); the signal's reason once it is aborted
 */
export type CallTool = (tool: string, args?: Record<string, unknown>, options?: CallToolOptions) => Promise<unknown>;

/** The way by which calls leave: frames of a connected agent, or requests of a hosted one. */
export interface ToolCaller {
  /** @throws the signal's reason once it is aborted */
  call(payload: ToolCallPayload, traceparent: string, signal: AbortSignal | undefined): Promise<ToolResult>;
}

/** The work that calls are part of: they end with it. */
interface Work {
  /** A dispatch, or a tool call that is being answered. */
  dispatchId: string;
  traceparent: string;
  signal: AbortSignal;
}

/** `callTool` for one task, or, without `work`, for the agent itself. */
export function callToolBy(caller: ToolCaller, work?: Work): CallTool {
  return async (tool, args = {}, { target, deadlineMs, idempotencyKey, signal } = {}) => {
    const signals = [work?.signal, signal].filter((each) => each !== undefined);
    const ended = signals.length > 0 ? AbortSignal.any(signals) : undefined;
    ended?.throwIfAborted();
    const payload = sendableCall({
      tool,
      arguments: args,
      ...(target && { target: wireTarget(target) }),
      ...(work && { dispatch_id: work.dispatchId }),
      ...(deadlineMs !== undefined && { deadline_ms: deadlineMs }),
      ...(idempotencyKey !== undefined && { idempotency_key: idempotencyKey }),
    });
    return unwrapped(await caller.call(payload, work?.traceparent ?? '', ended));
  };
}

const ARGUMENTS: Field = {
  name: 'arguments',
  schema: z.record(z.string(), z.unknown()),
  depth: 3,
  maxBytes: LIMITS.toolArgumentsBytes,
  remedy: 'arguments are an object that JSON can say',
};
const CALL: Field = {
  name: 'call',
  schema: ToolCallPayload.omit({ arguments: true }),
  depth: 2,
  remedy: 'see CallToolOptions',
};

/** @throws ToolError where the mesh would not take the call */
function sendableCall({ arguments: args, ...call }: ToolCallPayload): ToolCallPayload {
  try {
    return { ...sendable(call, CALL), arguments: sendable(args, ARGUMENTS) };
  } catch (error) {
    if (!(error instanceof UnsendableError)) throw error;
    throw new ToolError(error.code, `callTool(${shown(call.tool)}): ${error.message}`);
  }
}

function wireTarget({ instanceId, agentType, skillId }: NonNullable<CallToolOptions['target']>) {
  return {
    ...(instanceId !== undefined && { instance_id: instanceId }),
    ...(agentType !== undefined && { agent_type: agentType }),
    ...(skillId !== undefined && { skill_id: skillId }),
  };
}
