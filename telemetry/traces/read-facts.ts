import { LIMITS } from '../../contracts/limits.js';
import type { Tx } from '../../db/pool.js';
import { uuidBound } from '../../runtime/ids.js';
import type {
  DispatchFacts,
  EventFacts,
  MessageDetails,
  MessageFacts,
  PlanFacts,
  RecordedFacts,
  RequestFacts,
  StepFacts,
} from './facts.js';

/** How far the clocks of processes, which make ids, may be from the database's. */
const CLOCK_SLACK_MS = 60_000;
/** A message has few events; a session may have many that are of no message. */
const EVENTS_PER_WINDOW = 10_000;

/** Plans of the traces of a page. */
const PLANS_MAX = 1_000;

type Row<Facts> = Facts & Record<string, unknown>;

const MESSAGE = `m.tenant_id, m.message_id, m.session_id, m.trace_id, m.parent_span_id, m.method, m.sender_agent_type, m.want_agent_type,
  m.agent_type, m.instance_id, m.state, m.error_code, m.usage, m.created_at, m.updated_at, m.completed_at`;

/** The message that began a trace has its UUID; the index has those that continue one. */
const OF_TRACES = `
  SELECT m.* FROM unnest($2::text[]) AS t (trace_id) CROSS JOIN LATERAL (
    (SELECT ${MESSAGE} FROM messages m WHERE m.tenant_id = $1 AND m.message_id = message_of_trace(t.trace_id) AND m.trace_id = t.trace_id
        AND m.parent_span_id IS NULL)
    UNION ALL
    (SELECT ${MESSAGE} FROM messages m WHERE m.tenant_id = $1 AND m.trace_id = t.trace_id AND m.parent_span_id IS NOT NULL
      ORDER BY m.message_id LIMIT ${LIMITS.messagesPerTrace + 1})) m ORDER BY m.message_id`;

const BY_IDS = `SELECT ${MESSAGE} FROM messages m WHERE m.tenant_id = $1 AND m.message_id = ANY ($2)`;

const PLAN = `p.tenant_id, p.plan_id, p.session_id, p.trace_id, p.parent_span_id, p.state, p.error_code, p.auto_approve, p.created_at, p.started_at,
  p.ended_at, (SELECT s.agent_type FROM plan_steps s WHERE s.tenant_id = p.tenant_id AND s.plan_id = p.plan_id AND s.place = 0) AS root_agent`;

const EVENTS = `
  SELECT e.event_id, e.event_type, e.occurred_at, e.payload, e.message_id
    FROM unnest($2::text[], $3::text[], $4::uuid[], $5::uuid[]) AS w (session_id, trace_id, least, bound) CROSS JOIN LATERAL (
      SELECT x.* FROM events x
       WHERE x.session_id = w.session_id AND x.tenant_id = $1 AND group_minute(x.group_id) BETWEEN group_minute(w.least) AND group_minute(w.bound)
         AND x.group_id >= w.least AND x.group_id < w.bound AND x.trace_id = w.trace_id AND x.message_id = ANY ($6)
       LIMIT ${EVENTS_PER_WINDOW}) e
   ORDER BY e.event_id`;

const DISPATCHES = `
  SELECT dispatch_id, message_id, instance_id, agent_type, deployment_mode, attempt, state, error_code, sent_at, ended_at
    FROM dispatches WHERE tenant_id = $1 AND dispatch_id = ANY ($2)`;

const REQUESTS = `
  SELECT request_id, message_id, kind, source, stage, tool, policy_name, guard, state, answer ->> 'resolution' AS resolution, requested_at, ended_at
    FROM input_requests WHERE tenant_id = $1 AND message_id = ANY ($2) ORDER BY requested_at, request_id`;

const RECORDED = `
  SELECT message_id, span_id, parent_span_id, name, kind, started_at, ended_at, error_type, attributes
    FROM trace_spans WHERE tenant_id = $1 AND message_id = ANY ($2) ORDER BY started_at, span_id`;

const STEPS = `
  SELECT plan_id, place, step_id, state, attempts, error_code, started_at, ended_at
    FROM plan_steps WHERE tenant_id = $1 AND plan_id = ANY ($2) ORDER BY plan_id, place`;

/** The messages of traces, the oldest first: of each trace one more than `LIMITS.messagesPerTrace` at most. */
export function messagesOfTraces(tx: Tx, tenantId: string, traceIds: readonly string[]): Promise<MessageFacts[]> {
  return tx.query<Row<MessageFacts>>(OF_TRACES, [tenantId, traceIds]);
}

export function messagesByIds(tx: Tx, tenantId: string, messageIds: readonly string[]): Promise<MessageFacts[]> {
  return tx.query<Row<MessageFacts>>(BY_IDS, [tenantId, messageIds]);
}

export function plansOfTraces(tx: Tx, tenantId: string, traceIds: readonly string[]): Promise<PlanFacts[]> {
  const text = `SELECT ${PLAN} FROM plans p WHERE p.tenant_id = $1 AND p.trace_id = ANY ($2) ORDER BY p.plan_id LIMIT ${PLANS_MAX}`;
  return tx.query<Row<PlanFacts>>(text, [tenantId, traceIds]);
}

export function plansByIds(tx: Tx, tenantId: string, planIds: readonly string[]): Promise<PlanFacts[]> {
  const text = `SELECT ${PLAN} FROM plans p WHERE p.tenant_id = $1 AND p.plan_id = ANY ($2)`;
  return tx.query<Row<PlanFacts>>(text, [tenantId, planIds]);
}

export async function stepsOf(tx: Tx, tenantId: string, plans: readonly PlanFacts[]): Promise<StepFacts[]> {
  if (plans.length === 0) return [];
  return tx.query<Row<StepFacts>>(STEPS, [tenantId, plans.map(({ plan_id }) => plan_id)]);
}

/** The spans of time, by session and trace, in which messages had events. */
function windowsOf(messages: readonly MessageFacts[]) {
  const windows = new Map<string, { session_id: string; trace_id: string; fromMs: number; toMs: number }>();
  for (const { session_id, trace_id, created_at, updated_at, completed_at } of messages) {
    const fromMs = created_at.getTime() - CLOCK_SLACK_MS;
    const toMs = Math.max((completed_at ?? updated_at).getTime(), completed_at ? 0 : Date.now()) + CLOCK_SLACK_MS;
    const key = `${session_id}\n${trace_id}`;
    const known = windows.get(key);
    if (known) Object.assign(known, { fromMs: Math.min(known.fromMs, fromMs), toMs: Math.max(known.toMs, toMs) });
    else windows.set(key, { session_id, trace_id, fromMs, toMs });
  }
  return [...windows.values()];
}

/** The events of messages, which are found by their session and time: there is an index for these. */
async function eventsOf(tx: Tx, tenantId: string, messages: readonly MessageFacts[]): Promise<EventFacts[]> {
  const windows = windowsOf(messages);
  return tx.query<Row<EventFacts>>(EVENTS, [
    tenantId,
    windows.map(({ session_id }) => session_id),
    windows.map(({ trace_id }) => trace_id),
    windows.map(({ fromMs }) => uuidBound(fromMs)),
    windows.map(({ toMs }) => uuidBound(toMs)),
    messages.map(({ message_id }) => message_id),
  ]);
}

/** What the spans of messages are derived from. */
export async function detailsOf(tx: Tx, tenantId: string, messages: readonly MessageFacts[]): Promise<MessageDetails> {
  if (messages.length === 0) return { dispatches: [], events: [], requests: [], recorded: [] };
  const ids = messages.map(({ message_id }) => message_id);
  const events = await eventsOf(tx, tenantId, messages);
  const dispatchIds = events.flatMap(({ event_type, payload }) =>
    event_type === 'dispatch.sent' ? String(payload.dispatch_id) : [],
  );
  const dispatches = await tx.query<Row<DispatchFacts>>(DISPATCHES, [tenantId, dispatchIds]);
  const requests = await tx.query<Row<RequestFacts>>(REQUESTS, [tenantId, ids]);
  const recorded = await tx.query<Row<RecordedFacts>>(RECORDED, [tenantId, ids]);
  return { dispatches, events, requests, recorded };
}
