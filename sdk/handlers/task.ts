import type { DispatchPayload } from '../../contracts/frames.js';
import { textOf } from '../../contracts/parts.js';
import type { AgentTask, TaskResolution } from './agent-task.js';
import type { TaskOutput } from './task-output.js';
import { callToolBy, type ToolCaller } from '../tools/tool-caller.js';

/** The task of a dispatch, as its handler sees it. */
export function taskOf(
  dispatch: DispatchPayload,
  output: TaskOutput,
  tools: ToolCaller,
  signal: AbortSignal,
): AgentTask {
  const { params, session_context: context, dispatch_id, skill_id, args, attempt, deadline_ms } = dispatch;
  const traceparent = context.propagation_headers?.traceparent ?? '';
  return {
    text: textOf(params.message.parts),
    parts: params.message.parts,
    metadata: params.metadata ?? {},
    sessionId: context.session_id,
    messageId: context.message_id,
    dispatchId: dispatch_id,
    skillId: skill_id,
    args,
    attempt,
    resolution: readResolution(params.metadata?.resolution),
    deadlineMs: deadline_ms,
    traceparent,
    signal,
    stream: (piece) => output.stream(piece),
    status: (text) => output.status(text),
    callTool: callToolBy(tools, { dispatchId: dispatch_id, traceparent, signal }),
    ask: (question) => ({ state: 'input-required', question }),
  };
}

/** The words of a yes; the platform makes every answer one of five. */
const ACCEPTED: readonly unknown[] = ['approved', 'confirmed', 'submitted'];

function readResolution(value: unknown): TaskResolution | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { request_id, resolution, data, comment } = value as {
    request_id: string;
    resolution: string;
    data?: Record<string, unknown>;
    comment?: string;
  };
  const accepted = ACCEPTED.includes(resolution);
  return { requestId: request_id, resolution, accepted, ...(data && { data }), ...(comment && { comment }) };
}
