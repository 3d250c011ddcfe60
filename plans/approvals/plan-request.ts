import type { Tx } from '../../db/pool.js';
import { digestOf } from '../../messages/digest.js';
import { inputRequestCall, type NewInputRequest } from '../../messages/input/ask.js';
import type { DescribedRequest } from '../../messages/input/by-link.js';
import { readableRequest } from '../../messages/read/readable.js';
import type { AskedRequest } from '../../messages/read/rows.js';
import { type AskingVerdict, askerOf } from '../../policy/verdict.js';
import { newId } from '../../runtime/ids.js';
import type { GraphStep, NewPlan } from '../plan-graph.js';
import type { PlanRef, PlanRow } from '../plan-rows.js';
import { agentOf } from './plan-policy.js';

/** The request for the approval of a plan: one for each plan. */
export type PlanRequest = AskedRequest & DescribedRequest;

const TITLE_CHARS_MAX = 200;
/** Why a plan waits that no policy holds back. */
const REASON = 'The plan starts when it is approved.';

/** What is approved with a plan: whatever its workflow is going to do. */
function digestOfPlan({ session_id, description, max_parallel }: NewPlan, steps: readonly GraphStep[]): string {
  const graph = steps.map((step) => ({
    ...{ step_id: step.step_id, description: step.description, agent: agentOf(step), parts: step.parts },
    depends_on: step.depends_on.map((place) => steps[place]?.step_id ?? ''),
    ...{ requires_approval: step.requires_approval, max_attempts: step.max_attempts },
    timeout_seconds: step.timeout_seconds ?? null,
  }));
  return digestOf({ session_id, description, max_parallel, steps: graph });
}

/** The request about a new plan. @param approvalMs how long somebody may take where no policy says otherwise */
export function planRequest(
  plan: NewPlan,
  steps: readonly GraphStep[],
  approval: AskingVerdict | null,
  approvalMs: number,
): NewInputRequest {
  const own = { approvers: [], quorum: 1, timeout_seconds: approvalMs / 1_000, allow_self: true };
  const terms = { ...(approval?.terms ?? own), on_reject: 'fail' as const };
  return {
    ...{ request_id: newId('req'), kind: 'approval', stage: 'proposal', action: 'create' },
    title: `Start a plan: ${plan.description}`.slice(0, TITLE_CHARS_MAX).toWellFormed(),
    ...(approval ? askerOf(approval) : { source: 'plan', prompt: REASON }),
    terms,
    digest: digestOfPlan(plan, steps),
  };
}

/** Writes the request about a plan that was just written. @param announced whether people are told of it */
export async function openPlanRequest(
  tx: Tx,
  { tenant_id, plan_id, session_id }: PlanRow,
  request: NewInputRequest,
  announced: boolean,
): Promise<void> {
  const call = JSON.stringify(inputRequestCall(request));
  await tx.query('SELECT open_plan_request($1, $2, $3, $4, $5)', [tenant_id, plan_id, session_id, call, announced]);
}

/** The request about a plan, in whatever state. @throws Error for a plan without one, which no transaction writes */
export async function readPlanRequest(tx: Tx, { tenant_id, plan_id }: PlanRef): Promise<PlanRequest> {
  const [request] = await tx.query<PlanRequest>(
    'SELECT * FROM request_details WHERE tenant_id = $1 AND plan_id = $2',
    [tenant_id, plan_id],
    'read_plan_request',
  );
  if (!request) throw new Error('a plan has no request');
  return readableRequest(request);
}

/** Ends the request about a plan if nobody has decided. */
export async function closePlanRequest(
  tx: Tx,
  { tenant_id, plan_id }: PlanRef,
  state: 'expired' | 'withdrawn',
): Promise<void> {
  await tx.query(
    `UPDATE input_requests SET state = $3, ended_at = now() WHERE tenant_id = $1 AND plan_id = $2 AND state = 'pending'`,
    [tenant_id, plan_id, state],
    'close_plan_request',
  );
}
