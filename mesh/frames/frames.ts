import type { z } from 'zod';
import type { FrameErrorCode } from '../../contracts/errors.js';
import {
  AGENT_FRAME_PAYLOADS,
  CONTENT_FRAME_SHAPES,
  type ContentFrameType,
  FRAME_TYPES,
  FrameEnvelope,
  type FrameType,
  PLATFORM_FRAMES,
  type PlatformFrameType,
  type PlatformPayloads,
  REPLY_FRAMES,
} from '../../contracts/frames.js';
import { jsonProblem, makeWellFormed, mayBeIllFormed, mayBeUnfit, nestsDeeper } from '../../contracts/json-guard.js';
import { LIMITS } from '../../contracts/limits.js';
import { uuidv7 } from '../../runtime/ids.js';

type Payloads = { [Type in keyof typeof AGENT_FRAME_PAYLOADS]: z.infer<(typeof AGENT_FRAME_PAYLOADS)[Type]> };

/** The fields of a frame from an agent beside its payload. */
interface FrameHead {
  id: string;
  /** The frame that this one answers; '' when it answers none. */
  reply_to: string;
  /** Trace context as a W3C header, when the envelope has a complete and valid one. */
  traceparent?: string;
}

/** A validated frame from an agent. */
export type AgentFrame = {
  [Type in keyof Payloads]: FrameHead & { type: Type; payload: Payloads[Type] };
}[keyof Payloads];

/** A frame whose envelope fits its schema while its content does not; `problem` names the member. */
export type UnfitFrame<Type extends ContentFrameType = ContentFrameType> = {
  [Each in Type]: FrameHead & { type: Each; problem: string };
}[Type];

/** A text message that is not a valid frame. `reply_to` is the frame that it answers, when that can be read. */
export interface BadFrame {
  id?: string;
  reply_to: string;
  problem: string;
}

/** A parsed text message. `bad` closes the socket, `unfit` and `unknown` do not. */
export type ParsedFrame =
  | { kind: 'frame'; frame: AgentFrame }
  | { kind: 'unfit'; frame: UnfitFrame }
  | { kind: 'unknown'; id: string; type: string; traceparent?: string }
  | (BadFrame & { kind: 'bad' });

/** Parses and validates one text message. Never throws. */
export function parseFrame(text: string): ParsedFrame {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return { kind: 'bad', reply_to: '', problem: 'The frame is not JSON.' };
  }
  const envelope = FrameEnvelope.safeParse(json);
  if (!envelope.success) return { kind: 'bad', reply_to: replyToOf(json), problem: describe(envelope.error) };
  let unfit: string | undefined;
  if (mayBeUnfit(text) || nestsDeeper(text, LIMITS.jsonDepth)) {
    const { payload, ...outside } = json as FrameEnvelope;
    const broken = jsonProblem(outside);
    if (broken) return { kind: 'bad', ...headOf(envelope.data), problem: `The frame ${broken}.` };
    unfit = problemIn(payload);
  }
  // A chunk may end inside a surrogate pair that the next one completes.
  if (!unfit && envelope.data.type !== 'dispatch_chunk' && mayBeIllFormed(text)) makeWellFormed(envelope.data.payload);
  return parsePayload(envelope.data, unfit);
}

function parsePayload({ type, payload, ...envelope }: FrameEnvelope, unfit: string | undefined): ParsedFrame {
  const head = headOf(envelope);
  const { traceparent } = head;
  if (!isKnown(type)) return { kind: 'unknown', id: head.id, type, ...(traceparent && { traceparent }) };
  const bad = (problem: string): ParsedFrame => ({ kind: 'bad', ...head, problem });
  if (REPLY_FRAMES.includes(type) && head.reply_to === '') return bad(`${type} needs in_reply_to.`);
  if (isOfPlatform(type)) return bad(`An agent does not send ${type}.`);
  if (unfit && !carriesContent(type)) return bad(unfit);
  const read = unfit === undefined ? AGENT_FRAME_PAYLOADS[type].safeParse(payload) : undefined;
  if (read?.success) return { kind: 'frame', frame: { ...head, type, payload: read.data } as AgentFrame };
  const problem = unfit ?? describe(read?.error, 'payload.');
  if (!carriesContent(type)) return bad(problem);
  const shape = CONTENT_FRAME_SHAPES[type].safeParse(payload);
  return shape.success
    ? { kind: 'unfit', frame: { ...head, type, problem } as UnfitFrame }
    : bad(describe(shape.error, 'payload.'));
}

function headOf(envelope: Omit<FrameEnvelope, 'type' | 'payload'>): FrameHead {
  const traceparent = traceparentOf(envelope);
  return { id: envelope.id, reply_to: envelope.in_reply_to ?? '', ...(traceparent && { traceparent }) };
}

/** Why a payload cannot be stored; it names the member. */
function problemIn(payload: Record<string, unknown>): string | undefined {
  for (const [name, member] of Object.entries(payload)) {
    const problem = jsonProblem(member, PAYLOAD_DEPTH + 1);
    if (problem) return `payload.${name.slice(0, 64).toWellFormed()} ${problem}`;
  }
  const problem = jsonProblem(payload, PAYLOAD_DEPTH);
  return problem && `payload ${problem}`;
}
/** Nesting depth of the payload in a frame. */
const PAYLOAD_DEPTH = 2;

function replyToOf(json: unknown): string {
  const replyTo = (json as { in_reply_to?: unknown } | null)?.in_reply_to;
  return typeof replyTo === 'string' ? replyTo : '';
}

const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-01$/;

function traceparentOf({ trace_id, parent_span_id }: Partial<FrameEnvelope>): string | undefined {
  if (!trace_id || !parent_span_id) return undefined;
  const traceparent = `00-${trace_id}-${parent_span_id}-01`;
  return TRACEPARENT.test(traceparent) ? traceparent : undefined;
}

function carriesContent(type: FrameType): type is ContentFrameType {
  return type in CONTENT_FRAME_SHAPES;
}

function isOfPlatform(type: FrameType): type is PlatformFrameType {
  return (PLATFORM_FRAMES as readonly string[]).includes(type);
}

function isKnown(type: string): type is FrameType {
  return FRAME_TYPES.includes(type);
}

/** The first problem of a schema, with the member's name first. */
export function describe(error: z.ZodError | undefined, prefix = ''): string {
  const first = error?.issues[0];
  return `${prefix}${first?.path.join('.') || 'frame'}: ${first?.message ?? 'does not fit'}`.slice(0, 500);
}

/**
 * The fields of a frame to an agent beside its payload. Only dispatches and tool calls bring an `id`; a dispatch keeps
 * it when it is sent again.
 */
export interface FrameContext {
  id?: string;
  reply_to?: string;
  /** W3C header of the work that the frame is about. */
  traceparent?: string;
}

/** The context of an answer to a frame; it continues the frame's trace. */
export function answerTo({ id, traceparent }: Pick<FrameHead, 'id' | 'traceparent'>): FrameContext {
  return { reply_to: id, ...(traceparent && { traceparent }) };
}

/** Error message, as callers read it, of an answer that does not fit. */
export function unfitAnswer(problem: string): string {
  return `The agent's answer does not fit: ${problem}`;
}

/** Encodes a frame of the mesh. */
export function encodeFrame<Type extends keyof PlatformPayloads>(
  type: Type,
  payload: PlatformPayloads[Type],
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
 * Encodes an `error` frame. `retryable` is set for codes that a later attempt may not meet.
 * @param traceparent of the work or the frame that it is about
 */
export function errorFrame(code: FrameErrorCode, message: string, replyTo?: string, traceparent?: string): string {
  return encodeFrame('error', { code, message, retryable: RETRYABLE.has(code) }, { reply_to: replyTo, traceparent });
}

const RETRYABLE: ReadonlySet<FrameErrorCode> = new Set([
  'HELLO_TIMEOUT',
  'TOKEN_EXPIRED',
  'BACKPRESSURE',
  'RATE_LIMITED',
  'INTERNAL',
]);
