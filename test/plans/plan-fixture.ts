import { type Plan, PlanResponse } from '../../contracts/api/plans.js';
import { PolicyResponse } from '../../contracts/api/policies/policies.js';
import { SessionInitResponse } from '../../contracts/api/sessions.js';
import type { ApiClient } from '../setup/platform/api-client.js';
import { type UntilOptions, until } from '../setup/until.js';

type Step = Record<string, unknown>;

/** A step for agents of this type; its id is its description too. */
export function step(step_id: string, agent_type: string, message: unknown, more: Step = {}): Step {
  return { step_id, description: step_id, agent_type, message, ...more };
}

export async function newSession(client: ApiClient, body: object = {}): Promise<string> {
  return (await client.ok('/sessions/init', body, SessionInitResponse)).session_id;
}

/** Creates a plan in a session of its own, approved at once unless it says otherwise. */
export async function createPlan(client: ApiClient, steps: Step[], more: Step = {}): Promise<Plan> {
  const session_id = more.session_id ?? (await newSession(client));
  const body = { session_id, description: 'a plan', steps, auto_approve: true, ...more };
  return (await client.ok('/plans/create', body, PlanResponse)).plan;
}

export async function readPlan(client: ApiClient, planId: string): Promise<Plan> {
  return (await client.ok('/plans/get_by_id', { plan_id: planId }, PlanResponse)).plan;
}

/** A policy of scope `plan` while `work` is under way; about the creation of plans where it does not say otherwise. */
export async function withPolicy(client: ApiClient, policy: object, work: () => Promise<void>): Promise<void> {
  const body = { scope: 'plan', name: 'a policy', reason: 'because', match: { actions: ['create'] }, ...policy };
  const { policy_id } = (await client.ok('/policies/create_policy', body, PolicyResponse)).policy;
  try {
    await work();
  } finally {
    await client.post('/policies/delete_policy', { policy_id });
  }
}

/** The plan once it is as `is` says. */
function untilIs(client: ApiClient, planId: string, is: (plan: Plan) => boolean, options: UntilOptions): Promise<Plan> {
  return until(async () => {
    const plan = await readPlan(client, planId);
    return is(plan) ? plan : Promise.reject(new Error(summary(plan)));
  }, options);
}

/** The plan once it is in this state. */
export function untilPlan(client: ApiClient, planId: string, state: string, timeoutMs = 60_000): Promise<Plan> {
  const what = `plan ${planId} in state ${state}`;
  return untilIs(client, planId, (plan) => plan.state === state, { timeoutMs, what });
}

/** The plan once a step of it is in this state. */
export function untilStep(client: ApiClient, planId: string, stepId: string, state: string): Promise<Plan> {
  const what = `step ${stepId} of ${planId} in state ${state}`;
  return untilIs(client, planId, (plan) => stepStates(plan)[stepId] === state, { what });
}

/** The states of the steps by their ids. */
export function stepStates(plan: Plan): Record<string, string> {
  return Object.fromEntries(plan.steps.map(({ step_id, state }) => [step_id, state]));
}

function summary(plan: Plan): string {
  return `${plan.state} ${JSON.stringify(plan.error ?? {})} ${JSON.stringify(stepStates(plan))}`;
}
