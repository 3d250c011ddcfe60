import { z } from 'zod';
import { AnyId, ok, okPage, pageFields, Timestamp } from '../primitives.js';
import { EXTENSION, post, TENANT } from './operation.js';

/** `running`: at work, or waiting for a human. The others are how the message or plan ended that began the trace. */
export const TRACE_STATUSES = ['running', 'ok', 'error', 'canceled'] as const;
export const TraceStatus = z.enum(TRACE_STATUSES);
export type TraceStatus = z.infer<typeof TraceStatus>;

/** A value of an attribute. Names are those of OpenTelemetry's conventions (GenAI's among them), or begin with `fleet.`. */
const AttributeValue = z.union([z.string(), z.number(), z.boolean()]);

/** A span of a trace (docs/traces.md). */
export const TraceSpan = z.object({
  /** 16 hexadecimal digits. */
  span_id: z.string(),
  /** Null where the trace began; of a caller's trace the caller's span. */
  parent_span_id: z.string().nullable(),
  name: z.string(),
  kind: z.enum(['server', 'client', 'internal']),
  start: Timestamp,
  /** Null while it runs. */
  end: Timestamp.nullable(),
  /** As OpenTelemetry has it; `unset` while it runs, and where it was canceled. */
  status: z.enum(['unset', 'ok', 'error']),
  attributes: z.record(z.string(), AttributeValue),
});
export type TraceSpan = z.infer<typeof TraceSpan>;

const members = {
  /** 32 hexadecimal digits. */
  trace_id: z.string(),
  /** Of the message or plan that began the trace, as the rest. */
  session_id: z.string(),
  tenant_id: z.string(),
  /** The agent type that the message went to; before that, and of a plan, null or the type that is asked for. */
  root_agent: z.string().nullable(),
  status: TraceStatus,
  started_at: Timestamp,
  /** The end of the last span. Null, as `duration_ms`, while the trace runs. */
  ended_at: Timestamp.nullable(),
  duration_ms: z.int().min(0).nullable(),
  span_count: z.int().min(0),
  /** The trace has more messages than `LIMITS.messagesPerTrace`; only the spans of the first are here. */
  truncated: z.literal(true).optional(),
};

/** A trace in a list. */
export const TraceSummary = z.object(members);
export type TraceSummary = z.infer<typeof TraceSummary>;

/** A trace with its spans, in the order in which they began. */
export const Trace = z.object({ ...members, spans: z.array(TraceSpan) });
export type Trace = z.infer<typeof Trace>;

/** With `trace_id` the answer is that trace, and the other members do not count. Otherwise all that are given must hold. */
export const GetTracesRequest = z.strictObject({
  ...pageFields,
  trace_id: AnyId.optional(),
  session_id: AnyId.optional(),
  status: TraceStatus.optional(),
  /** Whether a plan is part of the trace. */
  has_plan: z.boolean().optional(),
});
export type GetTracesRequest = z.infer<typeof GetTracesRequest>;

/** The traces that match, the newest first. */
export const TracesResponse = okPage({ traces: z.array(TraceSummary) });
export type TracesResponse = z.infer<typeof TracesResponse>;

/** The answer where `trace_id` is given. */
export const TraceResponse = ok({ trace: Trace });

export const GetTracesResponse = z.union([TraceResponse, TracesResponse]);

export const TRACE_OPERATIONS = {
  getTraces: post('/telemetry/get_traces', TENANT, 'List traces, or read one with its spans', {
    request: GetTracesRequest,
    response: GetTracesResponse,
    ...EXTENSION,
  }),
};
