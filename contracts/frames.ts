import { z } from 'zod';
import { A2aMessage, Task } from './a2a/a2a.js';
import { Artifact, Part } from './a2a/parts.js';
import { AgentCard, HeartbeatPayload, Skills, Tools } from './api/agents.js';
import { AgentInputRequest, Usage } from './api/messages.js';
import { ToolCallPayload, type ToolDelivery, ToolResult } from './api/tools.js';
import type { FrameErrorCode } from './errors.js';
import { LIMITS } from './limits.js';
import { AgentType, InstanceId, JsonObject, Reason } from './primitives.js';

export const SUBPROTOCOL = 'service.v1';
export const CONNECT_PATH = '/agents/connect';

/** The address of an agent's WebSocket. @param meshUrl `http(s)` address without a slash at the end */
export function connectUrl(meshUrl: string, instanceId: string): string {
  return `${meshUrl.replace(/^http/, 'ws')}${CONNECT_PATH}?instance_id=${encodeURIComponent(instanceId)}`;
}

/** The envelope of all frames. An unknown `type` gets the error `BAD_FRAME`; the socket stays open. */
export const FrameEnvelope = z.object({
  v: z.literal(1),
  type: z.string().min(1).max(64),
  id: z.uuid(),
  ts: z.iso.datetime({ offset: true }),
  in_reply_to: z.string().nullish(),
  trace_id: z.string().nullish(),
  parent_span_id: z.string().nullish(),
  payload: JsonObject,
});
export type FrameEnvelope = z.infer<typeof FrameEnvelope>;

export const HelloPayload = z.object({
  instance_id: InstanceId,
  agent_type: AgentType.optional(),
  agent_version: z.string().max(128).optional(),
  sdk_version: z.string().max(128).optional(),
  agent_card: AgentCard.optional(),
  skills: Skills.optional(),
  tools: Tools.optional(),
  max_concurrent_sessions: z.int().min(0).max(1_000_000).optional(),
  max_concurrent_tasks: z.int().min(0).max(1_000_000).optional(),
  current_sessions: z.int().min(0).optional(),
  resume_token: z.string().max(512).nullish(),
  inflight: z
    .array(z.object({ dispatch_id: z.string().max(200), last_seq: z.int().min(-1) }))
    .max(1_024)
    .optional(),
});
export type HelloPayload = z.infer<typeof HelloPayload>;

export interface WelcomePayload {
  connection_id: string;
  mesh_id: string;
  resumed: boolean;
  replayed_dispatches: string[];
  resume_token: string;
  resume_window_ms: number;
  heartbeat_interval_ms: number;
  ping_interval_ms: number;
  limits: { max_frame_bytes: number; max_inflight: number };
  server_time: string;
  /** When the platform closes the socket with TOKEN_EXPIRED. Before that, send a new token in `reauth`. */
  token_expires_at?: string;
  /** The platform takes `reauth` frames. Absent from an older one: reconnect with the new token and the `resume_token`. */
  reauth?: true;
  /** Where to resume on this very node, in the form of `connect_url`. Absent where the node has no address of its own. */
  resume_url?: string;
}

/** Answers `reauth`: when the socket closes with TOKEN_EXPIRED from now on. */
export interface ReauthOkPayload {
  token_expires_at: string;
}

/** The body of a dispatch: the payload of the `dispatch` frame, and the body of the POST to a hosted agent. */
export interface DispatchPayload {
  jsonrpc: '2.0';
  id: string;
  method: 'message/send' | 'message/stream';
  params: { message: A2aMessage; metadata?: Record<string, unknown>; configuration?: Record<string, unknown> };
  dispatch_id: string;
  skill_id?: string;
  /** `params.metadata.args`, if the caller gave it. */
  args?: Record<string, unknown>;
  /** Milliseconds left at the time of sending. */
  deadline_ms: number;
  attempt: number;
  idempotency_key: string;
  session_context: {
    session_id: string;
    tenant_id: string;
    user_id?: string;
    message_id: string;
    /** The `messageId` that the caller gave the message, up to 256 characters; unique only for that caller. */
    client_message_id: string;
    propagation_headers: { traceparent: string; tracestate?: string; baggage?: string };
  };
}

export const DispatchChunkPayload = z.object({
  seq: z.int().min(0),
  parts: z.array(Part).optional(),
  artifact: Artifact.optional(),
  append: z.boolean().optional(),
  status_text: z.string().optional(),
  last_chunk: z.boolean().optional(),
});
export type DispatchChunkPayload = z.infer<typeof DispatchChunkPayload>;

/** Text or any object. An object with the `kind` of a task or a message must be a valid one. */
const ResultContent = z
  .union([z.string(), JsonObject])
  .transform((result, context): Task | A2aMessage | string | Record<string, unknown> => {
    const kind = typeof result === 'object' ? result.kind : undefined;
    const schema = kind === 'task' ? AgentTask : kind === 'message' ? A2aMessage : undefined;
    if (!schema) return result;
    const { data, error } = schema.safeParse(result);
    for (const issue of error?.issues ?? []) context.issues.push({ ...issue, input: result } as z.core.$ZodRawIssue);
    return data ?? z.NEVER;
  });
/** A task of an agent; agents without contexts give no `contextId`. */
const AgentTask = Task.extend({ contextId: z.string().default('') });

export const DispatchResultPayload = z.object({
  result: ResultContent,
  status: z
    .object({ state: z.enum(['completed', 'input-required', 'failed']), input_request: AgentInputRequest.optional() })
    .optional(),
  usage: Usage.optional(),
  chunk_count: z.int().min(0).optional(),
});
export type DispatchResultPayload = z.infer<typeof DispatchResultPayload>;

/** Agents may use codes of their own. Where they are read, long codes and messages are cut. */
export const ErrorPayload = z.object({
  code: z.string(),
  message: z.string().default(''),
  retryable: z.boolean().default(false),
  details: z.unknown().optional(),
  /** The agent ends before it has finished: the dispatch counts as lost, so that one of an idempotent skill is repeated. */
  unfinished: z.boolean().optional(),
});
export type ErrorPayload = z.infer<typeof ErrorPayload>;
const PingPayload = z.object({ nonce: z.string().max(256).optional() });

/** Payload schemas of the frames that an agent may send. Unknown members are ignored. */
export const AGENT_FRAME_PAYLOADS = {
  hello: HelloPayload,
  dispatch_ack: z.object({ accepted_at: z.string().optional() }),
  dispatch_chunk: DispatchChunkPayload,
  dispatch_result: DispatchResultPayload,
  tool_call: ToolCallPayload,
  tool_result: ToolResult,
  heartbeat: HeartbeatPayload,
  ping: PingPayload,
  pong: PingPayload,
  error: ErrorPayload,
  reauth: z.object({ token: z.string().min(1).max(LIMITS.tokenChars) }),
  close_request: z.object({ grace_seconds: z.number().min(0).max(3600).default(30), reason: Reason }),
} as const;

/** The payloads of frames to agents. */
export interface PlatformPayloads {
  welcome: WelcomePayload;
  dispatch: DispatchPayload;
  tool_call: ToolDelivery;
  tool_result: ToolResult;
  ping: { nonce?: string };
  pong: { nonce?: string };
  error: { code: FrameErrorCode; message: string; retryable: boolean };
  close_request: { grace_seconds: number; reason?: string };
  reauth_ok: ReauthOkPayload;
}

/** Frames that only the platform sends. */
export type PlatformFrameType = Exclude<keyof PlatformPayloads, keyof typeof AGENT_FRAME_PAYLOADS>;
const ONLY_PLATFORM: Record<PlatformFrameType, true> = { welcome: true, dispatch: true, reauth_ok: true };
export const PLATFORM_FRAMES = Object.keys(ONLY_PLATFORM) as PlatformFrameType[];
export type FrameType = keyof typeof AGENT_FRAME_PAYLOADS | PlatformFrameType;
export const FRAME_TYPES: readonly string[] = [...Object.keys(AGENT_FRAME_PAYLOADS), ...PLATFORM_FRAMES];

/** The JSON types of agent content. A frame that fits only these fails its dispatch or call, not the socket. */
export const CONTENT_FRAME_SHAPES = {
  dispatch_chunk: DispatchChunkPayload.extend({
    parts: z.array(z.unknown()).optional(),
    artifact: JsonObject.optional(),
  }),
  dispatch_result: DispatchResultPayload.extend({
    result: z.union([z.string(), JsonObject]),
    status: JsonObject.optional(),
    usage: JsonObject.optional(),
  }),
  tool_call: ToolCallPayload,
  tool_result: z.object({ ok: z.boolean(), result: z.unknown().optional(), error: JsonObject.optional() }),
  error: ErrorPayload,
} as const;
export type ContentFrameType = keyof typeof CONTENT_FRAME_SHAPES;

/** Agent frames that reply to another frame and must have `in_reply_to`. */
export const REPLY_FRAMES: readonly string[] = [
  'dispatch_ack',
  'dispatch_chunk',
  'dispatch_result',
  'tool_result',
  'pong',
];
