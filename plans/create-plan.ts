import type { Caller } from '../contracts/api/auth.js';
import type { PlanProposal } from '../contracts/api/plans.js';
import { LIMITS } from '../contracts/limits.js';
import { recordEvent } from '../db/events.js';
import { isForeignSession } from '../db/ownership.js';
import type { Tx } from '../db/pool.js';
import { recordDecision } from '../policy/enforce.js';
import type { DecisionEvent } from '../policy/verdict.js';
import { PlatformError } from '../runtime/errors.js';
import { newId, traceFrom, uuidOf } from '../runtime/ids.js';
import { firstReminderMs, recordApprovalRequired } from './plan-approval.js';
import type { GraphStep } from './plan-graph.js';
import { noteDecision, type PlanApproval, type PlanRef, type PlanRow, requestWake } from './plan-rows.js';

/** A new plan. */
export interface NewPlan extends PlanProposal {
  session_id: string;
  auto_approve: boolean;
  /** What an agent proposed it with; a repeat gives the same plan. */
  proposal_key?: string;
  traceparent?: string;
}

/** Locks the session so that it does not end meanwhile. @throws PlatformError NOT_FOUND, SESSION_CLOSED */
async function requireSession(tx: Tx, caller: Caller, sessionId: string): Promise<void> {
  const [session] = await tx.query<{ status: string }>(
    'SELECT status FROM sessions WHERE tenant_id = $1 AND session_id = $2 FOR SHARE',
    [caller.tenant_id, sessionId],
  );
  if (!session || (await isForeignSession(tx, caller, sessionId)))
    throw new PlatformError('NOT_FOUND', 'There is no session of that session_id.');
  if (session.status !== 'active')
    throw new PlatformError('SESSION_CLOSED', `The session is already ${session.status}.`);
}

/** The tenant has its limit of plans that have not ended: people must act before there is room. */
export class TooManyPlans extends PlatformError {
  constructor() {
    const text = `The tenant has ${LIMITS.openPlansPerTenant} plans that have not ended, which is its bound. Approve, reject or cancel some.`;
    super('RATE_LIMITED', text, { headers: { 'Retry-After': '60' } });
  }
}

/** @throws TooManyPlans at the tenant's limit of plans that have not ended, which concurrent calls may exceed by their number */
async function requireRoom(tx: Tx, tenantId: string): Promise<void> {
  const [open] = await tx.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM (SELECT 1 FROM plans WHERE tenant_id = $1 AND state IN ('proposed', 'running')
       LIMIT ${LIMITS.openPlansPerTenant}) AS open`,
    [tenantId],
  );
  if ((open?.count ?? 0) >= LIMITS.openPlansPerTenant) throw new TooManyPlans();
}

/** What is decided about a new plan. */
export interface Admitted {
  /** What a policy demands of its approval: then it is not approved at once. */
  approval: PlanApproval | null;
  /** Events of policies. */
  events: DecisionEvent[];
  /** How long somebody may take to approve it, in milliseconds, where no policy says otherwise. */
  approvalMs: number;
}

/** Whether the plan starts at once. */
const startsAtOnce = ({ auto_approve }: NewPlan, { approval }: Admitted) => auto_approve && approval === null;

/** @returns null when the plan was proposed before */
async function insertPlan(tx: Tx, caller: Caller, plan: NewPlan, admitted: Admitted): Promise<PlanRow | null> {
  const { tenant_id, credential_id, sub, agent_type, scopes } = caller;
  const plan_id = newId('plan');
  const { trace_id, parent_span_id } = traceFrom(plan.traceparent, uuidOf(plan_id));
  const { approval } = admitted;
  const starts = startsAtOnce(plan, admitted);
  const approvalMs = approval ? approval.timeout_seconds * 1_000 : admitted.approvalMs;
  const values = [tenant_id, plan_id, plan.session_id, plan.description, starts ? 'running' : 'proposed'];
  const [row] = await tx.query<PlanRow & Record<string, unknown>>(
    `INSERT INTO plans (tenant_id, plan_id, session_id, description, state, max_parallel, auto_approve, credential_id, created_by, agent_type,
       scopes, trace_id, parent_span_id, proposal_key, approval_expires_at, approval, started_at, check_at, remind_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, now() + $15 * interval '1 ms', $16,
       CASE WHEN $17 THEN now() END, now() + interval '1 minute', now() + $18::bigint * interval '1 ms')
     ON CONFLICT (tenant_id, proposal_key) WHERE proposal_key IS NOT NULL DO NOTHING RETURNING *`,
    [
      ...[...values, plan.max_parallel, plan.auto_approve, credential_id, sub, agent_type, scopes],
      ...[trace_id, parent_span_id, plan.proposal_key ?? null, approvalMs],
      ...[approval && JSON.stringify(approval), starts, approval && firstReminderMs(approval)],
    ],
  );
  return row ?? null;
}

async function insertSteps(tx: Tx, { tenant_id, plan_id }: PlanRef, steps: readonly GraphStep[]): Promise<void> {
  const rows = steps.map((step, place) => ({ ...step, place }));
  await tx.query(
    `INSERT INTO plan_steps (tenant_id, plan_id, place, step_id, description, agent_type, instance_id, skill_id, parts, depends_on,
       requires_approval, timeout_seconds, max_attempts)
     SELECT $1, $2, place, step_id, description, agent_type, instance_id, skill_id, parts, depends_on, requires_approval, timeout_seconds,
            max_attempts
       FROM jsonb_to_recordset($3) AS s (place integer, step_id text, description text, agent_type text, instance_id text, skill_id text,
              parts jsonb, depends_on integer[], requires_approval boolean, timeout_seconds integer, max_attempts integer)`,
    [tenant_id, plan_id, JSON.stringify(rows)],
  );
}

async function findProposed(tx: Tx, tenantId: string, key: string | undefined): Promise<PlanRef | null> {
  if (key === undefined) return null;
  const [found] = await tx.query<{ plan_id: string }>(
    'SELECT plan_id FROM plans WHERE tenant_id = $1 AND proposal_key = $2',
    [tenantId, key],
  );
  return found ? { tenant_id: tenantId, plan_id: found.plan_id } : null;
}

async function requireProposed(tx: Tx, tenantId: string, key: string | undefined): Promise<PlanRef> {
  const found = await findProposed(tx, tenantId, key);
  if (!found) throw new PlatformError('CONFLICT', 'The plan was proposed a moment ago.');
  return found;
}

/**
 * Writes a new plan with its events: proposed, or running where it is approved at once.
 * @throws PlatformError NOT_FOUND, SESSION_CLOSED, RATE_LIMITED
 */
export async function createPlan(
  tx: Tx,
  caller: Caller,
  plan: NewPlan,
  steps: readonly GraphStep[],
  admitted: Admitted,
): Promise<PlanRef> {
  // A repeat finds its plan also where there is no room for another, or the session has ended since.
  const before = await findProposed(tx, caller.tenant_id, plan.proposal_key);
  if (before) return before;
  await requireSession(tx, caller, plan.session_id);
  await requireRoom(tx, caller.tenant_id);
  const row = await insertPlan(tx, caller, plan, admitted);
  if (!row) return requireProposed(tx, caller.tenant_id, plan.proposal_key);
  await insertSteps(tx, row, steps);
  const { tenant_id, plan_id, session_id, description } = row;
  await recordEvent(tx, row, 'plan.created', { plan_id, session_id, step_count: steps.length, description });
  await recordDecision(tx, tenant_id, session_id, admitted.events);
  if (row.approval) await recordApprovalRequired(tx, row, row.approval);
  if (startsAtOnce(plan, admitted)) {
    await noteDecision(tx, row, caller, 'approved');
    await recordEvent(tx, row, 'plan.approved', { plan_id, approved_by: caller.sub });
  }
  await requestWake(tx, row);
  return { tenant_id, plan_id };
}
