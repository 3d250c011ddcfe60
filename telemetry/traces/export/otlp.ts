import type { Span } from '../span.js';

/** A span with the trace that it belongs to. */
export interface ExportedSpan extends Span {
  trace_id: string;
}

/** The numbers of OTLP. */
const KIND = { internal: 1, server: 2, client: 3 } as const;
const STATUS = { unset: 0, ok: 1, error: 2 } as const;

type Value = string | number | boolean;

/** 64-bit integers are text in the JSON of OTLP. */
function anyValue(value: Value): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}

function keyValues(attributes: Record<string, Value>): object[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: anyValue(value) }));
}

const nanoseconds = (at: Date) => `${at.getTime()}000000`;

function otlpSpan({
  trace_id,
  span_id,
  parent_span_id,
  name,
  kind,
  start,
  end,
  status,
  attributes,
}: ExportedSpan): object {
  const error = attributes['error.type'];
  return {
    traceId: trace_id,
    spanId: span_id,
    ...(parent_span_id !== null && { parentSpanId: parent_span_id }),
    name,
    kind: KIND[kind],
    startTimeUnixNano: nanoseconds(start),
    endTimeUnixNano: nanoseconds(end ?? start),
    attributes: keyValues(attributes),
    status: { code: STATUS[status], ...(status === 'error' && error !== undefined && { message: String(error) }) },
  };
}

/** The body of an export request (OTLP 1, `ExportTraceServiceRequest` in JSON). @param resource attributes of the platform itself */
export function exportRequest(
  spans: readonly ExportedSpan[],
  resource: Record<string, Value>,
  version: string,
): object {
  const scope = { name: 'agent-fleet', version };
  return {
    resourceSpans: [
      { resource: { attributes: keyValues(resource) }, scopeSpans: [{ scope, spans: spans.map(otlpSpan) }] },
    ],
  };
}
