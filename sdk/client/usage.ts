import type { z } from 'zod';
import {
  type ModelPrice,
  PricesResponse,
  type SetLimitsRequest,
  type SetPricesRequest,
  TenantLimitsResponse,
} from '../../contracts/api/tenants.js';
import { type GetUsageRequest, GetUsageResponse } from '../../contracts/api/usage.js';
import type { CallOptions, PlatformApi } from './platform-api.js';

/** What agents used, the tenant's quotas, and its prices of models. */
export class Usage {
  readonly #api: PlatformApi;

  constructor(api: PlatformApi) {
    this.#api = api;
  }

  /** Totals, and one page of rows by `group_by` (`/telemetry/get_usage`). */
  get(request: Partial<GetUsageRequest> = {}, options: CallOptions = {}): Promise<z.infer<typeof GetUsageResponse>> {
    return this.#api.post('/telemetry/get_usage', request, GetUsageResponse, { ...options, retry: true });
  }

  /** The quotas, what has been used of them, and when they begin anew. Needs the scope `full`, as all that follow. */
  limits(options: CallOptions = {}): Promise<TenantLimitsResponse> {
    return this.#api.post('/tenants/get_limits', {}, TenantLimitsResponse, { ...options, retry: true });
  }

  /** Sets the given quotas; null removes one. */
  setLimits(limits: SetLimitsRequest, options: CallOptions = {}): Promise<TenantLimitsResponse> {
    return this.#api.post('/tenants/set_limits', limits, TenantLimitsResponse, { ...options, retry: true });
  }

  async prices(options: CallOptions = {}): Promise<ModelPrice[]> {
    return (await this.#api.post('/tenants/get_prices', {}, PricesResponse, { ...options, retry: true })).prices;
  }

  /** Sets the price of a model for what is used from then on; null for both removes it. @returns all prices */
  async setPrice(price: SetPricesRequest, options: CallOptions = {}): Promise<ModelPrice[]> {
    return (await this.#api.post('/tenants/set_prices', price, PricesResponse, { ...options, retry: true })).prices;
  }
}
