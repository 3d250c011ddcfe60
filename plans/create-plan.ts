import type { Caller } from '../contracts/api/auth.js';
import { LIMITS } from '../contracts/limits.js';
import { recordEvent } from '../db/events.js';
import { isForeignSession } from '../db/ownership.js';
import type { Tx } from '../db/pool.js';
import { callerPrincipal } from '../messages/input/principals.js';
import { readResolution } from '../messages/input/resolution.js';
import { recordDecision } from '../policy/enforce.js';
import type { AskingVerdict, DecisionEvent } from '../policy/verdict.js';
import { PlatformError } from '../runtime/errors.js';
import { newId, traceFrom, uuidOf } from '../runtime/ids.js';
import { askerOfPlan, decideLocked } from './approvals/decide-plan.js';
import { openPlanRequest, planRequest, readPlanRequest } from './approvals/plan-request.js';
import type { GraphStep, NewPlan } from './plan-graph.js';
import { type PlanRef, type PlanRow, requestWake } from './plan-rows.js';

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
  approval: AskingVerdict | null;
  /** Events of policies. */
  events: DecisionEvent[];
  /** How long somebody may take to approve it, in milliseconds, where no policy says otherwise. */
  approvalMs: number;
}

/** @returns null when the plan was proposed before */
async function insertPlan(tx: Tx, caller: Caller, plan: NewPlan): Promise<PlanRow | null> {
  const { tenant_id, credential_id, sub, agent_type, scopes } = caller;
  const plan_id = newId('plan');
  const { trace_id, parent_span_id, sampled } = traceFrom(plan.traceparent, uuidOf(plan_id));
  const [row] = await tx.query<PlanRow>(
    `INSERT INTO plans (tenant_id, plan_id, session_id, description, state, max_parallel, auto_approve, credential_id, created_by, agent_type,
       scopes, trace_id, parent_span_id, sampled, proposal_key, check_at)
     VALUES ($1, $2, $3, $4, 'proposed', $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, now() + interval '1 minute')
     ON CONFLICT (tenant_id, proposal_key) WHERE proposal_key IS NOT NULL DO NOTHING RETURNING *`,
    [
      ...[tenant_id, plan_id, plan.session_id, plan.description, plan.max_parallel, plan.auto_approve],
      ...[credential_id, sub, agent_type, scopes, trace_id, parent_span_id, sampled, plan.proposal_key ?? null],
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

/** Its creator approves a plan as it is written, by the way of everybody else. @throws PlatformError forbidden for one who may not */
async function approveAtOnce(tx: Tx, caller: Caller, row: PlanRow, ip: string | undefined): Promise<void> {
  const principal = callerPrincipal(caller, ip);
  const request = await readPlanRequest(tx, row);
  const standsFor = await principal.mayAnswer(tx, askerOfPlan(row), request);
  const decision = readResolution('approval', 'approved');
  await decideLocked(tx, row, request, { principal, standsFor }, { decision });
}

/**
 * Writes a new plan with its request and events: proposed, or running where it is approved at once.
 * @throws PlatformError NOT_FOUND, SESSION_CLOSED, RATE_LIMITED, forbidden where the creator may not approve it at once
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
  const row = await insertPlan(tx, caller, plan);
  if (!row) return requireProposed(tx, caller.tenant_id, plan.proposal_key);
  await insertSteps(tx, row, steps);
  const { tenant_id, plan_id, session_id, description } = row;
  await recordEvent(tx, row, 'plan.created', { plan_id, session_id, step_count: steps.length, description });
  await recordDecision(tx, tenant_id, session_id, admitted.events);
  const startsAtOnce = plan.auto_approve && admitted.approval === null;
  const request = planRequest(plan, steps, admitted.approval, admitted.approvalMs);
  await openPlanRequest(tx, row, request, !startsAtOnce);
  if (startsAtOnce) await approveAtOnce(tx, caller, row, plan.ip);
  await requestWake(tx, row);
  return { tenant_id, plan_id };
}
