import { z } from 'zod';
import { LIMITS } from '../../limits.js';
import { AgentTypeOfAgents, AnyId, ok, okPage, pageFields, Timestamp } from '../../primitives.js';
import { Credential, CredentialCreateRequest } from '../auth.js';
import { EXTENSION, FULL, OPERATOR, post } from '../operation.js';

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
const SomeLimits = z.strictObject(TenantLimits.partial().shape);
export type SomeLimits = z.infer<typeof SomeLimits>;

/** The same for each user, each credential and each agent type; null: no limits for any of them. */
const keyed = {
  per_user: SomeLimits.nullable().optional(),
  per_credential: SomeLimits.nullable().optional(),
  per_agent_type: SomeLimits.nullable().optional(),
};
export const SetLimitsRequest = SomeLimits.extend(keyed);
export type SetLimitsRequest = z.infer<typeof SetLimitsRequest>;

export const TenantLimitsResponse = ok({
  limits: TenantLimits.extend(keyed),
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

export const TenantName = z.string().trim().min(1).max(256);
export const Tenant = z.object({
  tenant_id: z.string(),
  name: z.string(),
  default_agent_type: z.string().nullable(),
  /** What the tenant may set as its limits at most. */
  limits: TenantLimits,
  created_at: Timestamp,
  /** Its tokens have ended, and what it has is being erased. */
  deleted_at: Timestamp.nullable(),
});
export type Tenant = z.infer<typeof Tenant>;

const tenantFields = {
  name: TenantName,
  default_agent_type: AgentTypeOfAgents.nullable().optional(),
  /** Ceilings of the tenant's own limits; null: none. */
  limits: SomeLimits.optional(),
};
const UpdateTenantRequest = z.strictObject({ ...tenantFields, tenant_id: AnyId, name: TenantName.optional() });
export type UpdateTenantRequest = z.infer<typeof UpdateTenantRequest>;
const TenantResponse = ok({ tenant: Tenant });

/** For operators of the platform. */
export const ALL_TENANTS_OPERATIONS = {
  createTenant: post('/tenants/create', OPERATOR, 'Create a tenant, with its first credential if asked', {
    request: z.strictObject({ ...tenantFields, credential: CredentialCreateRequest.optional() }),
    response: TenantResponse.extend({ credential: Credential.optional(), client_secret: z.string().optional() }),
    ...EXTENSION,
  }),
  getTenants: post('/tenants/get', OPERATOR, 'List the tenants, newest first', {
    request: z.strictObject(pageFields),
    response: okPage({ tenants: z.array(Tenant) }),
    ...EXTENSION,
  }),
  getTenant: post('/tenants/get_by_id', OPERATOR, 'Read a tenant', {
    request: z.strictObject({ tenant_id: AnyId }),
    response: TenantResponse,
    ...EXTENSION,
  }),
  updateTenant: post('/tenants/update', OPERATOR, 'Change a tenant; only given fields change', {
    request: UpdateTenantRequest,
    response: TenantResponse,
    ...EXTENSION,
  }),
  deleteTenant: post('/tenants/delete', OPERATOR, 'Delete a tenant: its tokens end, and all that it has is erased', {
    request: z.strictObject({ tenant_id: AnyId }),
    response: ok({ tenant_id: z.string() }),
    ...EXTENSION,
  }),
};

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
