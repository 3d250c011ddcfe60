import { z } from 'zod';
import { LIMITS } from '../../limits.js';
import { ok, Timestamp } from '../../primitives.js';
import { EXTENSION, FULL, post } from '../operation.js';

const amount = z.int().min(0).max(Number.MAX_SAFE_INTEGER);
const usd = z.number().min(0).max(LIMITS.costUsdMax);

/** What a tenant may use; null: no limit. Days and months are those of UTC. */
export const TenantLimits = z.object({
  messages_per_day: amount.nullable(),
  tokens_per_day: amount.nullable(),
  cost_usd_per_month: usd.nullable(),
});
export type TenantLimits = z.infer<typeof TenantLimits>;

/** Limits that are given replace the stored ones. */
export const SetLimitsRequest = z.strictObject(TenantLimits.partial().shape);
export type SetLimitsRequest = z.infer<typeof SetLimitsRequest>;

export const TenantLimitsResponse = ok({
  limits: TenantLimits,
  /** What has been used of today and of this month. */
  used: z.object({ messages: z.int(), tokens: z.int(), cost_usd: z.number() }),
  /** When the next day and the next month begin. */
  day_ends_at: Timestamp,
  month_ends_at: Timestamp,
});
export type TenantLimitsResponse = z.infer<typeof TenantLimitsResponse>;

/** US dollars for a million tokens of a model. */
export const ModelPrice = z.object({
  model: z.string().min(1).max(256),
  input_per_million: usd,
  output_per_million: usd,
});
export type ModelPrice = z.infer<typeof ModelPrice>;

export const SetPricesRequest = z
  .strictObject({
    ...ModelPrice.shape,
    /** With both null, the model has no price any more. */
    input_per_million: usd.nullable(),
    output_per_million: usd.nullable(),
  })
  .refine((price) => (price.input_per_million === null) === (price.output_per_million === null), {
    message: 'give both prices, or null for both',
  });
export type SetPricesRequest = z.infer<typeof SetPricesRequest>;
export const PricesResponse = ok({ prices: z.array(ModelPrice) });

export const TENANT_OPERATIONS = {
  getLimits: post('/tenants/get_limits', FULL, 'The quotas of the tenant, and what has been used of them', {
    request: z.strictObject({}),
    response: TenantLimitsResponse,
    ...EXTENSION,
  }),
  setLimits: post('/tenants/set_limits', FULL, 'Set quotas; null removes one', {
    request: SetLimitsRequest,
    response: TenantLimitsResponse,
    ...EXTENSION,
  }),
  getPrices: post('/tenants/get_prices', FULL, "The tenant's prices of models", {
    request: z.strictObject({}),
    response: PricesResponse,
    ...EXTENSION,
  }),
  setPrices: post('/tenants/set_prices', FULL, 'Set the price of a model, for what is used from then on', {
    request: SetPricesRequest,
    response: PricesResponse,
    ...EXTENSION,
  }),
};
