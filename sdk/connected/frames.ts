import { randomBytes } from 'node:crypto';
import { MessageSendParams } from '../../contracts/a2a/a2a.js';
import type { ToolDelivery } from '../../contracts/api/tools.js';
import { type DispatchPayload, FrameEnvelope, type WelcomePayload } from '../../contracts/frames.js';

/** Envelope fields of a frame, besides its type. */
export interface FrameFields {
  /** A new id by default. */
  id?: string;
  inReplyTo?: string;
  /** W3C trace context; empty for none. */
  traceparent?: string;
}

/** A frame of `service.v1` as text. */
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

/** A new frame id. */
export function frameId(): string {
  return uuidV7(Date.now());
}

/** The trace context of a frame as a W3C header; empty without one. */
export function traceparentOf({ trace_id, parent_span_id }: FrameEnvelope): string {
  return trace_id && parent_span_id ? `00-${trace_id}-${parent_span_id}-01` : '';
}

/** Parses a frame; null when `text` is not one. */
export function decodeFrame(text: string): FrameEnvelope | null {
  try {
    return FrameEnvelope.parse(JSON.parse(text));
  } catch {
    return null; // the caller reports it on its connection
  }
}

/** The dispatch in a frame's payload; null when a required member is missing. */
export function readDispatch(payload: Record<string, unknown>): DispatchPayload | null {
  const context = payload.session_context as Partial<DispatchPayload['session_context']> | undefined;
  const isComplete =
    MessageSendParams.safeParse(payload.params).success &&
    typeof payload.dispatch_id === 'string' &&
    typeof payload.deadline_ms === 'number' &&
    typeof context?.session_id === 'string' &&
    typeof context.message_id === 'string';
  return isComplete ? (payload as unknown as DispatchPayload) : null;
}

/** The tool call in a frame's payload; null when a required member is missing. */
export function readToolDelivery(payload: Record<string, unknown>): ToolDelivery | null {
  const caller = payload.caller as Partial<ToolDelivery['caller']> | undefined;
  const isComplete =
    typeof payload.tool === 'string' &&
    typeof payload.arguments === 'object' &&
    payload.arguments !== null &&
    typeof payload.dispatch_id === 'string' &&
    typeof payload.deadline_ms === 'number' &&
    typeof caller?.agent_type === 'string';
  return isComplete ? (payload as unknown as ToolDelivery) : null;
}

/** The `welcome` in a frame's payload; null when a required member is missing. */
export function readWelcome(payload: Record<string, unknown>): WelcomePayload | null {
  const { resumed, resume_token, heartbeat_interval_ms, ping_interval_ms, resume_window_ms } = payload;
  const times = [heartbeat_interval_ms, ping_interval_ms, resume_window_ms];
  const isComplete =
    typeof resumed === 'boolean' &&
    typeof resume_token === 'string' &&
    times.every((time) => typeof time === 'number' && time > 0);
  return isComplete ? (payload as unknown as WelcomePayload) : null;
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
