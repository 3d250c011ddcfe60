import { z } from 'zod';
import { isObject } from '../json-guard.js';
import { LIMITS } from '../limits.js';
import { JsonObject, UserId } from '../primitives.js';
import { Artifact, Part } from './parts.js';

/** The versions of A2A that `/send` speaks, by major and minor. */
export const A2A_VERSIONS = ['0.3', '1.0'] as const;
export type A2aVersion = (typeof A2A_VERSIONS)[number];

/** States of a task on the wire (A2A 0.3). The platform's own record uses the first six. */
export const TaskState = z.enum([
  'submitted',
  'working',
  'input-required',
  'completed',
  'failed',
  'canceled',
  'rejected',
  'auth-required',
  'unknown',
]);
export type TaskState = z.infer<typeof TaskState>;

/** An A2A 0.3 message. Unknown members are ignored. */
export const A2aMessage = z.object({
  kind: z.literal('message'),
  messageId: z.string().min(1).max(256),
  role: z.enum(['user', 'agent']),
  parts: z.array(Part),
  contextId: z.string().optional(),
  taskId: z.string().optional(),
  referenceTaskIds: z.array(z.string()).optional(),
  extensions: z.array(z.string()).optional(),
  metadata: JsonObject.optional(),
});
export type A2aMessage = z.infer<typeof A2aMessage>;

const TaskStatus = z.object({ state: TaskState, message: A2aMessage.optional(), timestamp: z.string().optional() });
export type TaskStatus = z.infer<typeof TaskStatus>;

export const Task = z.object({
  kind: z.literal('task'),
  id: z.string(),
  contextId: z.string(),
  status: TaskStatus,
  artifacts: z.array(Artifact).optional(),
  history: z.array(A2aMessage).optional(),
  metadata: JsonObject.optional(),
});
export type Task = z.infer<typeof Task>;

export const StatusUpdate = z.object({
  kind: z.literal('status-update'),
  taskId: z.string(),
  contextId: z.string(),
  status: TaskStatus,
  final: z.boolean(),
  metadata: JsonObject.optional(),
});
export type StatusUpdate = z.infer<typeof StatusUpdate>;

export const ArtifactUpdate = z.object({
  kind: z.literal('artifact-update'),
  taskId: z.string(),
  contextId: z.string(),
  artifact: Artifact,
  append: z.boolean().optional(),
  lastChunk: z.boolean().optional(),
  metadata: JsonObject.optional(),
});
export type ArtifactUpdate = z.infer<typeof ArtifactUpdate>;

/** One event of a `message/stream` response; the first is the task. */
export type StreamEvent = Task | StatusUpdate | ArtifactUpdate;

const RpcId = z.union([z.string().max(256), z.number(), z.null()]);
export type RpcId = z.infer<typeof RpcId>;

/** The JSON-RPC 2.0 envelope of `/send`; `params` is checked per method. */
export const RpcRequest = z.object({
  jsonrpc: z.literal('2.0'),
  id: RpcId.optional(),
  method: z.string().min(1),
  params: z.unknown().optional(),
});

/** The response of `/send` as `/openapi.json` describes it. */
export const RpcResponse = z.object({
  jsonrpc: z.literal('2.0'),
  id: z.union([z.string(), z.number(), z.null()]),
  result: Task.optional(),
  error: z.object({ code: z.int(), message: z.string(), data: z.unknown().optional() }).optional(),
});

/** Media types that the caller accepts. */
export const AcceptedOutputModes = z.array(z.string().max(128)).max(64);

/** Why a message is refused that came through too many agents. */
export const TOO_MANY_HOPS = `the message came through ${LIMITS.messageHopsMax} agents: do they send to each other in a loop?`;

/** The members of `params.metadata` that the platform uses. Other members pass through. */
export const SendMetadata = z.looseObject({
  instance_id: z.string().min(1).max(128).optional(),
  agent_type: z.string().min(1).max(128).optional(),
  skill_id: z.string().min(1).max(256).optional(),
  /** An instance; if there is none of that id, an agent type. */
  target_agent: z.string().min(1).max(128).optional(),
  /** The end user that the message is sent for; that of its session, where that has one. */
  user_id: UserId.optional(),
  deadline_ms: z.int().min(1).max(LIMITS.deadlineMsMax).optional(),
  /** How long the message waits for an agent, in milliseconds; without it as long as `deadline_ms` while one is online, else `QUEUE_WAIT_MS`. */
  queue_wait_ms: z.int().min(1).max(LIMITS.deadlineMsMax).optional(),
  /** The arguments of the skill; dispatches have them beside `skill_id`. */
  args: JsonObject.optional(),
  /** How many agents it came through, so that those which send to each other in a loop come to an end. Of an agent's message the platform knows a least number. */
  hops: z.int().min(0).max(LIMITS.messageHopsMax, TOO_MANY_HOPS).optional(),
  /** As `configuration.acceptedOutputModes`, which takes precedence. Stored here, sent to the agent there. */
  accepted_output_modes: AcceptedOutputModes.optional(),
});

export type SendMetadata = z.infer<typeof SendMetadata>;

/** How A2A 1.0 would write members that name an agent or a user; both spellings count. */
const SPELLINGS: Readonly<Record<string, string>> = {
  agentType: 'agent_type',
  instanceId: 'instance_id',
  skillId: 'skill_id',
  targetAgent: 'target_agent',
  userId: 'user_id',
};
/** Members by which callers of other platforms name an agent. Ignored, they would let the default agent answer. */
const NOT_MEMBERS = ['agent', 'target', 'type'];

/** Metadata with the platform's spelling of its members. Both spellings of a member have to say the same. */
function snakeNames(value: unknown, context: z.RefinementCtx): unknown {
  if (!isObject(value)) return value;
  const found = Object.keys(SPELLINGS).filter((spelling) => spelling in value);
  if (found.length === 0) return value;
  const { ...named } = value;
  for (const spelling of found) {
    const name = SPELLINGS[spelling] ?? spelling;
    if (name in named && named[name] !== named[spelling])
      context.addIssue({ code: 'custom', path: [spelling], message: `is another than ${name}; give one of them` });
    named[name] = named[spelling];
    delete named[spelling];
  }
  return named;
}

/** The same, for metadata of a call, which may not name its agent by other members. */
function routingNames(value: unknown, context: z.RefinementCtx): unknown {
  const wrong = isObject(value) ? NOT_MEMBERS.find((name) => name in value) : undefined;
  if (wrong !== undefined) {
    const message = 'names no agent: use agent_type, instance_id, skill_id or target_agent';
    context.addIssue({ code: 'custom', path: [wrong], message });
  }
  return snakeNames(value, context);
}

/** `metadata` of a message that is sent, which may name its agent too. */
export const MessageMetadata = z.preprocess(snakeNames, JsonObject);

/** Limits of push-notification configs. */
export const PUSH_LIMITS = { configsPerTask: 16, urlChars: 2_048, idChars: 128, secretChars: 4_096, schemes: 8 };

/** Text that can be sent in an HTTP header unchanged: visible ASCII and spaces. */
const headerText = (maxChars: number) =>
  z
    .string()
    .max(maxChars)
    .regex(/^[\x20-\x7e]*$/, 'must be printable ASCII')
    .optional();
/** RFC 9110, section 11.1: an authentication scheme is a token. */
const Scheme = z
  .string()
  .max(64)
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, 'must be an HTTP authentication scheme');

/** Where to notify about a task, as in A2A 0.3. An empty `id`, `token` or `credentials` is absent; of `schemes` the first is used. */
export const PushNotificationConfig = z.object({
  id: headerText(PUSH_LIMITS.idChars),
  url: z.string().min(1).max(PUSH_LIMITS.urlChars),
  token: headerText(PUSH_LIMITS.secretChars),
  authentication: z
    .object({
      schemes: z.array(Scheme).min(1).max(PUSH_LIMITS.schemes),
      credentials: headerText(PUSH_LIMITS.secretChars),
    })
    .optional(),
});
export type PushNotificationConfig = z.infer<typeof PushNotificationConfig>;

/** `params` of `message/send` and `message/stream` in A2A 0.3. */
export const MessageSendParams = z.object({
  message: A2aMessage.extend({ metadata: MessageMetadata.optional() }),
  configuration: z
    .object({
      blocking: z.boolean().optional(),
      historyLength: z.int().min(0).optional(),
      acceptedOutputModes: AcceptedOutputModes.optional(),
      pushNotificationConfig: PushNotificationConfig.optional(),
    })
    .optional(),
  metadata: z.preprocess(routingNames, SendMetadata).optional(),
});
export type MessageSendParams = z.infer<typeof MessageSendParams>;

const TaskId = z.string().min(1);

/** `params` of `tasks/get` in A2A 0.3. */
export const TaskQueryParams = z.object({ id: TaskId, historyLength: z.int().min(0).optional() });

/** `params` of `tasks/cancel` and `tasks/resubscribe` in A2A 0.3. */
export const TaskIdParams = z.object({ id: TaskId });

/** `params` of `tasks/pushNotificationConfig/set` in A2A 0.3, and the result of it and of `get`. */
export const TaskPushNotificationConfig = z.object({ taskId: TaskId, pushNotificationConfig: PushNotificationConfig });
export type TaskPushNotificationConfig = z.infer<typeof TaskPushNotificationConfig>;

/** `params` of `tasks/pushNotificationConfig/get` in A2A 0.3; without an id, the config with the task's id or the oldest. */
export const GetPushConfigParams = z.object({ id: TaskId, pushNotificationConfigId: z.string().nullish() });
/** `params` of `tasks/pushNotificationConfig/delete` in A2A 0.3. */
export const DeletePushConfigParams = z.object({ id: TaskId, pushNotificationConfigId: z.string().min(1) });
