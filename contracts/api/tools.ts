import { z } from 'zod';
import { LIMITS } from '../limits.js';
import { AgentType, AnyId, InstanceId, JsonObject, ok } from '../primitives.js';
import { ADMIN, OWN, post, TENANT } from './operation.js';

const ToolName = z.string().min(1).max(256);
/** Selects the agent for a call. The agent must match all given members, and it must list the tool. */
const ToolTarget = z.object({
  instance_id: InstanceId.optional(),
  agent_type: AgentType.optional(),
  skill_id: z.string().min(1).max(256).optional(),
});

/** Payload of a `tool_call` frame from an agent. */
export const ToolCallPayload = z.object({
  tool: ToolName,
  arguments: JsonObject.default({}),
  target: ToolTarget.nullish(),
  /** What the call is part of, and ends with: a dispatch of the caller, or the `dispatch_id` of a tool call that it is answering. */
  dispatch_id: AnyId.nullish(),
  session_id: AnyId.nullish(),
  /** Milliseconds; by default the time left in the dispatch or call that it is part of, else one minute. */
  deadline_ms: z.int().min(1).max(LIMITS.deadlineMsMax).nullish(),
  /** A repeat with the same key in the same session, before the deadline, gets the same result. */
  idempotency_key: AnyId.nullish(),
});
export type ToolCallPayload = z.infer<typeof ToolCallPayload>;

/**
 * Payload of a `tool_call` frame to an agent. The frame's id is the UUID in `dispatch_id`. The agent's `tool_result`, or `error` for a failed
 * tool, has it in `in_reply_to`; so has the `error` CANCELED with which the platform cancels the call.
 */
export interface ToolDelivery {
  tool: string;
  arguments: Record<string, unknown>;
  /** `call_…`: the id of this call, for the `dispatch_id` of nested calls. */
  dispatch_id: string;
  session_id?: string;
  /** Milliseconds left at the time of sending. */
  deadline_ms: number;
  /** Made from the caller's key and its session: a repeat of the same call has the same. Without a key the id of the call. */
  idempotency_key: string;
  /** The caller as the platform authenticated it. `instance_id` is absent if the token stands for a type only. */
  caller: { agent_type: string; instance_id?: string };
}

const ToolError = z.object({
  code: z.string().min(1).max(64),
  message: z.string().max(4096).default(''),
  policy_id: z.string().max(200).optional(),
  /** Whether the same call may succeed later. */
  retryable: z.boolean().default(false),
  /** A human has approved the call, which then reached no agent or tool: a repeat passes without another question. */
  approved: z.literal(true).optional(),
});
/** Payload of a `tool_result` frame, and the response of `POST /tools/call`. */
export const ToolResult = z.discriminatedUnion('ok', [
  ok({ result: z.unknown() }),
  z.object({ ok: z.literal(false), error: ToolError }),
]);
export type ToolResult = z.infer<typeof ToolResult>;

/** Body of `POST /tools/call`, for agents without a socket. */
export const ToolCallRequest = z.strictObject({
  ...ToolCallPayload.shape,
  target: z.strictObject(ToolTarget.shape).nullish(),
  /** The calling agent; not needed with a `dispatch_id`. */
  instance_id: InstanceId.optional(),
});
export type ToolCallRequest = z.infer<typeof ToolCallRequest>;

/** A tool that agents of the tenant or the platform offer. */
const OfferedTool = z.object({
  name: z.string(),
  /** The types of the registered agents that offer it; empty for a tool of the platform. */
  offered_by: z.array(z.string()),
  source: z.enum(['agent', 'platform']),
  /** As the first of these types declares it, as is its schema. */
  description: z.string().optional(),
  input_schema: JsonObject.optional(),
  /** Changes when a type joins or leaves, and when one declares the tool otherwise: 64 hexadecimal digits. */
  digest: z.string(),
  /** The only types that may offer it, as `/tools/set_owner` says. */
  owners: z.array(z.string()).optional(),
});
export type OfferedTool = z.infer<typeof OfferedTool>;
const GetToolsResponse = ok({ tools: z.array(OfferedTool) });

const SetToolOwnerRequest = z.strictObject({
  tool: ToolName,
  /** Only these types may offer it; null: every type may. */
  agent_types: z.array(AgentType).max(100).nullable(),
});
const SetToolOwnerResponse = ok({ tool: z.string(), agent_types: z.array(z.string()).nullable() });

export const TOOL_OPERATIONS = {
  getTools: post('/tools/get', TENANT, 'List the tools that registered agents and the platform offer', {
    request: z.strictObject({}),
    response: GetToolsResponse,
    experimental: true,
  }),
  setToolOwner: post('/tools/set_owner', ADMIN, 'Say which agent types may offer a tool', {
    request: SetToolOwnerRequest,
    response: SetToolOwnerResponse,
    experimental: true,
  }),
  callTool: post(
    '/tools/call',
    OWN,
    'Call a tool of another agent, or of the platform, on behalf of an agent without a socket',
    { request: ToolCallRequest, response: ToolResult, experimental: true, othersNeed: 'full' },
  ),
};

/** The tools of the platform itself. An agent's tool of the same name can be called only with a `target`. */
export const PLATFORM_TOOLS = [
  'fleet.get_agents',
  'knowledge_base.query',
  'knowledge_base.ingest',
  'plan.create',
] as const;
export type PlatformToolName = (typeof PLATFORM_TOOLS)[number];

/** Arguments of `fleet.get_agents`: the available agents to list must match all given members. */
export const FleetGetAgentsArguments = z.strictObject({
  agent_type: AgentType.optional(),
  skill_id: z.string().min(1).max(256).optional(),
  tool: ToolName.optional(),
});
export type FleetGetAgentsArguments = z.infer<typeof FleetGetAgentsArguments>;
