import { z } from 'zod';
import { LIMITS } from '../../limits.js';
import {
  AgentType,
  AnyId,
  InstanceId,
  Instant,
  JsonObject,
  ok,
  pageFields,
  Timestamp,
  UserId,
  within,
} from '../../primitives.js';
import { ADMIN, CONFLICT, EXTENSION, post } from '../operation.js';
import { Match } from './policy-match.js';

/** What a policy is about. */
export const PolicyScope = z.enum(['admission', 'dispatch', 'tool', 'plan', 'session']);
export type PolicyScope = z.infer<typeof PolicyScope>;

export const PolicyDecision = z.enum(['allow', 'deny', 'require_approval', 'audit']);
export type PolicyDecision = z.infer<typeof PolicyDecision>;

/** Scopes, `sub`s, credential ids or Slack users. */
const Approvers = z.array(z.string().min(1).max(256)).max(100);

const Approval = z
  .strictObject({
    /** Distinct principals who must approve. */
    quorum: z.int().min(1).max(20).default(1),
    timeout_seconds: z
      .int()
      .min(1)
      .max(30 * 86_400)
      .default(86_400),
    reminder_seconds: z.int().min(1).optional(),
    escalate_to: Approvers.min(1).optional(),
    /** Whether the credential that sent the message may approve it. */
    allow_self: z.boolean().default(true),
    on_reject: z.enum(['fail', 'tell_agent']).default('fail'),
  })
  .refine(({ reminder_seconds = 0, timeout_seconds }) => reminder_seconds < timeout_seconds, {
    message: 'must be less than timeout_seconds',
    path: ['reminder_seconds'],
  });
export type Approval = z.infer<typeof Approval>;

const OnError = z.enum(['deny', 'require_approval']).default('deny');
const shared = { approval: Approval.optional() };
/** Decides whether a policy that matches applies; without a `type` each one does. `on_error`: what happens where that cannot be told. */
export const Evaluator = z.union([
  z.strictObject({ ...shared, type: z.literal('cel'), expression: z.string().min(1).max(2048), on_error: OnError }),
  z.strictObject({
    ...shared,
    type: z.literal('webhook'),
    url: z.string().min(1).max(2048),
    /** Null removes a stored one; absent in an update keeps it. */
    secret: z.string().min(1).max(512).nullable().optional(),
    timeout_ms: z.int().min(100).max(5_000).default(2_000),
    on_error: OnError,
    /** Ignored, so that a policy can be sent back as it was read. */
    secret_set: z.boolean().optional(),
  }),
  z.strictObject(shared),
]);
export type Evaluator = z.infer<typeof Evaluator>;

const fields = {
  name: z.string().min(1).max(128),
  decision: PolicyDecision,
  description: z.string().max(1024),
  match: Match,
  reason: z.string().max(1024),
  approvers: Approvers,
  evaluator: Evaluator,
  /** The lowest number is looked at first. */
  priority: z.int().min(-1_000_000).max(1_000_000),
  enabled: z.boolean(),
  /** The policy is not in force from this time on. Null: without an end. */
  end_at: Instant.nullable(),
  /** Of a policy of scope `tool` that allows: after so many calls it is not in force any more. Null: no bound. */
  max_calls: z.int().min(1).max(1_000_000).nullable(),
};
/** Must be the caller's. */
const tenant_id = AnyId.optional();

export const CreatePolicyRequest = z.strictObject({
  ...fields,
  tenant_id,
  scope: PolicyScope,
  description: fields.description.default(''),
  match: fields.match.default({}),
  reason: fields.reason.default(''),
  approvers: fields.approvers.default([]),
  evaluator: fields.evaluator.default({}),
  priority: fields.priority.default(100),
  enabled: fields.enabled.default(true),
  end_at: fields.end_at.default(null),
  max_calls: fields.max_calls.default(null),
});
export type CreatePolicyRequest = z.infer<typeof CreatePolicyRequest>;

const UpdatePolicyRequest = z.strictObject({ ...z.strictObject(fields).partial().shape, tenant_id, policy_id: AnyId });
export type UpdatePolicyRequest = z.infer<typeof UpdatePolicyRequest>;

const GetPoliciesRequest = z.strictObject({
  ...pageFields,
  tenant_id,
  scope: PolicyScope.optional(),
  enabled: z.boolean().optional(),
});
export type GetPoliciesRequest = z.infer<typeof GetPoliciesRequest>;

/** A policy as answers show it. Its evaluator is without a secret; `secret_set` tells whether there is one. */
export const Policy = z.object({
  policy_id: z.string(),
  tenant_id: z.string(),
  scope: PolicyScope,
  name: z.string(),
  decision: PolicyDecision,
  description: z.string(),
  match: Match,
  reason: z.string(),
  approvers: z.array(z.string()),
  evaluator: Evaluator,
  priority: z.int(),
  enabled: z.boolean(),
  /** Absent: without an end. */
  end_at: Timestamp.optional(),
  /** Absent, as is `calls_allowed`: no bound. */
  max_calls: z.int().optional(),
  /** How many calls it has allowed while it had a bound. */
  calls_allowed: z.int().optional(),
  created_at: Timestamp,
  updated_at: Timestamp,
  /** The principal of the last change, as in the audit. */
  updated_by: z.string().nullable(),
});
export type Policy = z.infer<typeof Policy>;

/** The answers of policy operations have no `ok`, except that of a deletion. */
export const PolicyResponse = z.object({ policy: Policy });
export const GetPoliciesResponse = z.object({
  count: z.int(),
  page: z.int(),
  page_size: z.int(),
  total_pages: z.int(),
  policies: z.array(Policy),
});

const TestPolicyRequest = z.strictObject({
  tenant_id,
  scope: PolicyScope,
  action: z.string().min(1).max(64),
  tool: z.string().min(1).max(256).optional(),
  agent_type: AgentType.optional(),
  instance_id: InstanceId.optional(),
  skill_id: z.string().min(1).max(256).optional(),
  session_id: AnyId.optional(),
  user_id: UserId.optional(),
  arguments: within(LIMITS.toolArgumentsBytes, JsonObject).optional(),
});
export type TestPolicyRequest = z.infer<typeof TestPolicyRequest>;

/** What became of one policy in a decision. `not_reached`: an earlier one had decided. */
const PolicyOutcome = z.enum(['decided', 'audited', 'not_matched', 'not_reached', 'disabled']);
export type PolicyOutcome = z.infer<typeof PolicyOutcome>;
const PolicyTrace = z.object({
  policy_id: z.string(),
  name: z.string(),
  decision: PolicyDecision,
  priority: z.int(),
  outcome: PolicyOutcome,
  /** Why, in a sentence. */
  explanation: z.string(),
});
export type PolicyTrace = z.infer<typeof PolicyTrace>;

export const TestPolicyResponse = z.object({
  decision: PolicyDecision.exclude(['audit']),
  /** The policy that decided; absent where none did, which allows. */
  policy_id: z.string().optional(),
  /** Whether a policy decided. */
  matched: z.boolean(),
  /** The policies of the scope in the order in which they are looked at. */
  trace: z.array(PolicyTrace),
});
export type TestPolicyResponse = z.infer<typeof TestPolicyResponse>;

const ofPolicy = z.strictObject({ tenant_id, policy_id: AnyId });

export const POLICY_OPERATIONS = {
  createPolicy: post('/policies/create_policy', ADMIN, 'Create a policy', {
    request: CreatePolicyRequest,
    response: PolicyResponse,
    ...CONFLICT,
    ...EXTENSION,
  }),
  getPolicies: post('/policies/get_policies', ADMIN, 'List policies', {
    request: GetPoliciesRequest,
    response: GetPoliciesResponse,
    ...EXTENSION,
  }),
  getPolicy: post('/policies/get_policy_by_id', ADMIN, 'Read a policy', {
    request: ofPolicy,
    response: PolicyResponse,
  }),
  updatePolicy: post('/policies/update_policy', ADMIN, 'Change a policy; only given fields change', {
    request: UpdatePolicyRequest,
    response: PolicyResponse,
  }),
  deletePolicy: post('/policies/delete_policy', ADMIN, 'Delete a policy', {
    request: ofPolicy,
    response: ok({ policy_id: z.string() }),
  }),
  testPolicy: post('/policies/test_policy', ADMIN, 'Decide without consequences, and say why', {
    request: TestPolicyRequest,
    response: TestPolicyResponse,
    ...EXTENSION,
  }),
};
