import { z } from 'zod';
import { Part } from '../a2a/parts.js';
import { LIMITS } from '../limits.js';
import {
  AgentType,
  AnyId,
  cursorFields,
  InstanceId,
  Instant,
  isOneWay,
  ONE_WAY,
  ok,
  okCursorPage,
  Reason,
  Timestamp,
  within,
} from '../primitives.js';
import { InputRequest } from './messages.js';
import { CONFLICT, EXTENSION, OWN, post, TENANT } from './operation.js';
import { ApprovalRecord } from './policies/approvals.js';

/** `proposed`: it waits for its approval. */
const PlanState = z.enum(['proposed', 'running', 'completed', 'failed', 'canceled', 'rejected']);
export type PlanState = z.infer<typeof PlanState>;

/** `failed`: out of time or attempts; `skipped`: a step that it depends on did not complete, or the plan ended first. */
const StepState = z.enum(['pending', 'running', 'input-required', 'completed', 'failed', 'skipped']);
export type StepState = z.infer<typeof StepState>;

/** The id of a step, unique in its plan. */
const STEP_ID = '[A-Za-z0-9][A-Za-z0-9_-]{0,63}';
const StepId = z.string().regex(new RegExp(`^${STEP_ID}$`), `must match ${STEP_ID}`);

const NewStep = z.strictObject({
  /** By default `step_1` for the first step, `step_2` for the second. */
  step_id: StepId.optional(),
  description: z.string().min(1).max(4096),
  agent_type: AgentType.optional(),
  instance_id: InstanceId.optional(),
  skill_id: z.string().min(1).max(256).optional(),
  /** What the agent is sent. In a text `{{steps.ID.output}}` stands for the output of that step, on which this one then depends. */
  message: within(LIMITS.messagePartsBytes, z.union([z.string().min(1), z.array(Part).min(1)])),
  depends_on: z.array(StepId).max(LIMITS.planSteps).default([]),
  requires_approval: z.boolean().default(false),
  /** For all attempts together. The time for which the step waits for a human does not count. */
  timeout_seconds: z.int().min(1).max(LIMITS.planStepSecondsMax).optional(),
  max_attempts: z.int().min(1).max(LIMITS.planStepAttemptsMax).default(1),
});
export type NewStep = z.infer<typeof NewStep>;

/** A plan as an agent proposes it: arguments of `plan.create`, and the member `plan` of a data part in a result. */
export const PlanProposal = z.strictObject({
  description: z.string().min(1).max(4096),
  steps: z.array(NewStep).min(1).max(LIMITS.planSteps),
  /** Steps that are under way at once, those that wait for a human included. */
  max_parallel: z.int().min(1).max(LIMITS.planParallelMax).default(4),
});
export type PlanProposal = z.infer<typeof PlanProposal>;

/** Body of `/plans/create`. */
export const PlanCreateRequest = z.strictObject({
  session_id: AnyId,
  ...PlanProposal.shape,
  /** The plan starts at once, approved by its creator. */
  auto_approve: z.boolean().default(false),
});
export type PlanCreateRequest = z.infer<typeof PlanCreateRequest>;

const Failure = z.object({ code: z.string(), message: z.string() });

const PlanStep = z.object({
  step_id: z.string(),
  /** Counts from 0, as `failed_step` does. */
  index: z.int(),
  description: z.string(),
  agent_type: z.string().nullable(),
  instance_id: z.string().nullable(),
  skill_id: z.string().nullable(),
  /** As given: outputs of other steps are not filled in. */
  message: z.array(Part),
  /** With the steps whose outputs its message uses. */
  depends_on: z.array(z.string()),
  requires_approval: z.boolean(),
  timeout_seconds: z.int().nullable(),
  max_attempts: z.int(),
  state: StepState,
  attempts: z.int(),
  /** The message of the newest attempt. */
  message_id: z.string().nullable(),
  /** The agent that works on it, or was the last to. */
  worker: z.object({ agent_type: z.string(), instance_id: z.string(), since: Timestamp }).optional(),
  started_at: Timestamp.optional(),
  ended_at: Timestamp.optional(),
  duration_ms: z.int().optional(),
  /** Why it failed or was skipped; of a pending one why its last attempt failed, or for which room it waits (RATE_LIMITED, QUOTA_EXCEEDED). */
  error: Failure.optional(),
});
export type PlanStep = z.infer<typeof PlanStep>;

/** How many steps are in each state. */
const Progress = z.object({
  total: z.int(),
  pending: z.int(),
  running: z.int(),
  'input-required': z.int(),
  completed: z.int(),
  failed: z.int(),
  skipped: z.int(),
});

export const PlanSummary = z.object({
  plan_id: z.string(),
  tenant_id: z.string(),
  session_id: z.string(),
  description: z.string(),
  state: PlanState,
  max_parallel: z.int(),
  auto_approve: z.boolean(),
  created_by: z.string(),
  /** The type of the agent that proposed it; null for a caller that is not an agent. */
  proposed_by: z.string().nullable(),
  created_at: Timestamp,
  /** Nobody approved it until then: it is rejected. Of a proposed plan only. */
  approval_expires_at: Timestamp.optional(),
  /** How many credentials must approve it. */
  quorum: z.int(),
  /** Who may decide about it beside those with the scope `admin`, as the policy names them. */
  approvers: z.array(z.string()),
  /** Why a policy demands its approval. */
  approval_reason: z.string().optional(),
  started_at: Timestamp.optional(),
  ended_at: Timestamp.optional(),
  duration_ms: z.int().optional(),
  /** Why it failed, was canceled or rejected. */
  error: Failure.optional(),
  /** The index of the first step that failed. */
  failed_step: z.int().optional(),
  progress: Progress,
});
export type PlanSummary = z.infer<typeof PlanSummary>;

/**
 * `decisions`: who approved or rejected the plan, the oldest first. `input_request`: of a proposed plan, what is asked; its `digest` is that of
 * session, description and steps.
 */
export const Plan = PlanSummary.extend({
  input_request: InputRequest.optional(),
  decisions: z.array(ApprovalRecord.omit({ ip: true })),
  steps: z.array(PlanStep),
});
export type Plan = z.infer<typeof Plan>;

export const PlansGetRequest = z
  .strictObject({
    session_id: AnyId.optional(),
    state: PlanState.optional(),
    /** Created at or after this time. */
    since: Instant.optional(),
    /** Created before this time. */
    until: Instant.optional(),
    ...cursorFields,
  })
  .refine(isOneWay, ONE_WAY);
export type PlansGetRequest = z.infer<typeof PlansGetRequest>;
export const PlansGetResponse = okCursorPage({ plans: z.array(PlanSummary) });
export const PlanResponse = ok({ plan: Plan });

const PlanRef = z.strictObject({ plan_id: AnyId });
const Decision = z.strictObject({ plan_id: AnyId, comment: z.string().max(4096).optional() });

export const PLAN_OPERATIONS = {
  createPlan: post('/plans/create', OWN, 'Propose a plan: a graph of steps, each of which is a message to an agent', {
    request: PlanCreateRequest,
    response: PlanResponse,
    ...CONFLICT,
    ...EXTENSION,
  }),
  getPlans: post('/plans/get', OWN, 'List plans', {
    request: PlansGetRequest,
    response: PlansGetResponse,
    ...EXTENSION,
  }),
  getPlan: post('/plans/get_by_id', OWN, 'Read a plan with its steps', {
    request: PlanRef,
    response: PlanResponse,
    ...EXTENSION,
  }),
  approvePlan: post(
    '/plans/approve',
    TENANT,
    'Approve a proposed plan, which then starts; needs the scope admin, or to be an approver',
    {
      request: Decision,
      response: PlanResponse,
      ...CONFLICT,
      ...EXTENSION,
    },
  ),
  rejectPlan: post('/plans/reject', TENANT, 'Reject a proposed plan; needs the scope admin, or to be an approver', {
    request: Decision,
    response: PlanResponse,
    ...CONFLICT,
    ...EXTENSION,
  }),
  cancelPlan: post('/plans/cancel', OWN, 'Cancel a plan with the messages of its steps', {
    request: z.strictObject({ plan_id: AnyId, reason: Reason }),
    response: PlanResponse,
    ...CONFLICT,
    ...EXTENSION,
  }),
};
