import { z } from 'zod';
import { A2aMessage, RpcRequest, RpcResponse, Task } from '../a2a/a2a.js';
import { Artifact, Part } from '../a2a/parts.js';
import { LIMITS } from '../limits.js';
import { MESSAGE_STATES } from '../message-states.js';
import {
  AgentType,
  AnyId,
  cursorFields,
  Instant,
  JsonObject,
  ofSender,
  ok,
  okCursorPage,
  Principal,
  Reason,
  Timestamp,
  within,
} from '../primitives.js';
import { CONFLICT, EXTENSION, OWN, post, TENANT } from './operation.js';

/** Lifecycle states of a message. */
const MessageState = z.enum(MESSAGE_STATES);
export type MessageState = z.infer<typeof MessageState>;

const InputField = z.object({
  id: z.string().min(1).max(128),
  type: z.string().max(64),
  label: z.string().max(1024).optional(),
  options: z.array(z.unknown()).max(200).optional(),
});

/** The input request of an agent. */
export const AgentInputRequest = z.object({
  kind: z.enum(['approval', 'form', 'confirmation']).optional(),
  title: z.string().max(512).optional(),
  prompt: z.string().max(16_384).optional(),
  schema: JsonObject.optional(),
  fields: z.array(InputField).max(100).optional(),
  tool: z.string().max(256).optional(),
  arguments: JsonObject.optional(),
});
export type AgentInputRequest = z.infer<typeof AgentInputRequest>;

/** Who makes a tool call: the agents of a type, or the platform. */
export const Executor = z.object({ type: z.enum(['agent', 'platform']), id: z.string() });
export type Executor = z.infer<typeof Executor>;

export const InputRequest = z.object({
  request_id: z.string(),
  kind: z.enum(['approval', 'form', 'confirmation']),
  source: z.enum(['policy', 'guard', 'agent', 'plan']),
  title: z.string(),
  prompt: z.string(),
  schema: JsonObject.optional(),
  fields: z.array(InputField).optional(),
  tool: z.string().optional(),
  arguments: JsonObject.optional(),
  /** Of a tool call that names whose tool it wants. */
  target: z.object({ instance_id: z.string(), agent_type: z.string(), skill_id: z.string() }).partial().optional(),
  /** Of a tool call: who makes it, which the digest covers. Of an agent's tool the `id` is the agent's type. */
  executor: Executor.optional(),
  /** What is asked, in 64 hexadecimal digits: another when an approver edits the arguments. `digest` of `/messages/{id}/resolve`. */
  digest: z.string().optional(),
  policy_id: z.string().optional(),
  guard: z.string().optional(),
  approvers: z.array(z.string()).optional(),
  quorum: z.int(),
  approvals: z.array(
    z.object({ principal: z.string(), resolution: z.string(), comment: z.string().optional(), at: Timestamp }),
  ),
  requested_at: Timestamp,
  expires_at: Timestamp,
});
export type InputRequest = z.infer<typeof InputRequest>;

/** What came of an approved request. `expired`: nothing has used the approval. */
export const RequestOutcome = z.object({
  state: z.enum(['pending', 'succeeded', 'failed', 'expired']),
  error_code: z.string().optional(),
  at: Timestamp.optional(),
});
export type RequestOutcome = z.infer<typeof RequestOutcome>;

/** What an agent reports of one turn. */
export const Usage = z.object({
  input_tokens: z.int().min(0),
  output_tokens: z.int().min(0),
  model: z.string().max(256).optional(),
  cost_usd: z.number().min(0).optional(),
});
export type Usage = z.infer<typeof Usage>;

/** The usage of a message: the sums of its turns, and the model of the newest. */
export const MessageUsage = Usage.extend({
  /** What each model used. Absent while there is one. */
  by_model: z.array(Usage).max(LIMITS.messageModelsMax).optional(),
});
export type MessageUsage = z.infer<typeof MessageUsage>;

/** What a message at rest waits for. */
export const WaitsFor = z.object({
  /** `agent`: none of its target is online. `room`: all that are online are full. `quota`: agents have as many messages of the tenant as they may. `turn`: in an ordered session another comes first. */
  kind: z.enum(['agent', 'room', 'turn', 'evaluator', 'quota', 'person']),
  target: z.object({ agent_type: z.string(), instance_id: z.string(), skill_id: z.string() }).partial().optional(),
  since: Timestamp,
  /** Messages in the same queue that come first, counted up to 10,000. */
  ahead: z.int().optional(),
  online: z.boolean().optional(),
});
export type WaitsFor = z.infer<typeof WaitsFor>;

/** A message in the responses of `/messages/*`; `task_data` is the whole A2A task. */
export const MessageRecord = z.object({
  message_id: z.string(),
  session_id: z.string(),
  tenant_id: z.string(),
  /** `agent` if an agent sent the message. */
  role: z.enum(['user', 'agent']),
  state: MessageState,
  created_at: Timestamp,
  updated_at: Timestamp,
  started_at: Timestamp.optional(),
  completed_at: Timestamp.optional(),
  duration_ms: z.int().optional(),
  user_input: z.string(),
  assistant_output: z.string(),
  preview: z.string(),
  parts: z.array(Part),
  artifacts: z.array(Artifact),
  attachments: z.array(Part),
  instance_id: z.string().nullable(),
  agent_type: z.string().nullable(),
  root_agent: z.string().nullable(),
  user_id: z.string().optional(),
  sent_by: Principal,
  /** The `messageId` that it was sent with. */
  client_message_id: z.string(),
  trace_id: z.string(),
  /** The message that this one repeats (`/messages/retry`). */
  retry_of: z.string().optional(),
  usage: MessageUsage.optional(),
  error: z.object({ code: z.string(), message: z.string() }).optional(),
  error_message: z.string().optional(),
  input_request: InputRequest.optional(),
  /** In `/messages/get_by_id`, and in lists of messages that wait (there without `ahead`). */
  waits_for: WaitsFor.optional(),
  task_data: Task,
  /** In a list: the page has no room for the message's content. `/messages/get_by_id` has it. */
  truncated: z.literal(true).optional(),
});
export type MessageRecord = z.infer<typeof MessageRecord>;

/** How long a message has waited at least, in milliseconds. */
const waited_ms = z.int().min(0).max(Number.MAX_SAFE_INTEGER).optional();

export const MessagesGetRequest = z
  .strictObject({
    session_id: AnyId.optional(),
    state: MessageState.optional(),
    agent_type: AgentType.optional(),
    instance_id: AnyId.optional(),
    /** As in `error.code` of the message. */
    error_code: z.string().min(1).max(64).optional(),
    /** Accepted at or after this time. */
    since: Instant.optional(),
    /** Accepted before this time. */
    until: Instant.optional(),
    ...ofSender,
    client_message_id: A2aMessage.shape.messageId.optional(),
    /** Words of what was sent, of the answer or of the error. `count` is what was found so far. */
    text: z.string().min(1).max(256).optional(),
    /** Only messages that wait for this, those that have waited longest first. */
    waits_for: WaitsFor.shape.kind.optional(),
    /** Only messages that have waited for so many milliseconds at least, those that have waited longest first. */
    waited_ms,
    ...cursorFields,
  })
  .refine(({ page, cursor, text, waits_for, waited_ms: waited }) => {
    const isByCursor = [cursor, text, waits_for, waited].some((given) => given !== undefined);
    return page === 1 || !isByCursor;
  }, 'cursor, text, waits_for and waited_ms go with no page: go on by next_cursor');
export type MessagesGetRequest = z.infer<typeof MessagesGetRequest>;
/** With `text` a page may have few messages, or none, and a `next_cursor`. */
export const MessagesGetResponse = okCursorPage({ messages: z.array(MessageRecord) });
export const MessageGetByIdResponse = ok({ message: MessageRecord });
export const MessageCancelResponse = ok({ message_id: z.string() });
const MessageRetryRequest = z.strictObject({
  message_id: AnyId,
  /** Repeats with the same key give the same message. */
  idempotency_key: z.string().min(1).max(128).optional(),
  /** An agent may have acted on the message, and it is sent again all the same. */
  confirm: z.boolean().optional(),
});
const MessageRetryResponse = ok({ message_id: z.string(), session_id: z.string(), retry_of: z.string() });
const MessagesPendingRequest = z.strictObject({
  session_id: AnyId.optional(),
  ...ofSender,
  limit: z.int().min(1).max(100).default(50),
  offset: z.int().min(0).max(1_000_000).default(0),
});
export const MessagesPendingResponse = ok({ messages: z.array(MessageRecord), total: z.int() });

const MessageGroupsRequest = z.strictObject({
  by: z.enum(['error_code', 'waits_for', 'agent_type']),
  /** By default messages that failed (`error_code`), or that are not over (`waits_for`, `agent_type`). */
  state: MessageState.optional(),
  /** Accepted at or after this time. */
  since: Instant.optional(),
  /** Of messages that wait (`waits_for`): only those that have waited for so many milliseconds at least. */
  waited_ms,
});
export type MessageGroupsRequest = z.infer<typeof MessageGroupsRequest>;
const MessageGroup = z.object({
  /** An error code; a `waits_for.kind`; a type, or '' for messages that name none. */
  key: z.string(),
  count: z.int(),
  oldest_at: Timestamp,
  newest_at: Timestamp,
  /** The newest of them. */
  sample_message_id: z.string(),
});
export type MessageGroup = z.infer<typeof MessageGroup>;
const MessageGroupsResponse = ok({ groups: z.array(MessageGroup) });

const MessageRatesRequest = z.strictObject({
  /** How many hours: this one and those before it. */
  hours: z.int().min(1).max(48).default(24),
});
const MessageRates = z.object({
  /** When it began. */
  hour: Timestamp,
  /** Messages that were accepted in it. */
  accepted: z.int(),
  /** How many of them failed, counted up to 10,000. */
  failed: z.int(),
  /** From acceptance to answer, in milliseconds, of those that completed among the newest 500; null without any. */
  latency_ms: z.object({ p50: z.number().nullable(), p95: z.number().nullable() }),
});
export type MessageRates = z.infer<typeof MessageRates>;
const MessageRatesResponse = ok({ hours: z.array(MessageRates) });

/** Body of `/messages/{id}/resolve`. `resolution` is a word or an object of field values. */
export const ResolveRequest = z.strictObject({
  resolution: z.union([z.string().min(1).max(64), JsonObject]),
  request_id: AnyId.optional(),
  callback_token: z.string().min(1).max(512).optional(),
  comment: z.string().max(4096).optional(),
  data: JsonObject.optional(),
  /** Of a tool call: the arguments that are approved in place of those that were asked about. */
  arguments: within(LIMITS.toolArgumentsBytes, JsonObject).optional(),
  /** Of the request as it was seen: 409 `CONFLICT` where another approver has edited the arguments since. */
  digest: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
});
export type ResolveRequest = z.infer<typeof ResolveRequest>;
export const ResolveResponse = ok({
  /** The id in the path, also where it is that of a plan. */
  message_id: z.string(),
  plan_id: z.string().optional(),
  /** Of a plan: `working` when it runs, `failed` when it is rejected. */
  new_state: MessageState,
  resolution: z.union([z.string(), JsonObject]),
});

export const MESSAGE_OPERATIONS = {
  send: post('/send', OWN, 'A2A 0.3 and 1.0 over JSON-RPC, by A2A-Version; streams are server-sent events', {
    request: RpcRequest,
    response: RpcResponse,
    a2aVersions: true,
    stream: 'both',
  }),
  sendToType: post('/a2a/:agent_type', OWN, '/send for the agents of one type: an A2A address of their own', {
    request: RpcRequest,
    response: RpcResponse,
    a2aVersions: true,
    stream: 'both',
    ...EXTENSION,
  }),
  getMessages: post('/messages/get', OWN, 'List messages', {
    request: MessagesGetRequest,
    response: MessagesGetResponse,
  }),
  getMessage: post('/messages/get_by_id', OWN, 'Read a message', {
    request: z.strictObject({ message_id: AnyId }),
    response: MessageGetByIdResponse,
  }),
  cancelMessage: post('/messages/cancel', OWN, 'Cancel a message', {
    request: z.strictObject({ message_id: AnyId, reason: Reason }),
    response: MessageCancelResponse,
    ...CONFLICT,
  }),
  retryMessage: post('/messages/retry', OWN, 'Send a message that failed or was canceled again', {
    request: MessageRetryRequest,
    response: MessageRetryResponse,
    ...CONFLICT,
    ...EXTENSION,
  }),
  pendingMessages: post('/messages/pending', TENANT, 'Messages that wait for a human', {
    request: MessagesPendingRequest,
    response: MessagesPendingResponse,
  }),
  getMessageGroups: post(
    '/messages/get_groups',
    TENANT,
    'Count messages that are stuck or failed, by what they have in common',
    {
      request: MessageGroupsRequest,
      response: MessageGroupsResponse,
      ...EXTENSION,
    },
  ),
  getMessageRates: post(
    '/messages/get_rates',
    TENANT,
    'Messages of each hour: accepted, failed, and how long they took',
    {
      request: MessageRatesRequest,
      response: MessageRatesResponse,
      ...EXTENSION,
    },
  ),
  resolveMessage: post(
    '/messages/:id/resolve',
    { access: 'optional', agents: 'forbidden' },
    'Answer what a message waits for',
    { request: ResolveRequest, response: ResolveResponse, statuses: [409, 410] },
  ),
};
