import { randomBytes } from 'node:crypto';
import { MessageSendParams } from '../../contracts/a2a.js';
import { type DispatchPayload, FrameEnvelope, type WelcomePayload } from '../../contracts/frames.js';
import type { ToolDelivery } from '../../contracts/tools.js';

/** What an envelope says beside its type. */
export interface FrameFields {
  /** A new one when absent. */
  id?: string;
  inReplyTo?: string;
  /** W3C trace context; empty is none. */
  traceparent?: string;
}

/** A frame of `service.v1` as text (specification section 6). */
export function encodeFrame(type: string, payload: object, fields: FrameFields = {}): string {
  const { id = frameId(), inReplyTo, traceparent = '' } = fields;
  const [, trace_id, parent_span_id] = traceparent.split('-');
  return JSON.stringify({
    v: 1,
    type,
    id,
    ts: new Date().toISOString(),
    ...(inReplyTo !== undefined && { in_reply_to: inReplyTo }),
    ...(parent_span_id !== undefined && { trace_id, parent_span_id }),
    payload,
  });
}

/** An id for a frame. */
export function frameId(): string {
  return uuidV7(Date.now());
}

/** The trace context of a frame as a W3C header; empty where it has none. */
export function traceparentOf({ trace_id, parent_span_id }: FrameEnvelope): string {
  return trace_id && parent_span_id ? `00-${trace_id}-${parent_span_id}-01` : '';
}

/** The frame in `text`, or null where it is none. */
export function decodeFrame(text: string): FrameEnvelope | null {
  try {
    return FrameEnvelope.parse(JSON.parse(text));
  } catch {
    return null; // the caller says so: it knows the connection
  }
}

/** The dispatch in a frame's payload, or null where it lacks what an agent needs. */
export function readDispatch(payload: Record<string, unknown>): DispatchPayload | null {
  const context = payload.session_context as Partial<DispatchPayload['session_context']> | undefined;
  const complete =
    MessageSendParams.safeParse(payload.params).success &&
    typeof payload.dispatch_id === 'string' &&
    typeof payload.deadline_ms === 'number' &&
    typeof context?.session_id === 'string' &&
    typeof context.message_id === 'string';
  return complete ? (payload as unknown as DispatchPayload) : null;
}

/** The tool call in a frame's payload, or null where it lacks what an agent needs. */
export function readToolDelivery(payload: Record<string, unknown>): ToolDelivery | null {
  const caller = payload.caller as Partial<ToolDelivery['caller']> | undefined;
  const complete =
    typeof payload.tool === 'string' &&
    typeof payload.arguments === 'object' &&
    payload.arguments !== null &&
    typeof payload.dispatch_id === 'string' &&
    typeof payload.deadline_ms === 'number' &&
    typeof caller?.agent_type === 'string';
  return complete ? (payload as unknown as ToolDelivery) : null;
}

/** The `welcome` in a frame's payload, or null where it lacks what an agent needs. */
export function readWelcome(payload: Record<string, unknown>): WelcomePayload | null {
  const { resumed, resume_token, heartbeat_interval_ms, ping_interval_ms, resume_window_ms } = payload;
  const times = [heartbeat_interval_ms, ping_interval_ms, resume_window_ms];
  const complete =
    typeof resumed === 'boolean' &&
    typeof resume_token === 'string' &&
    times.every((time) => typeof time === 'number' && time > 0);
  return complete ? (payload as unknown as WelcomePayload) : null;
}

/** RFC 9562 version 7: 48 bits of milliseconds, then random bits. */
function uuidV7(nowMs: number): string {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(nowMs, 0, 6);
  bytes[6] = 0x70 | ((bytes[6] ?? 0) & 0x0f);
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f);
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
