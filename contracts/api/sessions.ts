import { z } from 'zod';
import { LIMITS } from '../limits.js';
import {
  AgentType,
  AnyId,
  cursorFields,
  InstanceId,
  Instant,
  isOneWay,
  JsonObject,
  Metadata,
  ONE_WAY,
  ofSender,
  ok,
  okCursorPage,
  Principal,
  Reason,
  Timestamp,
  UserId,
} from '../primitives.js';
import { CONFLICT, EXTENSION, OWN, post, TENANT } from './operation.js';

/** `paused`: a message waits for human input; `completed`: closed; `expired`: idle for too long. */
const SessionStatus = z.enum(['active', 'paused', 'completed', 'expired']);

export const SessionSummary = z.object({
  session_id: z.string(),
  tenant_id: z.string(),
  user_id: z.string().nullable(),
  sent_by: Principal,
  status: SessionStatus,
  total_turns: z.int(),
  total_tokens: z.int(),
  created_at: Timestamp,
  ended_at: Timestamp.nullable(),
});
export type SessionSummary = z.infer<typeof SessionSummary>;

const SessionAgent = z.object({
  agent_type: z.string(),
  instance_id: z.string(),
  joined_at: Timestamp,
  join_reason: z.string(),
});
export type SessionAgent = z.infer<typeof SessionAgent>;
export const SessionDetails = SessionSummary.extend({
  metadata: JsonObject,
  ordered: z.boolean(),
  agents: z.array(SessionAgent),
});
export type SessionDetails = z.infer<typeof SessionDetails>;

const SessionInitRequest = z.strictObject({
  instance_id: InstanceId.optional(),
  agent_type: AgentType.optional(),
  user_id: UserId.optional(),
  metadata: Metadata.optional(),
  /** Its messages reach their agent one after the other, in the order of their acceptance. */
  ordered: z.boolean().optional(),
  /** It counts on its agent until it ends, except while it is paused; without it only while a message is with the agent. */
  reserve: z.boolean().optional(),
  idle_timeout_seconds: z.int().min(0).max(LIMITS.idleTimeoutSecondsMax).default(LIMITS.idleTimeoutSecondsDefault),
});
export type SessionInitRequest = z.infer<typeof SessionInitRequest>;
export const SessionInitResponse = ok({
  session_id: z.string(),
  instance_id: z.string().nullable(),
  agent_type: z.string().nullable(),
  session: SessionSummary,
});

export const SessionsGetRequest = z
  .strictObject({
    status: SessionStatus.optional(),
    /** An agent of this type is or was in them. */
    agent_type: AgentType.optional(),
    /** Opened at or after this time. */
    since: Instant.optional(),
    /** Opened before this time. */
    until: Instant.optional(),
    ...ofSender,
    ...cursorFields,
  })
  .refine(isOneWay, ONE_WAY);
export type SessionsGetRequest = z.infer<typeof SessionsGetRequest>;
export const SessionsGetResponse = okCursorPage({ sessions: z.array(SessionSummary) });
export const SessionGetByIdResponse = ok({ session: SessionDetails });
export const SessionCloseResponse = ok({ session_id: z.string(), status: z.literal('completed') });
export const SessionsInterruptResponse = ok({
  requested: z.int(),
  interrupted: z.int(),
  session_ids: z.array(z.string()),
});

export const SessionInviteRequest = z.strictObject({
  session_id: AnyId,
  agent_type: AgentType,
  instance_id: InstanceId.optional(),
});
export type SessionInviteRequest = z.infer<typeof SessionInviteRequest>;
export const SessionInviteResponse = ok({ session_id: z.string(), agent: SessionAgent });

export const SESSION_OPERATIONS = {
  initSession: post('/sessions/init', TENANT, 'Open a session', {
    request: SessionInitRequest,
    response: SessionInitResponse,
    ...CONFLICT,
  }),
  getSessions: post('/sessions/get', OWN, 'List sessions', {
    request: SessionsGetRequest,
    response: SessionsGetResponse,
  }),
  getSession: post('/sessions/get_by_id', OWN, 'Read a session', {
    request: z.strictObject({ session_id: AnyId }),
    response: SessionGetByIdResponse,
    ...EXTENSION,
  }),
  closeSession: post('/sessions/close', OWN, 'Close a session; work in flight is canceled', {
    request: z.strictObject({ session_id: AnyId, reason: Reason }),
    response: SessionCloseResponse,
    ...CONFLICT,
  }),
  interruptSessions: post('/sessions/interrupt', OWN, 'Cancel what is in flight; the sessions stay usable', {
    request: z
      .strictObject({ ids: z.array(AnyId).min(1).max(100).optional(), session_id: AnyId.optional() })
      .refine((body) => (body.ids === undefined) !== (body.session_id === undefined), 'give either ids or session_id'),
    response: SessionsInterruptResponse,
  }),
  inviteAgent: post('/sessions/invite', TENANT, 'Add an agent of a type to a session', {
    request: SessionInviteRequest,
    response: SessionInviteResponse,
    ...EXTENSION,
    ...CONFLICT,
  }),
};
