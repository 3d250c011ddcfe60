import type { Caller } from '../contracts/api/auth.js';
import type { ResolveRequest } from '../contracts/api/messages.js';
import type { Plan, PlanCreateRequest } from '../contracts/api/plans.js';
import { actsAs, type Reader } from '../contracts/permissions.js';
import type { Db, Tx } from '../db/pool.js';
import type { LinkedRequest } from '../messages/input/by-link.js';
import type { FoundToken } from '../messages/input/callback-tokens.js';
import { byCaller, type Identify } from '../messages/input/identify.js';
import type { DecisionRequest, Resolved } from '../messages/input/resolve.js';
import { tokenFacts } from '../policy/token-facts.js';
import { PlatformError } from '../runtime/errors.js';
import { decidePlanAs, resolvePlan } from './approvals/decide-plan.js';
import { describePlan } from './approvals/describe-plan.js';
import { decideApprove, decideCreate } from './approvals/plan-policy.js';
import { createPlan } from './create-plan.js';
import type { PlanDeps } from './plan-deps.js';
import { cancelLocked } from './plan-end.js';
import { graphOf, type NewPlan } from './plan-graph.js';

import { readPlan } from './plan-records.js';
import { lockPlan, type PlanRef, type PlanRow, requestWake } from './plan-rows.js';

/** Locks a plan that the reader may see. @throws PlatformError NOT_FOUND */
async function lockOwnPlan(tx: Tx, reader: Reader, planId: string): Promise<PlanRow> {
  const plan = await lockPlan(tx, { tenant_id: reader.tenant_id, plan_id: planId });
  const own = actsAs(reader);
  if (!plan || (own !== null && own !== plan.agent_type))
    throw new PlatformError('NOT_FOUND', 'There is no plan of that plan_id.');
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

  const decide = async (caller: Caller, planId: string, body: DecisionRequest, ip?: string): Promise<Plan> => {
    await decidePlanAs(deps, { tenant_id: caller.tenant_id, plan_id: planId }, body, byCaller(caller, ip));
    return db.tenant(caller.tenant_id, (tx) => readPlan(tx, caller, planId));
  };

  const propose = async (caller: Caller, plan: NewPlan): Promise<Plan> => {
    const { tenant_id } = caller;
    const { session_id, description } = plan;
    const steps = graphOf(plan.steps);
    const decided = await decideCreate(deps, caller, plan, steps);
    if (plan.auto_approve && decided.approval === null)
      decided.events.push(...(await decideApprove(deps, tokenFacts(caller), { tenant_id, session_id, description })));
    const created = await db.tenant(caller.tenant_id, async (tx) => {
      const { plan_id } = await createPlan(tx, caller, plan, steps, { ...decided, approvalMs });
      return readPlan(tx, caller, plan_id);
    });
    wakesExpected();
    return created;
  };

  return {
    /** @throws PlatformError forbidden by a policy, or for an agent that would approve its own plan; BAD_REQUEST as `graphOf`; as `createPlan` */
    create: async (
      caller: Caller,
      body: PlanCreateRequest,
      from: Pick<NewPlan, 'traceparent' | 'ip'> = {},
    ): Promise<Plan> => {
      if (body.auto_approve && actsAs(caller) !== null)
        throw new PlatformError('forbidden', 'auto_approve: a token that acts as an agent may not approve plans.');
      return propose(caller, { ...body, ...from });
    },
    /** Writes the plan that an agent proposes; the same key gives the same plan. @throws PlatformError as `create` */
    propose: (caller: Caller, plan: Omit<NewPlan, 'auto_approve'>): Promise<Plan> =>
      propose(caller, { ...plan, auto_approve: false }),
    get: (reader: Reader, planId: string): Promise<Plan> =>
      db.tenant(reader.tenant_id, (tx) => readPlan(tx, reader, planId)),
    /** @throws PlatformError NOT_FOUND, forbidden, ALREADY_RESOLVED, and ALREADY_TERMINAL also when the time to approve it ran out */
    approve: (caller: Caller, planId: string, comment?: string, ip?: string): Promise<Plan> =>
      decide(caller, planId, { resolution: 'approved', comment }, ip),
    /** @throws PlatformError NOT_FOUND, forbidden, ALREADY_RESOLVED, ALREADY_TERMINAL */
    reject: (caller: Caller, planId: string, comment?: string, ip?: string): Promise<Plan> =>
      decide(caller, planId, { resolution: 'rejected', comment }, ip),
    /** As `resolveMessage`, for the id of a plan. @throws PlatformError as `decidePlanAs` */
    resolve: (caller: Caller | null, planId: string, body: ResolveRequest, ip?: string): Promise<Resolved> =>
      resolvePlan(deps, caller, planId, body, ip),
    /** As `resolveAs`. @throws PlatformError as `decidePlanAs` */
    decideAs: (ref: PlanRef, body: DecisionRequest, identify: Identify): Promise<Resolved> =>
      decidePlanAs(deps, ref, body, identify),
    /** What a callback token asks about a plan. @throws PlatformError unauthorized where the plan is gone */
    describe: (token: FoundToken & PlanRef): Promise<LinkedRequest> => describePlan(db, token),
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
