import { newTraceId } from './ids.js';

/** W3C trace context of a message: the caller's trace, or a new one. */
export interface TraceContext {
  trace_id: string;
  parent_span_id: string | null;
}

const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/;

/** Reads a `traceparent` header. An invalid one is replaced by a new trace, as W3C Trace Context requires. */
export function traceFrom(traceparent: string | undefined): TraceContext {
  const match = TRACEPARENT.exec(traceparent ?? '');
  if (match?.[1] && match[2] && !/^0+$/.test(match[1]) && !/^0+$/.test(match[2])) {
    return { trace_id: match[1], parent_span_id: match[2] };
  }
  return { trace_id: newTraceId(), parent_span_id: null };
}

/** The `traceparent` of a dispatch. Its span id comes from the UUID of the dispatch, so a replay repeats it. */
export function traceparentOf(traceId: string, dispatchUuid: string): string {
  return `00-${traceId}-${dispatchUuid.replaceAll('-', '').slice(16)}-01`;
}
