import { z } from 'zod';
import { A2aMessage } from '../../a2a/a2a.js';
import { Artifact } from '../../a2a/parts.js';
import { AnyId, Instant, JsonObject, ok, Timestamp } from '../../primitives.js';
import { AgentInputRequest, Executor, InputRequest, RequestOutcome } from '../messages.js';
import { ADMIN, EXTENSION, OWN, post } from '../operation.js';

/**
 * Who decided: `id` is a credential, a person (of a token that is limited to an end user, its `user_id`), the rule whose delivery carried the token, a
 * Slack user, or `expiry` of the platform itself.
 */
export const ApprovalPrincipal = z.object({
  type: z.enum(['credential', 'person', 'callback', 'page', 'slack', 'temporal', 'system']),
  id: z.string(),
});
export type ApprovalPrincipal = z.infer<typeof ApprovalPrincipal>;

/** One decision of the audit trail. */
export const ApprovalRecord = z.object({
  approval_id: z.string(),
  request_id: z.string(),
  kind: InputRequest.shape.kind,
  source: InputRequest.shape.source,
  /** What was decided about. Erased with the message or plan, as `arguments` are. */
  title: z.string().optional(),
  /** Of a tool call, as are `arguments` (those that this decision was about) and `executor`. */
  tool: z.string().optional(),
  arguments: JsonObject.optional(),
  executor: Executor.optional(),
  /** In `/messages/get_approvals`: the answer has no room for the arguments. */
  truncated: z.literal(true).optional(),
  /** What came of the request; absent for a rejection, and while nobody knows. */
  outcome: RequestOutcome.optional(),
  /** The word of the decision; `expired` where nobody decided in time. */
  resolution: z.string(),
  principal: ApprovalPrincipal,
  comment: z.string().optional(),
  /** SHA-256, in hexadecimal, of the canonical JSON (RFC 8785) of what was decided about. */
  digest: z.string(),
  /** This decision approved other arguments than were asked about before it. */
  arguments_changed: z.boolean(),
  ip: z.string().optional(),
  decided_at: Timestamp,
});
export type ApprovalRecord = z.infer<typeof ApprovalRecord>;

/** Of a message, or of a plan as a whole. */
const GetApprovalsRequest = z
  .strictObject({ message_id: AnyId.optional(), plan_id: AnyId.optional() })
  .refine((body) => (body.message_id === undefined) !== (body.plan_id === undefined), {
    message: 'needs exactly one of message_id and plan_id',
  });
export const GetApprovalsResponse = ok({ approvals: z.array(ApprovalRecord) });

/** One line of `/messages/export_approvals`, about a message or a plan. */
export const ExportedApproval = ApprovalRecord.extend({
  tenant_id: z.string(),
  message_id: z.string().optional(),
  plan_id: z.string().optional(),
});
export type ExportedApproval = z.infer<typeof ExportedApproval>;
export const ExportApprovalsRequest = z.strictObject({
  /** Decided at or after this time. */
  since: Instant.optional(),
  /** Decided before this time. */
  until: Instant.optional(),
});

/** What an agent has answered while a guard waits for a human: nobody else gets it before it is approved. */
export const HeldOutputResponse = ok({
  request_id: z.string(),
  digest: z.string(),
  output: z.object({
    /** `input-required`: a question of the agent, which is asked once it is approved. */
    state: z.enum(['completed', 'input-required']),
    artifacts: z.array(Artifact),
    status_message: A2aMessage.optional(),
    input_request: AgentInputRequest.optional(),
  }),
});

/** Approvals beside `/messages/{id}/resolve`: the audit trail of what humans decided, and held output. */
export const APPROVAL_OPERATIONS = {
  getApprovals: post(
    '/messages/get_approvals',
    OWN,
    'Who decided about a message or a plan, for whom it is or with the scope admin',
    {
      request: GetApprovalsRequest,
      response: GetApprovalsResponse,
      ...EXTENSION,
    },
  ),
  getHeldOutput: post(
    '/messages/get_held_output',
    ADMIN,
    'The output of an agent that a guard holds until somebody approves it',
    { request: z.strictObject({ message_id: AnyId }), response: HeldOutputResponse, ...EXTENSION },
  ),
  exportApprovals: post(
    '/messages/export_approvals',
    ADMIN,
    'All decisions of the tenant as JSON Lines, the oldest first',
    { request: ExportApprovalsRequest, response: ExportedApproval, lines: true, ...EXTENSION },
  ),
};
