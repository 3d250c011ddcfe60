import type { z } from 'zod';
import type { FrameErrorCode } from '../../contracts/errors.js';
import {
  AGENT_FRAME_PAYLOADS,
  CONTENT_FRAME_SHAPES,
  type ContentFrameType,
  type DispatchPayload,
  FRAME_TYPES,
  FrameEnvelope,
  type FrameType,
  REPLY_FRAMES,
  type WelcomePayload,
} from '../../contracts/frames.js';
import { jsonProblem, makeWellFormed, mayBeIllFormed, mayBeUnfit, nestsDeeper } from '../../contracts/json-guard.js';
import { LIMITS } from '../../contracts/limits.js';
import type { ToolDelivery, ToolResult } from '../../contracts/tools.js';
import { uuidv7 } from '../../runtime/ids.js';

type Payloads = { [Type in keyof typeof AGENT_FRAME_PAYLOADS]: z.infer<(typeof AGENT_FRAME_PAYLOADS)[Type]> };

/** What a frame from an agent says beside its payload. */
interface FrameHead {
  id: string;
  /** The frame that this one answers; '' where it answers none. */
  reply_to: string;
  /** Its trace context as a W3C header, where the envelope has a whole and valid one. */
  traceparent?: string;
}

/** A frame from an agent, checked. */
export type AgentFrame = {
  [Type in keyof Payloads]: FrameHead & { type: Type; payload: Payloads[Type] };
}[keyof Payloads];

/** A frame whose schema holds, but not its content: `problem` names the member (decisions.md, Dispatch bodies). */
export type UnfitFrame<Type extends ContentFrameType = ContentFrameType> = {
  [Each in Type]: FrameHead & { type: Each; problem: string };
}[Type];

/** A text message that is no frame. `reply_to` is what it would answer, where that can be read. */
export interface BadFrame {
  id?: string;
  reply_to: string;
  problem: string;
}

/** What a text message turned out to be. `bad` closes the socket, `unfit` and `unknown` do not (specification section 6). */
export type Inbound =
  | { kind: 'frame'; frame: AgentFrame }
  | { kind: 'unfit'; frame: UnfitFrame }
  | { kind: 'unknown'; id: string; type: string; traceparent?: string }
  | (BadFrame & { kind: 'bad' });

/** Parses and checks one text message. Never throws. */
export function parseFrame(text: string): Inbound {
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

function parsePayload({ type, payload, ...envelope }: FrameEnvelope, unfit: string | undefined): Inbound {
  const head = headOf(envelope);
  const { traceparent } = head;
  if (!isKnown(type)) return { kind: 'unknown', id: head.id, type, ...(traceparent && { traceparent }) };
  const bad = (problem: string): Inbound => ({ kind: 'bad', ...head, problem });
  if (REPLY_FRAMES.includes(type) && head.reply_to === '') return bad(`${type} needs in_reply_to.`);
  if (type === 'welcome' || type === 'dispatch') return bad(`An agent does not send ${type}.`);
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

/** What in a payload is not fit to be kept; its member is named. */
function problemIn(payload: Record<string, unknown>): string | undefined {
  for (const [name, member] of Object.entries(payload)) {
    const problem = jsonProblem(member, PAYLOAD_DEPTH + 1);
    if (problem) return `payload.${name.slice(0, 64).toWellFormed()} ${problem}`;
  }
  const problem = jsonProblem(payload, PAYLOAD_DEPTH);
  return problem && `payload ${problem}`;
}
/** How deep in a frame its payload is. */
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

function isKnown(type: string): type is FrameType {
  return (FRAME_TYPES as readonly string[]).includes(type);
}

/** What does not fit, the member's name first. */
export function describe(error: z.ZodError | undefined, prefix = ''): string {
  const first = error?.issues[0];
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

/** What an answer to a frame carries: the frame's own trace goes on in it. */
export function answerTo({ id, traceparent }: Pick<FrameHead, 'id' | 'traceparent'>): FrameContext {
  return { reply_to: id, ...(traceparent && { traceparent }) };
}

/** Why an agent's answer counts as its failure, as callers read it. */
export function unfitAnswer(problem: string): string {
  return `The agent's answer does not fit: ${problem}`;
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
 * @param traceparent of the work, or of the frame, that it is about
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
