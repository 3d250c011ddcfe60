import { z } from 'zod';
import { LIMITS } from '../../limits.js';
import { AgentType, AnyId, Instant, ok, okList, Principal, Timestamp, UserId } from '../../primitives.js';
import { InputRequest, RequestOutcome, ResolveRequest } from '../messages.js';
import { CONFLICT, EXTENSION, OWN, post, TENANT } from '../operation.js';
import { ApprovalPrincipal } from './approvals.js';

/** States of a request. `withdrawn`: nobody needs to answer any more, because its message or plan has ended or gone on. */
const RequestState = z.enum(['open', 'decided', 'expired', 'withdrawn']);
export type RequestState = z.infer<typeof RequestState>;

/** A request to people: about a message, or about a plan as a whole. */
export const RequestRecord = z.object({
  request_id: z.string(),
  message_id: z.string().optional(),
  plan_id: z.string().optional(),
  session_id: z.string(),
  /** Of the message: the type that has it, or that it is for. */
  agent_type: z.string().optional(),
  user_id: z.string().optional(),
  sent_by: Principal,
  state: RequestState,
  input_request: InputRequest,
  /** How the text of the message, or the description of the plan, begins. Empty where a message has no text, or is large. */
  about: z.string(),
  /** Whether an answer of the caller would be taken. */
  may_answer: z.boolean(),
  decided: z
    .object({
      /** `expired` where nobody decided in time. */
      resolution: z.string(),
      /** `name`: that of the credential or person; not for end users. */
      principals: z.array(ApprovalPrincipal.extend({ name: z.string().optional() })),
      at: Timestamp,
      comment: z.string().optional(),
    })
    .optional(),
  outcome: RequestOutcome.optional(),
  /** In a list: the page has no room for the request's form and arguments. `/requests/get_by_id` has them. */
  truncated: z.literal(true).optional(),
});
export type RequestRecord = z.infer<typeof RequestRecord>;

export const RequestsGetRequest = z.strictObject({
  state: z.enum([...RequestState.options, 'all']).default('open'),
  /** True: only those that the caller may answer now. */
  mine: z.boolean().optional(),
  /** One of the request's `approvers`, as the policy names it. */
  approver: z.string().min(1).max(256).optional(),
  tool: z.string().min(1).max(256).optional(),
  agent_type: AgentType.optional(),
  user_id: UserId.optional(),
  session_id: AnyId.optional(),
  kind: InputRequest.shape.kind.optional(),
  source: InputRequest.shape.source.optional(),
  /** Asked before this time. */
  before: Instant.optional(),
  /** Asked at or after this time. */
  after: Instant.optional(),
  sort: z.enum(['oldest', 'newest', 'expires']).default('oldest'),
  page_size: z.int().min(1).max(LIMITS.pageSizeMax).default(LIMITS.pageSizeDefault),
  cursor: z.string().min(1).max(1_024).optional(),
});
export type RequestsGetRequest = z.infer<typeof RequestsGetRequest>;
export const RequestsGetResponse = okList({ requests: z.array(RequestRecord) });

const OneRequest = z.strictObject({ request_id: AnyId });
export const RequestGetByIdResponse = ok({ request: RequestRecord });

export const RequestGetSimilarResponse = ok({ requests: z.array(RequestRecord) });

export const ResolveManyRequest = z.strictObject({
  request_ids: z.array(AnyId).min(1).max(LIMITS.resolvedTogetherMax),
  /** A word, as `/messages/{id}/resolve` takes it. */
  resolution: z.string().min(1).max(64),
  comment: ResolveRequest.shape.comment,
  /** Nothing is decided: the results say what would be. */
  dry_run: z.boolean().default(false),
});
export type ResolveManyRequest = z.infer<typeof ResolveManyRequest>;
export const ResolveManyResponse = ok({
  /** In the order of `request_ids`. `code`: why it was refused, as the error of `/messages/{id}/resolve` has it. */
  results: z.array(z.object({ request_id: z.string(), ok: z.boolean(), code: z.string().optional() })),
});
export type ResolveManyResponse = z.infer<typeof ResolveManyResponse>;

/** How a principal proved who decides. */
const ReceiptPrincipal = ApprovalPrincipal.extend({
  method: z.enum(['access_token', 'callback_token', 'link', 'slack', 'temporal_signal', 'timeout']),
});

/** The payload of a receipt (docs/approvals.md). Digests are keyed by the salt of the request. */
export const Receipt = z.strictObject({
  request_id: z.string(),
  message_id: z.string().optional(),
  plan_id: z.string().optional(),
  tenant_id: z.string(),
  request_digest: z.string(),
  resolution: z.string(),
  arguments_digest: z.string().optional(),
  principals: z.array(ReceiptPrincipal),
  decided_at: Timestamp,
});
export type Receipt = z.infer<typeof Receipt>;
export const GetReceiptResponse = ok({
  /** A compact JWS of type `fleet-receipt+jwt`. */
  receipt: z.string(),
  /** The key of its digests, in base64url. Deleted with the message or plan. */
  salt: z.string(),
});

/** Requests to people: what they are asked, who decided, and what came of it (docs/approvals.md). */
export const REQUEST_OPERATIONS = {
  getRequests: post('/requests/get', OWN, 'List requests to people, about messages and plans', {
    request: RequestsGetRequest,
    response: RequestsGetResponse,
    ...EXTENSION,
  }),
  getRequest: post('/requests/get_by_id', OWN, 'Read a request to people', {
    request: OneRequest,
    response: RequestGetByIdResponse,
    ...EXTENSION,
  }),
  getSimilarRequests: post('/requests/get_similar', OWN, 'Earlier decisions about the same, the newest first', {
    request: OneRequest,
    response: RequestGetSimilarResponse,
    ...EXTENSION,
  }),
  resolveRequests: post('/requests/resolve_many', TENANT, 'Answer many requests, each as by /messages/{id}/resolve', {
    request: ResolveManyRequest,
    response: ResolveManyResponse,
    ...EXTENSION,
  }),
  getReceipt: post('/requests/get_receipt', OWN, 'A signed receipt of a decision', {
    request: OneRequest,
    response: GetReceiptResponse,
    ...CONFLICT,
    ...EXTENSION,
  }),
};
