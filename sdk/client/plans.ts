import type { z } from 'zod';
import {
  type Plan,
  type PlanCreateRequest,
  PlanResponse,
  type PlansGetRequest,
  PlansGetResponse,
} from '../../contracts/api/plans.js';
import { ApiError, isTransient } from './errors.js';
import type { WaitOptions } from './messages.js';
import { type CallOptions, type PlatformApi, pause } from './platform-api.js';

const POLL_FIRST_MS = 100;
const POLL_MAX_MS = 1_000;

/** `/plans/*`: graphs of steps, each of which is a message to an agent. */
export class Plans {
  readonly #api: PlatformApi;

  constructor(api: PlatformApi) {
    this.#api = api;
  }

  /** Creates a plan: proposed, or started at once with `auto_approve`. Not retried: a repeat would create another one. */
  create(plan: z.input<typeof PlanCreateRequest>, options: CallOptions = {}): Promise<Plan> {
    return this.#plan('/plans/create', plan, options);
  }

  /** One page of plans without their steps, newest first. */
  get(request: Partial<PlansGetRequest> = {}, options: CallOptions = {}) {
    return this.#api.post('/plans/get', request, PlansGetResponse, { ...options, retry: true });
  }

  /** A plan with its steps: their states, and who works on them since when. */
  async getById(planId: string, options: CallOptions = {}): Promise<Plan> {
    const body = { plan_id: planId };
    return (await this.#api.post('/plans/get_by_id', body, PlanResponse, { ...options, retry: true })).plan;
  }

  /** Approves a proposed plan; needs the scope `admin`, or to be one of its approvers. @throws ApiError with `ALREADY_RESOLVED` or `ALREADY_TERMINAL` */
  approve(planId: string, options: CallOptions & { comment?: string } = {}): Promise<Plan> {
    return this.#decide('/plans/approve', planId, options);
  }

  /** Rejects a proposed plan; needs the scope `admin`, or to be one of its approvers. @throws ApiError with `ALREADY_RESOLVED` or `ALREADY_TERMINAL` */
  reject(planId: string, options: CallOptions & { comment?: string } = {}): Promise<Plan> {
    return this.#decide('/plans/reject', planId, options);
  }

  /** Cancels a plan and the messages of its steps. @throws ApiError with `ALREADY_TERMINAL` when it has ended */
  cancel(planId: string, options: CallOptions & { reason?: string } = {}): Promise<Plan> {
    const { reason, ...rest } = options;
    return this.#plan('/plans/cancel', { plan_id: planId, ...(reason !== undefined && { reason }) }, rest);
  }

  /**
   * Polls the plan until it has ended, or by default until it has settled: also when it waits for its approval or when steps wait for a human
   * and none runs. Temporary failures of the platform are retried.
   * @throws ApiError with code `REQUEST_TIMEOUT` when that has not happened within `timeoutMs`
   */
  async waitFor(planId: string, options: WaitOptions = {}): Promise<Plan> {
    const { until = 'settled', timeoutMs = 600_000, signal } = options;
    const deadline = Date.now() + timeoutMs;
    for (let waitMs = POLL_FIRST_MS; ; waitMs = Math.min(waitMs * 2, POLL_MAX_MS)) {
      const plan = await this.getById(planId, { signal }).catch((error: unknown) => {
        if (!isTransient(error)) throw error;
        return null;
      });
      if (plan && (hasEnded(plan) || (until === 'settled' && waitsForHumans(plan)))) return plan;
      if (Date.now() >= deadline) {
        const text = `plan ${planId} has not settled in ${timeoutMs} ms`;
        throw new ApiError(text, { status: 408, code: 'REQUEST_TIMEOUT' });
      }
      await pause(waitMs, signal);
    }
  }

  #decide(path: string, planId: string, { comment, ...options }: CallOptions & { comment?: string }): Promise<Plan> {
    return this.#plan(path, { plan_id: planId, ...(comment !== undefined && { comment }) }, options);
  }

  async #plan(path: string, body: object, options: CallOptions): Promise<Plan> {
    return (await this.#api.post(path, body, PlanResponse, options)).plan;
  }
}

const hasEnded = ({ state }: Plan) => state !== 'proposed' && state !== 'running';

function waitsForHumans({ state, progress }: Plan): boolean {
  return state === 'proposed' || (progress['input-required'] > 0 && progress.running === 0);
}
