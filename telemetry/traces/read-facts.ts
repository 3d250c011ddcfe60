import { LIMITS } from '../../contracts/limits.js';
import type { Tx } from '../../db/pool.js';
import type { MessageFacts, PlanFacts, StepFacts } from './facts.js';

/** Plans of the traces of a page. */
const PLANS_MAX = 1_000;

type Row<Facts> = Facts & Record<string, unknown>;

const MESSAGE = `m.tenant_id, m.message_id, m.session_id, trace_of(m.trace_id, m.message_id) AS trace_id, m.parent_span_id,
  m.propagation ->> 'sampled' IS DISTINCT FROM 'false' AS sampled, m.method, m.sender_agent_type, m.want_agent_type,
  m.agent_type, m.instance_id, m.state, m.error_code, m.usage, m.created_at, m.updated_at, m.completed_at`;

/** The message that began a trace has its UUID; the index has those that continue one. */
const OF_TRACES = `
  SELECT m.* FROM unnest($2::text[]) AS t (trace_id) CROSS JOIN LATERAL (
    (SELECT ${MESSAGE} FROM messages m WHERE m.tenant_id = $1 AND m.message_id = message_of_trace(t.trace_id)
        AND m.parent_span_id IS NULL)
    UNION ALL
    (SELECT ${MESSAGE} FROM messages m WHERE m.tenant_id = $1 AND m.trace_id = t.trace_id AND m.parent_span_id IS NOT NULL
      ORDER BY m.message_id LIMIT ${LIMITS.messagesPerTrace + 1})) m ORDER BY m.message_id`;

const BY_IDS = `SELECT ${MESSAGE} FROM messages m WHERE m.tenant_id = $1 AND m.message_id = ANY ($2)`;

const PLAN = `p.tenant_id, p.plan_id, p.session_id, p.trace_id, p.parent_span_id, p.sampled, p.state, p.error_code, p.auto_approve, p.created_at, p.started_at,
  p.ended_at, (SELECT s.agent_type FROM plan_steps s WHERE s.tenant_id = p.tenant_id AND s.plan_id = p.plan_id AND s.place = 0) AS root_agent`;

const STEPS = `
  SELECT plan_id, place, step_id, state, attempts, error_code, started_at, ended_at
    FROM plan_steps WHERE tenant_id = $1 AND plan_id = ANY ($2) ORDER BY plan_id, place`;

const BEGUN = `
  SELECT plan_id, count(*) AS count FROM plan_steps WHERE tenant_id = $1 AND plan_id = ANY ($2) AND started_at IS NOT NULL GROUP BY plan_id`;

/** The messages of traces, the oldest first: of each trace one more than `LIMITS.messagesPerTrace` at most. */
export function messagesOfTraces(tx: Tx, tenantId: string, traceIds: readonly string[]): Promise<MessageFacts[]> {
  return tx.query<Row<MessageFacts>>(OF_TRACES, [tenantId, traceIds]);
}

/** Those of these messages that exist. */
export function messagesByIds(tx: Tx, tenantId: string, messageIds: readonly string[]): Promise<MessageFacts[]> {
  return tx.query<Row<MessageFacts>>(BY_IDS, [tenantId, messageIds]);
}

/** The plans of traces, the oldest first, at most `PLANS_MAX` in all. */
export function plansOfTraces(tx: Tx, tenantId: string, traceIds: readonly string[]): Promise<PlanFacts[]> {
  const text = `SELECT ${PLAN} FROM plans p WHERE p.tenant_id = $1 AND p.trace_id = ANY ($2) ORDER BY p.plan_id LIMIT ${PLANS_MAX}`;
  return tx.query<Row<PlanFacts>>(text, [tenantId, traceIds]);
}

/** Those of these plans that exist. */
export function plansByIds(tx: Tx, tenantId: string, planIds: readonly string[]): Promise<PlanFacts[]> {
  const text = `SELECT ${PLAN} FROM plans p WHERE p.tenant_id = $1 AND p.plan_id = ANY ($2)`;
  return tx.query<Row<PlanFacts>>(text, [tenantId, planIds]);
}

/** The steps of plans. */
export async function stepsOf(tx: Tx, tenantId: string, plans: readonly PlanFacts[]): Promise<StepFacts[]> {
  if (plans.length === 0) return [];
  return tx.query<Row<StepFacts>>(STEPS, [tenantId, plans.map(({ plan_id }) => plan_id)]);
}

/** How many steps of plans were begun, by plan. */
export async function begunSteps(tx: Tx, tenantId: string, plans: readonly PlanFacts[]): Promise<Map<string, number>> {
  const rows = await tx.query<{ plan_id: string; count: number }>(BEGUN, [
    tenantId,
    plans.map(({ plan_id }) => plan_id),
  ]);
  return new Map(rows.map(({ plan_id, count }) => [plan_id, count]));
}
