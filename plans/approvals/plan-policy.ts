import type { Part } from '../../contracts/a2a/parts.js';
import type { Caller } from '../../contracts/api/auth.js';
import { digestOf } from '../../messages/digest.js';
import type { NewInputRequest } from '../../messages/input/ask.js';
import { approvalRequest } from '../../messages/policy-requests.js';
import { type EnforceDeps, enforce, recordDecision } from '../../policy/enforce.js';
import type { PolicyRequest } from '../../policy/policy-request.js';
import { tokenFacts } from '../../policy/token-facts.js';
import {
  type AskingVerdict,
  type DecisionEvent,
  errorOfDenial,
  eventsOf,
  isUndecided,
  stricterTerms,
  undecidedError,
} from '../../policy/verdict.js';
import { PlatformError } from '../../runtime/errors.js';
import { newId } from '../../runtime/ids.js';
import type { GraphStep, NewPlan } from '../plan-graph.js';
import { creatorOf, type PlanRow, type StepRow } from '../plan-rows.js';
import type { PlanError } from '../steps/next-moves.js';

/** The agents that a step asks for. */
export function agentOf(step: Pick<StepRow, 'agent_type' | 'instance_id' | 'skill_id'> | GraphStep) {
  const { agent_type, instance_id, skill_id } = step;
  return {
    ...(agent_type && { agent_type }),
    ...(instance_id && { instance_id }),
    ...(skill_id && { skill_id }),
  };
}

/** What policies are asked about a new plan. */
export function createRequest(
  caller: Caller,
  plan: Pick<NewPlan | PlanRow, 'description' | 'max_parallel' | 'auto_approve' | 'session_id'>,
  steps: readonly (GraphStep | StepRow)[],
): PolicyRequest {
  const { description, max_parallel, auto_approve, session_id } = plan;
  const shown = steps.map((step) => ({
    ...{ step_id: step.step_id, description: step.description, parts: step.parts, ...agentOf(step) },
    requires_approval: step.requires_approval,
  }));
  const args = { description, max_parallel, auto_approve, steps: shown };
  return { scope: 'plan', action: 'create', arguments: args, session: { session_id }, token: tokenFacts(caller) };
}

/**
 * Lets the policies of scope `plan` decide about a new plan.
 * @returns what they demand of its approval, null for nothing; and events to be written with the plan
 * @throws PlatformError forbidden, which is recorded; SERVICE_UNAVAILABLE while the policies cannot be read
 */
export async function decideCreate(
  deps: EnforceDeps,
  caller: Caller,
  plan: NewPlan,
  steps: readonly GraphStep[],
): Promise<{ approval: AskingVerdict | null; events: DecisionEvent[] }> {
  if (!deps.policies.concerns(caller.tenant_id, 'plan')) return { approval: null, events: [] };
  const request = createRequest(caller, plan, steps);
  const verdict = await deps.policies.decide(caller.tenant_id, request);
  if (verdict.decision === 'allow') return { approval: null, events: eventsOf(verdict, request) };
  if (verdict.decision === 'deny') {
    if (isUndecided(verdict)) throw undecidedError(verdict);
    const events = eventsOf(verdict, request);
    await deps.db.tenant(caller.tenant_id, (tx) => recordDecision(tx, caller.tenant_id, plan.session_id, events));
    throw new PlatformError('forbidden', `The plan is denied: ${verdict.by.reason}`);
  }
  return { approval: verdict, events: eventsOf(verdict, request) };
}

/**
 * Lets the policies decide about the approval of a plan, which cannot wait for another approval.
 * @param token what they see of the approver's access token, if there is one
 * @param plan without an id where it is approved as it is created
 * @returns events to be written with it
 * @throws PlatformError forbidden, SERVICE_UNAVAILABLE
 */
export async function decideApprove(
  deps: EnforceDeps,
  token: PolicyRequest['token'],
  plan: Pick<PlanRow, 'tenant_id' | 'session_id' | 'description'> & { plan_id?: string },
): Promise<DecisionEvent[]> {
  const { tenant_id, plan_id = '', session_id, description } = plan;
  if (!deps.policies.concerns(tenant_id, 'plan')) return [];
  const args = { plan_id, description };
  const session = { session_id };
  return enforce(deps, tenant_id, {
    scope: 'plan',
    action: 'approve',
    arguments: args,
    session,
    ...(token && { token }),
  });
}

/** What is decided about an attempt of a step. With `waitMs` it is not decided yet, and to be asked again after so many milliseconds at least. */
export type StepDecision =
  | { error: PlanError; waitMs?: number; events: DecisionEvent[] }
  | { error?: never; ask?: NewInputRequest; events: DecisionEvent[] };

const BUSY: PlanError = { code: 'RATE_LIMITED', message: 'The evaluators of the policies about the step are busy.' };
const TITLE_CHARS_MAX = 200;

/** What a request about a step says of it. Its message is the message that waits. */
const aboutStep = ({ plan_id, step_id, description }: StepRow) => ({
  title: `Step ${step_id} of a plan: ${description}`.slice(0, TITLE_CHARS_MAX).toWellFormed(),
  arguments: { plan_id, step_id, description },
});

/** The request to a human that a step itself asks for. */
function stepRequest(step: StepRow, request: PolicyRequest, approvalMs: number): NewInputRequest {
  const { plan_id, step_id, description } = step;
  const { arguments: { parts } = {}, ...policy_request } = request;
  return {
    ...{ request_id: newId('req'), kind: 'approval', source: 'plan', stage: 'plan', action: 'step' },
    ...aboutStep(step),
    prompt: description,
    policy_request,
    terms: { approvers: [], quorum: 1, timeout_seconds: approvalMs / 1_000, allow_self: true, on_reject: 'fail' },
    digest: digestOf({ plan_id, step_id, agent: request.agent ?? {}, parts }),
  };
}

/**
 * Lets the policies decide about an attempt of a step, and asks for the approval that the step itself requires, once for all attempts.
 * @param deps.approved a human has approved an attempt of the step before
 * @param parts what is sent
 * @throws PlatformError SERVICE_UNAVAILABLE while the policies cannot be read
 */
export async function decideStep(
  { policies, approvalMs, approved }: Pick<EnforceDeps, 'policies'> & { approvalMs: number; approved: boolean },
  plan: PlanRow,
  step: StepRow,
  parts: Part[],
): Promise<StepDecision> {
  const { tenant_id, plan_id, session_id } = plan;
  const { step_id, description } = step;
  const request: PolicyRequest = {
    ...{ scope: 'plan', action: 'step', agent: agentOf(step), session: { session_id } },
    arguments: { plan_id, step_id, description, parts },
    token: tokenFacts(creatorOf(plan)),
  };
  const asksItself = step.requires_approval && !approved;
  const own = asksItself ? { ask: stepRequest(step, request, approvalMs) } : {};
  if (!policies.concerns(tenant_id, 'plan')) return { ...own, events: [] };
  // Beyond what the tenant may ask at once an evaluator fails, which would deny steps of a plan that has many at once.
  if (policies.isBusy(tenant_id) && policies.needsWebhook(tenant_id, request))
    return { error: BUSY, waitMs: 0, events: [] };
  const verdict = await policies.decide(tenant_id, request);
  const events = eventsOf(verdict, request);
  if (verdict.decision === 'allow') return { ...own, events };
  if (verdict.decision === 'require_approval') {
    const terms = asksItself ? stricterTerms(verdict.terms, approvalMs / 1_000) : verdict.terms;
    return { ask: { ...approvalRequest({ ...verdict, terms }, request, 'plan'), ...aboutStep(step) }, events };
  }
  if (isUndecided(verdict)) throw undecidedError(verdict);
  return { error: errorOfDenial(verdict), events };
}
