import { z } from 'zod';
import { EVENT_PAYLOADS, EVENT_SEVERITIES, EVENT_TYPES, type EventPayloads, type EventType } from '../events.js';
import { AnyId, Instant, JsonObject, ok, okPage, pageFields, Timestamp } from '../primitives.js';
import { EXTENSION, get, post, TENANT } from './operation.js';

/** The members of an event record beside its type and payload. */
const envelope = {
  event_id: z.string(),
  source: z.string(),
  severity: z.enum(EVENT_SEVERITIES),
  tenant_id: z.string(),
  /** Empty where the event belongs to no session. */
  session_id: z.string(),
  timestamp: Timestamp,
  trace_id: z.string().optional(),
};
type Envelope = z.infer<z.ZodObject<typeof envelope>>;
type CategoryOf<Type extends EventType> = Type extends `${infer Category}.${string}` ? Category : never;

/** An event record of a type that this release knows: a union discriminated by `event_type`, with exactly the payload of the type. */
export type PlatformEvent = {
  [Type in EventType]: Envelope & {
    event_type: Type;
    type: Type;
    category: CategoryOf<Type>;
    event: EventPayloads[Type];
  };
}[EventType];

function recordOf(type: EventType) {
  const [category = ''] = type.split('.');
  const payload = EVENT_PAYLOADS[type];
  return z
    .object({
      ...envelope,
      event_type: z.literal(type),
      type: z.literal(type),
      category: z.literal(category),
      event: payload,
    })
    .describe(payload.description ?? '');
}
const [first, ...others] = EVENT_TYPES.map(recordOf) as [ReturnType<typeof recordOf>, ...ReturnType<typeof recordOf>[]];
export const PlatformEvent = z.discriminatedUnion('event_type', [first, ...others]) as unknown as z.ZodType<
  PlatformEvent,
  PlatformEvent
>;

/** An event of a type that a later release writes: readers of the interface pass over types that they do not know. */
const OtherEvent = z.object({
  ...envelope,
  event_type: z.string(),
  type: z.string(),
  category: z.string(),
  event: JsonObject,
});

/** An event record as it is shown; `event` is the payload, `type` the same as `event_type`. */
export type EventRecord = z.infer<typeof OtherEvent>;
export const EventRecord: z.ZodType<EventRecord, EventRecord> = z.union([PlatformEvent, OtherEvent]);

export const GetEventsResponse = okPage({ events: z.array(EventRecord) });

/** What lists and streams of events can be narrowed to; all that are given must hold. */
export const EventFilters = z.strictObject({
  session_id: AnyId.optional(),
  /** Events of the message, of its dispatches, and of what policies and guards decided about it and its tool calls. */
  message_id: AnyId.optional(),
  instance_id: AnyId.optional(),
  category: z.string().max(64).optional(),
  /** One, or several with commas between them. */
  type: z.string().max(1_024).optional(),
  source: z.string().max(128).optional(),
});
export type EventFilters = z.infer<typeof EventFilters>;

/** What a stream is narrowed to. `last_event_id`: it continues after that event; the header `Last-Event-ID` goes before it. */
export const StreamEventsRequest = EventFilters.extend({ last_event_id: AnyId.optional() });
export type StreamEventsRequest = z.infer<typeof StreamEventsRequest>;

/** What the query of a POST may name. */
export const ResumeQuery = z.object({ last_event_id: AnyId.optional() });

/** The last event of a stream that the platform ends: why, and the event after which another stream continues. */
export const StreamClosed = z.object({
  code: z.enum(['BACKPRESSURE', 'unauthorized', 'SERVICE_UNAVAILABLE']),
  error: z.string(),
  last_event_id: z.string().optional(),
});
export type StreamClosed = z.infer<typeof StreamClosed>;

/** `running`: at work, or waiting for a human. The others are how the message or plan ended that began the trace. */
const TraceStatus = z.enum(['running', 'ok', 'error', 'canceled']);
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

const traceMembers = {
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
  /** The trace has more spans than are here: `LIMITS.spansPerTrace`, those of `LIMITS.messagesPerTrace` messages, `LIMITS.spansPerKind` of a kind for each. */
  truncated: z.literal(true).optional(),
};

/** A trace in a list. */
export const TraceSummary = z.object(traceMembers);
export type TraceSummary = z.infer<typeof TraceSummary>;

/** A trace with its spans, in the order in which they began. */
export const Trace = z.object({ ...traceMembers, spans: z.array(TraceSpan) });
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

const GetTracesResponse = z.union([TraceResponse, TracesResponse]);

const stream = { response: EventRecord, stream: true, ...EXTENSION } as const;

export const TELEMETRY_OPERATIONS = {
  getEvents: post('/telemetry/get_events', TENANT, 'List events', {
    request: z.strictObject({
      ...pageFields,
      ...EventFilters.shape,
      from: Instant.optional(),
      to: Instant.optional(),
    }),
    response: GetEventsResponse,
  }),
  streamEvents: post('/telemetry/stream_events', TENANT, 'Follow events as they happen (server-sent events)', {
    request: StreamEventsRequest,
    ...stream,
  }),
  /** For `EventSource`, which can only GET. */
  streamEventsByQuery: get('/telemetry/stream_events', TENANT, 'Follow events, with the filters in the query', {
    query: StreamEventsRequest,
    statuses: [400, 401, 403, 404, 429, 500, 503],
    ...stream,
  }),
  getTraces: post('/telemetry/get_traces', TENANT, 'List traces, or read one with its spans', {
    request: GetTracesRequest,
    response: GetTracesResponse,
    ...EXTENSION,
  }),
};
