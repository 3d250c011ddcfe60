import { z } from 'zod';
import { LIMITS } from './limits.js';
import { AgentType, AnyId, InstanceId } from './primitives.js';

const ToolName = z.string().min(1).max(256);
/** Which agent a call is for; what is given must all hold. It must list the tool whatever is given. */
const ToolTarget = z.object({
  instance_id: InstanceId.optional(),
  agent_type: AgentType.optional(),
  skill_id: z.string().min(1).max(256).optional(),
});

const callFields = {
  tool: ToolName,
  arguments: z.record(z.string(), z.unknown()).default({}),
  target: ToolTarget.nullish(),
  /**
   * The work that the call is part of: a dispatch of the caller's own, or a tool call that it is answering (the `dispatch_id` which
   * that brought). The call ends with it, and has no more time than it.
   */
  dispatch_id: AnyId.nullish(),
  session_id: AnyId.nullish(),
  /** Milliseconds; by default what is left of the work that it is part of, else one minute. */
  deadline_ms: z.int().min(1).max(LIMITS.deadlineMsMax).nullish(),
  /** A repeat under the same key within the call's life is answered with the same result. */
  idempotency_key: AnyId.nullish(),
};

/** Payload of a `tool_call` frame from an agent (decisions.md, WebSocket: ToolCall). */
export const ToolCallPayload = z.object(callFields);
export type ToolCallPayload = z.infer<typeof ToolCallPayload>;

/**
 * Payload of a `tool_call` frame to an agent. The frame's id is the UUID of `dispatch_id`; the `tool_result`, or the `error` of a tool
 * that failed, carries it in `in_reply_to`, and so does the `error` CANCELED when the answer is not wanted any more.
 */
export interface ToolDelivery {
  tool: string;
  arguments: Record<string, unknown>;
  /** `call_…`: this call; to be named in calls that are made on its behalf. */
  dispatch_id: string;
  session_id?: string;
  /** Milliseconds left at the time of sending. */
  deadline_ms: number;
  /** As the caller gave it; else the call's own id. */
  idempotency_key: string;
  /** Who calls, as the platform knows it. `instance_id` is absent where a token stands for a type only. */
  caller: { agent_type: string; instance_id?: string };
}

const ToolFailure = z.object({
  ok: z.literal(false),
  error: z.object({
    code: z.string().min(1).max(64),
    message: z.string().max(4096).default(''),
    policy_id: z.string().max(200).optional(),
    /** Whether the same call may succeed a little later. */
    retryable: z.boolean().default(false),
  }),
});
/** Payload of a `tool_result` frame, and the answer of `POST /tools/call` (decisions.md, WebSocket: ToolResult). */
export const ToolResult = z.discriminatedUnion('ok', [
  z.object({ ok: z.literal(true), result: z.unknown() }),
  ToolFailure,
]);
export type ToolResult = z.infer<typeof ToolResult>;

/** Body of `POST /tools/call`, for agents without a socket (decisions.md, WebSocket: Extension for hosted agents). */
export const ToolCallRequest = z.strictObject({
  ...callFields,
  target: z.strictObject(ToolTarget.shape).nullish(),
  /** Which of the token's agents calls; told by `dispatch_id` where that is given. */
  instance_id: InstanceId.optional(),
});
export type ToolCallRequest = z.infer<typeof ToolCallRequest>;

/** Tools of the platform's own. An agent's tool of the same name is reached by a `target` only. */
export const PLATFORM_TOOLS = ['fleet.get_agents', 'knowledge_base.query'] as const;
export type PlatformToolName = (typeof PLATFORM_TOOLS)[number];

/** Arguments of `fleet.get_agents`: which available agents to list; what is given must all hold. */
export const FleetGetAgentsArguments = z.strictObject({
  agent_type: AgentType.optional(),
  skill_id: z.string().min(1).max(256).optional(),
  tool: ToolName.optional(),
});
export type FleetGetAgentsArguments = z.infer<typeof FleetGetAgentsArguments>;
