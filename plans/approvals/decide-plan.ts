import type { Caller } from '../../contracts/api/auth.js';
import type { MessageState, ResolveRequest } from '../../contracts/api/messages.js';
import { NO_AGENT } from '../../contracts/primitives.js';
import { recordEvent } from '../../db/events.js';
import type { Tx } from '../../db/pool.js';
import { rehearse } from '../../db/rehearsal.js';
import {
  checkCallbackToken,
  spendCallbackToken,
  type TakeToken,
  tenantOfToken,
} from '../../messages/input/callback-tokens.js';
import { byCaller, byToken, type Identify } from '../../messages/input/identify.js';
import { type Asker, principalName } from '../../messages/input/principals.js';
import { type Decision, readResolution } from '../../messages/input/resolution.js';
import type { DecisionRequest, Resolved } from '../../messages/input/resolve.js';
import { checkNamed, checkSeen, takePlanDecision, type Voter } from '../../messages/input/take-decision.js';
import { recordDecision } from '../../policy/enforce.js';
import type { DecisionEvent } from '../../policy/verdict.js';
import { PlatformError } from '../../runtime/errors.js';
import type { PlanDeps } from '../plan-deps.js';
import { rejectLocked } from '../plan-end.js';
import { lockPlan, type PlanRef, type PlanRow, requestWake } from '../plan-rows.js';
import { decideApprove } from './plan-policy.js';
import { type PlanRequest, readPlanRequest } from './plan-request.js';

/** The state of a plan in the words of messages, as `/messages/{id}/resolve` answers. */
const NEW_STATES = { proposed: 'input-required', running: 'working', rejected: 'failed' } satisfies Record<
  string,
  MessageState
>;
type Decided = keyof typeof NEW_STATES;

/** @throws PlatformError ALREADY_RESOLVED for a plan that runs, ALREADY_TERMINAL for one that has ended, also when its time ran out */
function requireProposed({ state }: PlanRow, { expires_at }: PlanRequest): void {
  if (state === 'running') throw new PlatformError('ALREADY_RESOLVED', 'The plan is already approved.');
  if (state !== 'proposed') throw new PlatformError('ALREADY_TERMINAL', `The plan is already ${state}.`);
  if (expires_at.getTime() <= Date.now())
    throw new PlatformError('ALREADY_TERMINAL', 'The time to decide about the plan ran out.');
}

/** Whose plan a request is about. */
export function askerOfPlan({ tenant_id, credential_id, agent_type }: PlanRow): Asker {
  return { tenant_id, senders: [credential_id], agent: agent_type === NO_AGENT ? null : { credential_id } };
}

/**
 * Records a decision about a locked plan that is proposed, and what follows from it: the plan starts with the last approval that it needs.
 * @throws PlatformError ALREADY_RESOLVED for a principal who has decided before, BAD_REQUEST for what is no decision
 */
export async function decideLocked(
  tx: Tx,
  plan: PlanRow,
  request: PlanRequest,
  voter: Voter,
  { decision, ...answer }: { decision: Decision | null } & Pick<DecisionRequest, 'comment' | 'arguments'>,
): Promise<Decided> {
  const invalid = { code: 'BAD_REQUEST' as const, text: 'resolution: not an answer to a request of kind' };
  const state = await takePlanDecision(tx, voter, request, { decision, invalid, ...answer });
  if (state === 'pending') return 'proposed';
  const { tenant_id, plan_id } = plan;
  const by = principalName(voter.principal);
  if (decision?.positive !== true) {
    await rejectLocked(tx, plan, by);
    return 'rejected';
  }
  await tx.query(`UPDATE plans SET state = 'running', started_at = now() WHERE tenant_id = $1 AND plan_id = $2`, [
    tenant_id,
    plan_id,
  ]);
  await recordEvent(tx, plan, 'plan.approved', { plan_id, approved_by: by });
  return 'running';
}

/** A plan that waits, with who decides about it. */
type Deciding = Voter & { plan: PlanRow; request: PlanRequest };

/**
 * Decides about a proposed plan in one transaction: of two concurrent decisions one succeeds. Policies decide about an approval before that.
 * @param identify runs again before the plan is locked
 * @throws PlatformError NOT_FOUND, forbidden, BAD_REQUEST, ALREADY_RESOLVED, ALREADY_TERMINAL, CALLBACK_TOKEN_EXPIRED, CONFLICT for another digest
 */
export async function decidePlanAs(
  deps: PlanDeps,
  ref: PlanRef,
  body: DecisionRequest,
  identify: Identify,
): Promise<Resolved> {
  const { db, wakesExpected } = deps;
  const decision = readResolution('approval', body.resolution, body.data);
  const deciding = async (tx: Tx, takeToken: TakeToken): Promise<Deciding> => {
    const { principal, request_id, seen } = await identify(tx, takeToken);
    const plan = await lockPlan(tx, ref);
    if (!plan) throw new PlatformError('NOT_FOUND', 'There is no plan of that plan_id.');
    const request = await readPlanRequest(tx, ref);
    const standsFor = await principal.mayAnswer(tx, askerOfPlan(plan), request);
    requireProposed(plan, request);
    checkNamed(request, [body.request_id, request_id], 'The request of that request_id is not that of the plan.');
    checkSeen(request, body.digest, seen);
    return { principal, standsFor, plan, request };
  };
  let events: DecisionEvent[] = [];
  if (decision?.positive && !body.dry_run) {
    const { principal, plan } = await db.tenant(ref.tenant_id, (tx) => deciding(tx, checkCallbackToken));
    events = await decideApprove(deps, principal.token, plan);
  }
  const { plan_id } = ref;
  const resolved = (state: Decided) => {
    return { message_id: plan_id, plan_id, new_state: NEW_STATES[state], resolution: body.resolution };
  };
  const decide = async (tx: Tx) => {
    const { plan, request, ...voter } = await deciding(tx, spendCallbackToken);
    const { comment, arguments: edited } = body;
    const decided = await decideLocked(tx, plan, request, voter, { decision, comment, arguments: edited });
    await recordDecision(tx, plan.tenant_id, plan.session_id, events);
    await requestWake(tx, plan);
    return decided;
  };
  if (body.dry_run) return resolved(await rehearse(db, ref.tenant_id, decide));
  const state = await db.tenant(ref.tenant_id, decide);
  wakesExpected();
  return resolved(state);
}

/** As `resolveMessage`, for the id of a plan. @throws PlatformError unauthorized, and as `decidePlanAs` */
export async function resolvePlan(
  deps: PlanDeps,
  caller: Caller | null,
  planId: string,
  body: ResolveRequest,
  ip?: string,
): Promise<Resolved> {
  if (caller) return decidePlanAs(deps, { tenant_id: caller.tenant_id, plan_id: planId }, body, byCaller(caller, ip));
  const token = body.callback_token ?? '';
  const tenant_id = await tenantOfToken(deps.db, token, planId);
  return decidePlanAs(deps, { tenant_id, plan_id: planId }, body, byToken(tenant_id, token, ip));
}
