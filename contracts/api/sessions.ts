import { z } from 'zod';
import { LIMITS } from '../limits.js';
import { AgentType, AnyId, InstanceId, listFields, Metadata, pageFields, Timestamp } from '../primitives.js';

/** `paused`: a message waits for human input; `completed`: closed; `expired`: idle for too long (decisions.md, Sessions). */
const SESSION_STATUSES = ['active', 'paused', 'completed', 'expired'] as const;
const SessionStatus = z.enum(SESSION_STATUSES);
export type SessionStatus = z.infer<typeof SessionStatus>;

export const SessionSummary = z.object({
  session_id: z.string(),
  tenant_id: z.string(),
  user_id: z.string().nullable(),
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
  metadata: z.record(z.string(), z.unknown()),
  agents: z.array(SessionAgent),
});
export type SessionDetails = z.infer<typeof SessionDetails>;

export const SessionInitRequest = z.strictObject({
  instance_id: InstanceId.optional(),
  agent_type: AgentType.optional(),
  user_id: z.string().min(1).max(256).optional(),
  metadata: Metadata.optional(),
  idle_timeout_seconds: z.int().min(0).max(LIMITS.idleTimeoutSecondsMax).default(LIMITS.idleTimeoutSecondsDefault),
});
export type SessionInitRequest = z.infer<typeof SessionInitRequest>;
export const SessionInitResponse = z.object({
  ok: z.literal(true),
  session_id: z.string(),
  instance_id: z.string().nullable(),
  agent_type: z.string().nullable(),
  session: SessionSummary,
});

export const SessionsGetRequest = z.strictObject({ ...pageFields, status: SessionStatus.optional() });
export type SessionsGetRequest = z.infer<typeof SessionsGetRequest>;
export const SessionsGetResponse = z.object({ ...listFields, sessions: z.array(SessionSummary) });
export const SessionGetByIdRequest = z.strictObject({ session_id: AnyId });
export const SessionGetByIdResponse = z.object({ ok: z.literal(true), session: SessionDetails });
export const SessionCloseRequest = z.strictObject({ session_id: AnyId, reason: z.string().max(1024).optional() });
export const SessionCloseResponse = z.object({
  ok: z.literal(true),
  session_id: z.string(),
  status: z.literal('completed'),
});
export const SessionsInterruptRequest = z
  .strictObject({ ids: z.array(AnyId).min(1).max(100).optional(), session_id: AnyId.optional() })
  .refine((body) => (body.ids === undefined) !== (body.session_id === undefined), {
    message: 'give either ids or session_id',
  });
export const SessionsInterruptResponse = z.object({
  ok: z.literal(true),
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
export const SessionInviteResponse = z.object({ ok: z.literal(true), session_id: z.string(), agent: SessionAgent });
