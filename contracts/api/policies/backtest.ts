import { z } from 'zod';
import { AnyId, Instant, JsonObject, ok, Timestamp } from '../../primitives.js';
import { ADMIN, EXTENSION, post } from '../operation.js';
import { CreatePolicyRequest, PolicyDecision } from './policies.js';

const BacktestRequest = z.strictObject({
  /** Must be the caller's. */
  tenant_id: AnyId.optional(),
  /** As `create_policy` takes it. Nothing of it is stored. */
  policy: z.strictObject({
    ...CreatePolicyRequest.omit({ tenant_id: true }).shape,
    name: CreatePolicyRequest.shape.name.default('backtest'),
  }),
  /** 30 days before `to` by default, and at most. */
  from: Instant.optional(),
  /** Now by default. */
  to: Instant.optional(),
  /** The newest so many are examined. */
  limit: z.int().min(1).max(10_000).default(10_000),
});
export type BacktestRequest = z.infer<typeof BacktestRequest>;

/** An action of the past that the policy would have decided about. */
const BacktestSample = z.object({
  at: Timestamp,
  action: z.string(),
  decision: PolicyDecision,
  message_id: z.string().optional(),
  /** The request to a person about a tool call, which has its arguments. */
  request_id: z.string().optional(),
  plan_id: z.string().optional(),
  session_id: z.string().optional(),
  tool: z.string().optional(),
  agent_type: z.string().optional(),
  instance_id: z.string().optional(),
  /** Absent where they are long: the record of the message, request or plan has them. */
  arguments: JsonObject.optional(),
  /** The policy had allowed its `max_calls` before: the next one would have decided. */
  over_max_calls: z.literal(true).optional(),
});
export type BacktestSample = z.infer<typeof BacktestSample>;

const count = z.int().min(0);
export const BacktestResponse = ok({
  /** Actions of the scope that were looked at, the newest first. */
  examined: count,
  /** Of these, those that the policy applies to. */
  matched: count,
  /** Of these, those that it may apply to: what it depends on is not on the record. */
  unknown: count,
  /** What it would have decided about those that matched. `deny` too where its evaluator failed. */
  by_decision: z.object({ allow: count, deny: count, require_approval: count, audit: count }),
  /** Of those that matched, calls that came after it had allowed its `max_calls`: the next policy would have decided. */
  over_max_calls: count,
  /** The newest of those that matched. */
  samples: z.array(BacktestSample),
  /** The limit or the time was used up: only the newest part of the period was examined. */
  sampled: z.boolean(),
});
export type BacktestResponse = z.infer<typeof BacktestResponse>;

export const BACKTEST_OPERATIONS = {
  backtestPolicy: post('/policies/backtest', ADMIN, 'What a policy would have decided about the past', {
    request: BacktestRequest,
    response: BacktestResponse,
    ...EXTENSION,
  }),
};
