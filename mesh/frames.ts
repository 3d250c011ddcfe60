import type { z } from 'zod';
import type { FrameErrorCode } from '../contracts/errors.js';
import {
  AGENT_FRAME_PAYLOADS,
  type DispatchPayload,
  FRAME_TYPES,
  FrameEnvelope,
  type FrameType,
  REPLY_FRAMES,
  type WelcomePayload,
} from '../contracts/frames.js';
import { jsonProblem, makeWellFormed, mayBeIllFormed, mayBeUnfit, nestsDeeper } from '../contracts/json-guard.js';
import { LIMITS } from '../contracts/limits.js';
import type { ToolDelivery, ToolResult } from '../contracts/tools.js';
import { uuidv7 } from '../runtime/ids.js';

type Payloads = { [Type in keyof typeof AGENT_FRAME_PAYLOADS]: z.infer<(typeof AGENT_FRAME_PAYLOADS)[Type]> };

/**
 * A frame from an agent, checked. `reply_to` is '' where the frame answers nothing; `traceparent` is a tool call's trace context as a
 * W3C header, where the envelope has a whole one.
 */
export type AgentFrame = {
  [Type in keyof Payloads]: {
    type: Type;
    id: string;
    reply_to: string;
    traceparent?: string;
    payload: Payloads[Type];
  };
}[keyof Payloads];

/** What a text message turned out to be. `bad` closes the socket, `unknown` does not (specification section 6). */
export type Inbound =
  | { kind: 'frame'; frame: AgentFrame }
  | { kind: 'unknown'; id: string; type: string }
  | { kind: 'bad'; id?: string; problem: string };

/** Parses and checks one text message. Never throws. */
export function parseFrame(text: string): Inbound {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return { kind: 'bad', problem: 'The frame is not JSON.' };
  }
  const unfit = mayBeUnfit(text) || nestsDeeper(text, LIMITS.jsonDepth) ? jsonProblem(json) : undefined;
  if (unfit) return { kind: 'bad', problem: `The frame ${unfit}.` };
  const envelope = FrameEnvelope.safeParse(json);
  if (!envelope.success) return { kind: 'bad', problem: describe(envelope.error) };
  // A chunk may end inside a surrogate pair that the next one completes.
  if (envelope.data.type !== 'dispatch_chunk' && mayBeIllFormed(text)) makeWellFormed(envelope.data.payload);
  return parsePayload(envelope.data);
}

function parsePayload(envelope: FrameEnvelope): Inbound {
  const { type, id } = envelope;
  if (!isKnown(type)) return { kind: 'unknown', id, type };
  const reply_to = envelope.in_reply_to ?? '';
  if (REPLY_FRAMES.includes(type) && reply_to === '') return { kind: 'bad', id, problem: `${type} needs in_reply_to.` };
  if (type === 'welcome' || type === 'dispatch') return { kind: 'bad', id, problem: `An agent does not send ${type}.` };
  const payload = AGENT_FRAME_PAYLOADS[type].safeParse(envelope.payload);
  if (!payload.success) return { kind: 'bad', id, problem: describe(payload.error, 'payload.') };
  const frame = { type, id, reply_to, payload: payload.data } as AgentFrame;
  if (frame.type === 'tool_call') frame.traceparent = traceparentOf(envelope);
  return { kind: 'frame', frame };
}

const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-01$/;

function traceparentOf({ trace_id, parent_span_id }: FrameEnvelope): string | undefined {
  if (!trace_id || !parent_span_id) return undefined;
  const traceparent = `00-${trace_id}-${parent_span_id}-01`;
  return TRACEPARENT.test(traceparent) ? traceparent : undefined;
}

function isKnown(type: string): type is FrameType {
  return (FRAME_TYPES as readonly string[]).includes(type);
}

function describe(error: z.ZodError, prefix = ''): string {
  const [first] = error.issues;
  return `${prefix}${first?.path.join('.') || 'frame'}: ${first?.message ?? 'does not fit'}`.slice(0, 500);
}

interface MeshPayloads {
  welcome: WelcomePayload;
  dispatch: DispatchPayload;
  tool_call: ToolDelivery;
  tool_result: ToolResult;
  ping: { nonce?: string };
  pong: { nonce?: string };
  error: { code: FrameErrorCode; message: string; retryable: boolean; details?: unknown };
  close_request: { grace_seconds: number; reason?: string };
}

/** What a frame carries beside its payload. `id` is given for a dispatch only: a replay keeps it. */
export interface FrameContext {
  id?: string;
  reply_to?: string;
  /** W3C header of the work that the frame is about. */
  traceparent?: string;
}

/** A frame of the mesh as text. */
export function encodeFrame<Type extends keyof MeshPayloads>(
  type: Type,
  payload: MeshPayloads[Type],
  context: FrameContext = {},
): string {
  const [, trace_id, parent_span_id] = context.traceparent?.split('-') ?? [];
  return JSON.stringify({
    v: 1,
    type,
    id: context.id ?? uuidv7(),
    ts: new Date().toISOString(),
    in_reply_to: context.reply_to,
    trace_id,
    parent_span_id,
    payload,
  });
}

/**
 * An `error` frame. Only codes that a later try may clear are `retryable`.
 * @param traceparent of the work that it is about
 */
export function errorFrame(code: FrameErrorCode, message: string, replyTo?: string, traceparent?: string): string {
  return encodeFrame('error', { code, message, retryable: RETRYABLE.has(code) }, { reply_to: replyTo, traceparent });
}

const RETRYABLE: ReadonlySet<FrameErrorCode> = new Set([
  'HELLO_TIMEOUT',
  'TOKEN_EXPIRED',
  'BACKPRESSURE',
  'RATE_LIMITED',
  'TARGET_UNAVAILABLE',
  'INTERNAL',
]);
