import { z } from 'zod';
import { ok, pageFields } from '../primitives.js';
import { EXTENSION, post, TENANT } from './operation.js';

/** What the rows of a usage report are for. */
export const UsageGroup = z.enum(['agent_type', 'model', 'instance_id', 'day', 'session', 'user', 'credential']);
export type UsageGroup = z.infer<typeof UsageGroup>;
const UsageRange = z.enum(['24h', '7d', '30d']);
export type UsageRange = z.infer<typeof UsageRange>;

const count = z.int();
const sums = {
  messages: count,
  dispatches: count,
  tool_calls: count,
  input_tokens: count,
  output_tokens: count,
  total_tokens: count,
  /** Of the dispatches, from the sending to their end. */
  duration_ms: count,
  cost_usd: z.number(),
};
export const UsageSums = z.object(sums);
export type UsageSums = z.infer<typeof UsageSums>;

/** `tokens` is `total_tokens`; `key` the value of the group. */
const UsageSort = z.enum(['tokens', ...(Object.keys(sums) as (keyof typeof sums)[]), 'key']);

/** A row has its group under the group's own name; null: of none, or not known. A day is `YYYY-MM-DD`. */
const key = z.string().nullable().optional();
export const UsageRow = z.object({
  agent_type: key,
  model: key,
  instance_id: key,
  day: key,
  session: key,
  user: key,
  credential: key,
  ...sums,
});
export type UsageRow = z.infer<typeof UsageRow>;

export const GetUsageRequest = z.strictObject({
  /** Only the totals. */
  summary: z.boolean().default(false),
  /** `24h`: this hour and the 23 before it; `7d`, `30d`: today (UTC) and the days before it. */
  range: UsageRange.default('7d'),
  group_by: UsageGroup.default('agent_type'),
  sort: UsageSort.default('tokens'),
  order: z.enum(['asc', 'desc']).default('desc'),
  ...pageFields,
});
export type GetUsageRequest = z.infer<typeof GetUsageRequest>;

export const GetUsageResponse = ok({
  range: UsageRange,
  totals: UsageSums,
  rows: z.array(UsageRow),
  /** Of the rows. */
  count: z.int(),
  page: z.int(),
  page_size: z.int(),
  total_pages: z.int(),
});
export type GetUsageResponse = z.infer<typeof GetUsageResponse>;

export const USAGE_OPERATIONS = {
  getUsage: post('/telemetry/get_usage', TENANT, 'What agents used: messages, tool calls, tokens, time and cost', {
    request: GetUsageRequest,
    response: GetUsageResponse,
    ...EXTENSION,
  }),
};
