import type { Caller } from '../contracts/api/auth.js';
import type { Plan, PlanCreateRequest, PlanSummary, PlansGetRequest } from '../contracts/api/plans.js';
import { actsAs, type Reader } from '../contracts/permissions.js';
import { recordEvent } from '../db/events.js';
import type { Page } from '../db/page.js';
import type { Db, Tx } from '../db/pool.js';
import { type EnforceDeps, recordDecision } from '../policy/enforce.js';
import { PlatformError } from '../runtime/errors.js';
import { createPlan, type NewPlan } from './create-plan.js';
import { requireApprover } from './plan-approval.js';
import { cancelLocked, rejectLocked } from './plan-end.js';
import { graphOf } from './plan-graph.js';
import { decideApprove, decideCreate } from './plan-policy.js';
import { listPlans, readPlan } from './plan-records.js';
import { lockPlan, noteDecision, type PlanRef, type PlanRow, requestWake } from './plan-rows.js';

/** The dependencies of the operations on plans. */
export interface PlanDeps extends EnforceDeps {
  db: Db;
  /** How long somebody may take to approve a plan, in milliseconds. */
  approvalMs: number;
  /** Called after a change that the workflow of a plan is to see. */
  wakesExpected: () => void;
}

/** Locks a plan that the reader may see. @throws PlatformError NOT_FOUND */
async function lockOwnPlan(tx: Tx, reader: Reader, planId: string): Promise<PlanRow> {
  const plan = await lockPlan(tx, { tenant_id: reader.tenant_id, plan_id: planId });
  const own = actsAs(reader);
  if (!plan || (own !== null && own !== plan.agent_type))
    throw new PlatformError('NOT_FOUND', 'There is no plan of that plan_id.');
  return plan;
}

/** @throws PlatformError ALREADY_TERMINAL for a plan that has ended, ALREADY_RESOLVED for one that runs */
function requireProposed({ state, approval_expires_at }: PlanRow): void {
  if (state === 'running') throw new PlatformError('ALREADY_RESOLVED', 'The plan is already approved.');
  if (state !== 'proposed') throw new PlatformError('ALREADY_TERMINAL', `The plan is already ${state}.`);
  if (approval_expires_at.getTime() <= Date.now())
    throw new PlatformError('ALREADY_TERMINAL', 'The time to decide about the plan ran out.');
}

/** Counts an approval of a locked plan, which starts with the last one that it needs. @throws PlatformError forbidden, ALREADY_RESOLVED */
async function approveLocked(tx: Tx, plan: PlanRow, caller: Caller, comment: string | undefined): Promise<void> {
  const { tenant_id, plan_id, approval } = plan;
  if (approval?.allow_self === false && caller.credential_id === plan.credential_id)
    throw new PlatformError('forbidden', 'The credential that created the plan may not approve it.');
  if (!(await noteDecision(tx, plan, caller, 'approved', comment)))
    throw new PlatformError('ALREADY_RESOLVED', 'This credential has approved the plan before; it waits for others.');
  const [counted] = await tx.query<{ approvals: number }>(
    'SELECT count(*)::int AS approvals FROM plan_decisions WHERE tenant_id = $1 AND plan_id = $2',
    [tenant_id, plan_id],
  );
  if ((counted?.approvals ?? 0) < (approval?.quorum ?? 1)) return;
  await tx.query(`UPDATE plans SET state = 'running', started_at = now() WHERE tenant_id = $1 AND plan_id = $2`, [
    tenant_id,
    plan_id,
  ]);
  await recordEvent(tx, plan, 'plan.approved', { plan_id, approved_by: caller.sub });
}

/** @throws PlatformError forbidden for a caller that may not decide about the plan; as `requireProposed` */
function requireDecidable(plan: PlanRow, caller: Caller): void {
  requireApprover(plan, caller);
  requireProposed(plan);
}

async function findPlan(tx: Tx, caller: Caller, planId: string): Promise<PlanRow> {
  const plan = await lockOwnPlan(tx, caller, planId);
  requireDecidable(plan, caller);
  return plan;
}

/** Creates the operations of the API on plans. */
export function createPlans(deps: PlanDeps) {
  const { db, approvalMs, wakesExpected } = deps;

  /** Changes a plan under its lock and has its workflow look at it. @returns the plan as it is then */
  const change = async (
    caller: Caller,
    planId: string,
    work: (tx: Tx, plan: PlanRow) => Promise<void>,
  ): Promise<Plan> => {
    const changed = await db.tenant(caller.tenant_id, async (tx) => {
      const plan = await lockOwnPlan(tx, caller, planId);
      await work(tx, plan);
      await requestWake(tx, plan);
      return readPlan(tx, caller, planId);
    });
    wakesExpected();
    return changed;
  };

  const propose = async (caller: Caller, plan: NewPlan): Promise<Plan> => {
    const { session_id, description } = plan;
    const steps = graphOf(plan.steps);
    const decided = await decideCreate(deps, caller, plan, steps);
    if (plan.auto_approve && decided.approval === null)
      decided.events.push(...(await decideApprove(deps, caller, { session_id, description })));
    const created = await db.tenant(caller.tenant_id, async (tx) => {
      const { plan_id } = await createPlan(tx, caller, plan, steps, { ...decided, approvalMs });
      return readPlan(tx, caller, plan_id);
    });
    wakesExpected();
    return created;
  };

  return {
    /** @throws PlatformError forbidden by a policy, or for an agent that would approve its own plan; BAD_REQUEST as `graphOf`; as `createPlan` */
    create: async (caller: Caller, body: PlanCreateRequest, traceparent?: string): Promise<Plan> => {
      if (body.auto_approve && actsAs(caller) !== null)
        throw new PlatformError('forbidden', 'auto_approve: a token that acts as an agent may not approve plans.');
      return propose(caller, { ...body, ...(traceparent !== undefined && { traceparent }) });
    },
    /** Writes the plan that an agent proposes; the same key gives the same plan. @throws PlatformError as `create` */
    propose: (caller: Caller, plan: Omit<NewPlan, 'auto_approve'>): Promise<Plan> =>
      propose(caller, { ...plan, auto_approve: false }),
    get: (reader: Reader, planId: string): Promise<Plan> =>
      db.tenant(reader.tenant_id, (tx) => readPlan(tx, reader, planId)),
    list: (reader: Reader, query: PlansGetRequest): Promise<Page<PlanSummary>> => listPlans(db, reader, query),
    /** @throws PlatformError NOT_FOUND, forbidden, ALREADY_RESOLVED, and ALREADY_TERMINAL also when the time to approve it ran out */
    approve: async (caller: Caller, planId: string, comment?: string): Promise<Plan> => {
      const found = await db.tenant(caller.tenant_id, (tx) => findPlan(tx, caller, planId));
      const events = await decideApprove(deps, caller, found);
      return change(caller, planId, async (tx, plan) => {
        requireDecidable(plan, caller);
        await recordDecision(tx, plan.tenant_id, plan.session_id, events);
        await approveLocked(tx, plan, caller, comment);
      });
    },
    /** @throws PlatformError NOT_FOUND, forbidden, ALREADY_RESOLVED, ALREADY_TERMINAL */
    reject: (caller: Caller, planId: string, comment?: string): Promise<Plan> =>
      change(caller, planId, async (tx, plan) => {
        requireDecidable(plan, caller);
        await noteDecision(tx, plan, caller, 'rejected', comment);
        await rejectLocked(tx, plan, caller.sub);
      }),
    /** @throws PlatformError NOT_FOUND, ALREADY_TERMINAL */
    cancel: (caller: Caller, planId: string, reason = 'canceled by the caller'): Promise<Plan> =>
      change(caller, planId, async (tx, plan) => {
        if (plan.state !== 'proposed' && plan.state !== 'running')
          throw new PlatformError('ALREADY_TERMINAL', `The plan is already ${plan.state}.`);
        await cancelLocked(tx, plan, reason);
      }),
  };
}

/** The operations of the API on plans. */
export type Plans = ReturnType<typeof createPlans>;

/** Cancels a plan whose workflow an operator ended; one that has ended stays as it is. */
export async function cancelPlanByOperator(db: Db, ref: PlanRef): Promise<void> {
  await db.tenant(ref.tenant_id, async (tx) => {
    const plan = await lockPlan(tx, ref);
    if (plan?.state === 'proposed' || plan?.state === 'running')
      await cancelLocked(tx, plan, 'canceled by an operator');
  });
}
