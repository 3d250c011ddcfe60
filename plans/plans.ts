import type { Caller } from '../contracts/api/auth.js';
import type { Plan, PlanCreateRequest, PlanSummary, PlansGetRequest } from '../contracts/api/plans.js';
import { actsAs, type Reader } from '../contracts/permissions.js';
import { recordEvent } from '../db/events.js';
import type { Page } from '../db/page.js';
import type { Db, Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import { createPlan, type NewPlan } from './create-plan.js';
import { cancelLocked, rejectLocked } from './plan-end.js';
import { listPlans, readPlan } from './plan-records.js';
import { lockPlan, type PlanRef, type PlanRow, requestWake } from './plan-rows.js';

/** The dependencies of the operations on plans. */
export interface PlanDeps {
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
function requireProposed({ state }: PlanRow): void {
  if (state === 'proposed') return;
  if (state === 'running') throw new PlatformError('ALREADY_RESOLVED', 'The plan is already approved.');
  throw new PlatformError('ALREADY_TERMINAL', `The plan is already ${state}.`);
}

async function noteDecision(tx: Tx, { tenant_id, plan_id }: PlanRef, by: string, comment: string | undefined) {
  await tx.query('UPDATE plans SET decided_by = $3, comment = $4 WHERE tenant_id = $1 AND plan_id = $2', [
    tenant_id,
    plan_id,
    by,
    comment ?? null,
  ]);
}

async function approveLocked(tx: Tx, plan: PlanRow, by: string): Promise<void> {
  const { tenant_id, plan_id } = plan;
  await tx.query(`UPDATE plans SET state = 'running', started_at = now() WHERE tenant_id = $1 AND plan_id = $2`, [
    tenant_id,
    plan_id,
  ]);
  await recordEvent(tx, plan, 'plan.approved', { plan_id, approved_by: by });
}

/** Creates the operations of the API on plans. */
export function createPlans({ db, approvalMs, wakesExpected }: PlanDeps) {
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
    const created = await db.tenant(caller.tenant_id, async (tx) => {
      const { plan_id } = await createPlan(tx, caller, plan, approvalMs);
      return readPlan(tx, caller, plan_id);
    });
    wakesExpected();
    return created;
  };

  return {
    /** @throws PlatformError forbidden for an agent that would approve its own plan, and as `createPlan` */
    create: async (caller: Caller, body: PlanCreateRequest, traceparent?: string): Promise<Plan> => {
      if (body.auto_approve && actsAs(caller) !== null)
        throw new PlatformError('forbidden', 'auto_approve: a token that acts as an agent may not approve plans.');
      return propose(caller, { ...body, ...(traceparent !== undefined && { traceparent }) });
    },
    /** Writes the plan that an agent proposes; the same key gives the same plan. @throws PlatformError as `createPlan` */
    propose: (caller: Caller, plan: Omit<NewPlan, 'auto_approve'>): Promise<Plan> =>
      propose(caller, { ...plan, auto_approve: false }),
    get: (reader: Reader, planId: string): Promise<Plan> =>
      db.tenant(reader.tenant_id, (tx) => readPlan(tx, reader, planId)),
    list: (reader: Reader, query: PlansGetRequest): Promise<Page<PlanSummary>> => listPlans(db, reader, query),
    /** @throws PlatformError NOT_FOUND, ALREADY_RESOLVED, and ALREADY_TERMINAL also when the time to approve it ran out */
    approve: (caller: Caller, planId: string, comment?: string): Promise<Plan> =>
      change(caller, planId, async (tx, plan) => {
        requireProposed(plan);
        if (plan.approval_expires_at.getTime() <= Date.now())
          throw new PlatformError('ALREADY_TERMINAL', 'The time to approve the plan ran out.');
        await noteDecision(tx, plan, caller.sub, comment);
        await approveLocked(tx, plan, caller.sub);
      }),
    /** @throws PlatformError NOT_FOUND, ALREADY_RESOLVED, ALREADY_TERMINAL */
    reject: (caller: Caller, planId: string, comment?: string): Promise<Plan> =>
      change(caller, planId, async (tx, plan) => {
        requireProposed(plan);
        await noteDecision(tx, plan, caller.sub, comment);
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
