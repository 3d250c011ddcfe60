import { newId, spanIdOf, traceFrom, traceparentOf, uuidOf } from '../runtime/ids.js';
import type { SpanRecorder } from '../telemetry/traces/span-recorder.js';
import type { CallParent, ToolRequest } from './call-context.js';
import type { Outcome } from './tool-result.js';

/** The span of a tool call. What answers the call continues the trace from it. */
export interface CallSpan {
  trace_id: string;
  span_id: string;
  /** Null for a call that begins a trace. */
  parent_span_id: string | null;
  /** The W3C header for what the call causes, with this span as the parent. */
  traceparent: string;
  /** The message that the call is part of; a call that is part of none has a span that is not kept. */
  message_id: CallParent['message_id'];
  startedAtMs: number;
}

export type TracedRequest = ToolRequest & { span: CallSpan };

/**
 * Begins the span of a call. A call that is part of a dispatch belongs to the dispatch's trace, whatever trace the agent names. If the agent
 * names a span of that trace, the span is the call's parent.
 */
export function beginSpan<Request extends ToolRequest>(request: Request): Request & { span: CallSpan } {
  const { parent, traceparent } = request;
  const uuid = uuidOf(newId('call'));
  const named = traceFrom(traceparent, uuid);
  const enclosing = parent?.traceparent === undefined ? named : traceFrom(parent.traceparent, uuid);
  const { trace_id, sampled } = enclosing;
  const { parent_span_id } = named.trace_id === trace_id ? named : enclosing;
  const span = {
    trace_id,
    span_id: spanIdOf(uuid),
    parent_span_id,
    traceparent: traceparentOf(trace_id, uuid, sampled),
    message_id: parent?.message_id,
    startedAtMs: Date.now(),
  };
  return { ...request, span };
}

/** Records the span of a call that has a result. */
export function endSpan(recorder: SpanRecorder, { span, caller, payload }: TracedRequest, { result }: Outcome): void {
  const { span_id, parent_span_id, traceparent, message_id, startedAtMs } = span;
  if (message_id === undefined || parent_span_id === null) return;
  recorder.record({
    ...{ tenant_id: caller.tenant_id, message_id, traceparent, span_id, parent_span_id },
    name: `execute_tool ${payload.tool}`,
    kind: 'internal',
    startedAtMs,
    endedAtMs: Date.now(),
    error_type: result.ok ? null : result.error.code,
    attributes: {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': payload.tool,
      'gen_ai.tool.type': 'function',
      'gen_ai.agent.name': caller.agent_type,
      ...(caller.instance_id !== undefined && { 'gen_ai.agent.id': caller.instance_id }),
    },
  });
}
