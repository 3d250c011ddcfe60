import type { z } from 'zod';
import { GUARD_OPERATIONS, type Guard, type UpdateGuardRequest } from '../../contracts/api/policies/guards.js';
import {
  GetPoliciesResponse,
  type POLICY_OPERATIONS,
  type Policy,
  PolicyResponse,
  TestPolicyResponse,
} from '../../contracts/api/policies/policies.js';
import { ok } from '../../contracts/primitives.js';
import type { CallOptions, PlatformApi } from './platform-api.js';

type Operations = typeof POLICY_OPERATIONS;
type Request<Name extends keyof Operations> = z.input<Operations[Name]['request']>;

const Done = ok({});

/** Policies and guards: `/policies/*_polic*` and `/policies/*_guard*`, which need the scope `admin`. */
export class Policies {
  readonly #api: PlatformApi;

  constructor(api: PlatformApi) {
    this.#api = api;
  }

  /** Creates a policy. Not retried: a repeat would create another one. */
  async create(policy: Request<'createPolicy'>, options: CallOptions = {}): Promise<Policy> {
    return (await this.#api.post('/policies/create_policy', policy, PolicyResponse, options)).policy;
  }

  /** One page of policies, newest first. */
  get(filter: Request<'getPolicies'> = {}, options: CallOptions = {}) {
    return this.#api.post('/policies/get_policies', filter, GetPoliciesResponse, { ...options, retry: true });
  }

  async getById(policyId: string, options: CallOptions = {}): Promise<Policy> {
    const body = { policy_id: policyId };
    return (await this.#api.post('/policies/get_policy_by_id', body, PolicyResponse, { ...options, retry: true }))
      .policy;
  }

  /** Changes the given fields of a policy; its scope stays. */
  async update(change: Request<'updatePolicy'>, options: CallOptions = {}): Promise<Policy> {
    return (await this.#api.post('/policies/update_policy', change, PolicyResponse, { ...options, retry: true }))
      .policy;
  }

  async delete(policyId: string, options: CallOptions = {}): Promise<void> {
    await this.#api.post('/policies/delete_policy', { policy_id: policyId }, Done, options);
  }

  /** What would be decided, and of each policy why it decided or did not. Nothing follows from it. */
  test(request: Request<'testPolicy'>, options: CallOptions = {}): Promise<TestPolicyResponse> {
    return this.#api.post('/policies/test_policy', request, TestPolicyResponse, { ...options, retry: true });
  }

  /** All guards with their settings. */
  async guards(options: CallOptions = {}): Promise<Guard[]> {
    const { response } = GUARD_OPERATIONS.getGuards;
    return (await this.#api.post('/policies/get_guards', {}, response, { ...options, retry: true })).guards;
  }

  /** Changes what is given of a guard, members of its `config` one by one. */
  async updateGuard(change: UpdateGuardRequest, options: CallOptions = {}): Promise<Guard> {
    const { response } = GUARD_OPERATIONS.updateGuard;
    return (await this.#api.post('/policies/update_guard', change, response, { ...options, retry: true })).guard;
  }
}
