import type { z } from 'zod';
import {
  AlertRule,
  GetAlertsResponse,
  type NewAlertRequest,
  TestAlertResponse,
  type UpdateAlertRequest,
} from '../../contracts/api/alerts.js';
import { type GetDeliveriesRequest, GetDeliveriesResponse, RedeliverResponse } from '../../contracts/api/deliveries.js';
import { ok } from '../../contracts/primitives.js';
import type { CallOptions, PlatformApi } from './platform-api.js';

const Done = ok({});

/** Alert rules and their deliveries: `/policies/*_alert*` and `/webhooks/*`, which need the scope `admin`. */
export class Alerts {
  readonly #api: PlatformApi;

  constructor(api: PlatformApi) {
    this.#api = api;
  }

  /** Creates a rule. Not retried: a repeat would create another one. */
  create(rule: z.input<typeof NewAlertRequest>, options: CallOptions = {}): Promise<AlertRule> {
    return this.#api.post('/policies/new_alert', rule, AlertRule, options);
  }

  /** One page of rules, newest first. */
  get(page: { page?: number; page_size?: number } = {}, options: CallOptions = {}) {
    return this.#api.post('/policies/get_alerts', page, GetAlertsResponse, { ...options, retry: true });
  }

  getById(ruleId: string, options: CallOptions = {}): Promise<AlertRule> {
    return this.#api.post('/policies/get_alert_by_id', { rule_id: ruleId }, AlertRule, { ...options, retry: true });
  }

  /** Changes the given fields of a rule. */
  update(change: z.input<typeof UpdateAlertRequest>, options: CallOptions = {}): Promise<AlertRule> {
    return this.#api.post('/policies/update_alert', change, AlertRule, { ...options, retry: true });
  }

  async delete(ruleId: string, options: CallOptions = {}): Promise<void> {
    await this.#api.post('/policies/delete_alert', { rule_id: ruleId }, Done, options);
  }

  /** Sends a test notification to every channel of a rule. */
  async test(ruleId: string, options: CallOptions = {}) {
    return (await this.#api.post('/policies/test_alert', { rule_id: ruleId }, TestAlertResponse, options)).results;
  }

  /** One page of deliveries, newest first. */
  deliveries(request: z.input<typeof GetDeliveriesRequest> = {}, options: CallOptions = {}) {
    return this.#api.post('/webhooks/get_deliveries', request, GetDeliveriesResponse, { ...options, retry: true });
  }

  /** Sends a delivery again, under the same id. @throws ApiError with `CONFLICT` while it is still being sent */
  redeliver(deliveryId: string, options: CallOptions = {}) {
    return this.#api.post('/webhooks/redeliver', { delivery_id: deliveryId }, RedeliverResponse, options);
  }
}
