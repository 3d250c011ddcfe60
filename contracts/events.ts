import { z } from 'zod';

/** The categories of events: the part of a type before the dot. */
export const EVENT_CATEGORIES = [
  'agent',
  'session',
  'dispatch',
  'message',
  'policy',
  'guard',
  'plan',
  'system',
  'tenant',
] as const;

/** The severities of events, the lowest first. */
export const EVENT_SEVERITIES = ['info', 'warning', 'critical'] as const;

const text = z.string();
const count = z.int().min(0);
/** Milliseconds. */
const duration_ms = count;
const agent = { agent_type: text, instance_id: text };
const message = { message_id: text, session_id: text };
/** What a policy or guard decided about. `tool`: null where the action is no tool call. */
const action = { action: text, tool: text.nullable() };
/** Only in the events of a reminder, which asks about the same request again: its number, from 1. */
const reminder = z.int().min(1).optional();
const policy = { policy_id: text, policy_name: text, ...action };

/** The payload of a type: exactly these fields. @param when in which case it is written, for `/openapi.json` and docs/events.md */
const payload = <Fields extends z.ZodRawShape>(when: string, fields: Fields) => z.strictObject(fields).describe(when);

/**
 * The payload of each event type: the only definition. Types, `/openapi.json`, docs/events.md and the
 * tests of what is written derive from it.
 */
export const EVENT_PAYLOADS = {
  'agent.registered': payload('An instance registered, for the first time or anew.', {
    ...agent,
    tenant_id: text,
    connect_mode: z.enum(['connected', 'hosted']),
  }),
  'agent.deregistered': payload('An instance was deregistered: on request, or for inactivity.', {
    ...agent,
    reason: text,
  }),
  'agent.health_changed': payload('The status of an instance changed.', {
    ...agent,
    status: text,
    previous_status: text,
  }),
  'agent.capacity_changed': payload(
    'The limit of an instance changed, or the sessions that it reports, or a session that reserves its place was bound to it, left it, was paused there or goes on.',
    { ...agent, current_sessions: count, max_concurrent_sessions: count },
  ),
  'session.created': payload('A session was opened, by /sessions/init or by a message.', {
    session_id: text,
    tenant_id: text,
    created_by: text,
  }),
  'session.closed': payload('A session ended: it was closed, or idled out.', {
    session_id: text,
    reason: text,
    duration_ms,
  }),
  'dispatch.sent': payload('A message is sent to an agent. `skill_id` is null where no skill was asked for.', {
    dispatch_id: text,
    instance_id: text,
    skill_id: text.nullable(),
    session_id: text,
  }),
  'dispatch.success': payload('An agent finished its turn: with a result, or with a question.', {
    dispatch_id: text,
    instance_id: text,
    duration_ms,
  }),
  'dispatch.failed': payload('A dispatch ended without a result. `error` is a code.', {
    dispatch_id: text,
    instance_id: text,
    error: text,
    duration_ms,
  }),
  'message.received': payload('A message was accepted. `role` is `agent` where an agent sent it.', {
    ...message,
    role: z.enum(['user', 'agent']),
  }),
  'message.completed': payload('The agent completed the message.', {
    ...message,
    role: z.literal('agent'),
    duration_ms,
  }),
  'message.error': payload('The message failed. `error` is a code.', { ...message, error: text }),
  'message.canceled': payload('The message was canceled.', { ...message, reason: text }),
  'message.input_required': payload(
    'The message waits for a human. `reminder` is there where the same request is asked again.',
    {
      ...message,
      request_id: text,
      kind: z.enum(['approval', 'form', 'confirmation']),
      source: z.enum(['policy', 'guard', 'agent', 'plan']),
      title: text,
      reminder,
    },
  ),
  'message.resolved': payload('A human decided: the message goes on, or fails where its approval was rejected.', {
    ...message,
    request_id: text,
    resolution: text,
    resolved_by: text,
  }),
  'message.decision_effect': payload(
    'What came of what a human approved: the tool call, or the message that went on. `expired`: nothing has used the approval.',
    { message_id: text, request_id: text, outcome: z.enum(['succeeded', 'failed', 'expired']) },
  ),
  'policy.denied': payload('A policy denied an action.', { ...policy, reason: text }),
  'policy.audited': payload('A policy of decision `audit` applied to an action, which went on.', {
    ...policy,
    reason: text,
  }),
  'policy.approval_required': payload('A policy asks a human about an action.', {
    ...policy,
    ...message,
    reminder,
  }),
  'guard.allowed': payload('A guard checked an action and let it pass.', { guard: text, ...action }),
  'guard.denied': payload('A guard denied an action.', { guard: text, ...action, reason: text }),
  'guard.approval_required': payload(
    'A guard asks a human about an action. `path` is null where the action names none.',
    { guard: text, ...action, path: text.nullable(), message_id: text, reminder },
  ),
  'plan.created': payload('A plan was proposed.', {
    plan_id: text,
    session_id: text,
    step_count: count,
    description: text,
  }),
  'plan.approval_required': payload(
    'A plan waits for its approval. `reminder` is there where the same approval is asked for again.',
    {
      plan_id: text,
      session_id: text,
      request_id: text,
      title: text,
      description: text,
      reason: text,
      policy_id: text.nullable(),
      guard: text.nullable(),
      expires_at: text,
      reminder,
    },
  ),
  'plan.approved': payload('A plan was approved.', { plan_id: text, approved_by: text }),
  'plan.completed': payload('All steps of a plan are completed.', {
    plan_id: text,
    session_id: text,
    steps_completed: count,
    duration_ms,
  }),
  'plan.failed': payload('A step of a plan failed, and the plan with it. `failed_step` counts from 0.', {
    plan_id: text,
    session_id: text,
    failed_step: count,
    error: text,
  }),
  'plan.canceled': payload('A plan was canceled: by a caller, with its session, or by an operator.', {
    plan_id: text,
    session_id: text,
    reason: text,
  }),
  'plan.rejected': payload('A proposed plan was rejected, or nobody approved it in time. `rejected_by` is null then.', {
    plan_id: text,
    session_id: text,
    rejected_by: text.nullable(),
  }),
  'system.alert_triggered': payload('An alert rule with a threshold above 1 reached it within its window.', {
    rule_id: text,
    rule_name: text,
    threshold: count,
    window_seconds: count,
    count,
  }),
  'tenant.created': payload('A tenant was created.', { tenant_id: text, name: text }),
  'tenant.deleted': payload('A tenant was deleted.', { tenant_id: text, name: text }),
};

export type EventType = keyof typeof EVENT_PAYLOADS;
export type EventSeverity = (typeof EVENT_SEVERITIES)[number];
export type EventPayloads = { [Type in EventType]: z.infer<(typeof EVENT_PAYLOADS)[Type]> };

/** All types, in the order of the documentation. */
export const EVENT_TYPES = Object.keys(EVENT_PAYLOADS) as EventType[];

/** Events that ask a human. Deliveries of them are approvals. */
export const APPROVAL_EVENTS: readonly string[] = [
  'message.input_required',
  'policy.approval_required',
  'guard.approval_required',
  'plan.approval_required',
] satisfies EventType[];

/** Whether an event asks a human. */
export function asksHuman(eventType: string): boolean {
  return APPROVAL_EVENTS.includes(eventType);
}
