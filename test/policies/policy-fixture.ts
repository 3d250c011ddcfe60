import type { z } from 'zod';
import {
  type POLICY_OPERATIONS,
  type Policy,
  PolicyResponse,
  TestPolicyResponse,
} from '../../contracts/api/policies/policies.js';
import type { ApiClient } from '../setup/platform/api-client.js';

export type NewPolicy = z.input<typeof POLICY_OPERATIONS.createPolicy.request>;
export type Tested = z.input<typeof POLICY_OPERATIONS.testPolicy.request>;

/** Creates a policy; its name is its decision where none is given. */
export async function policyFor(
  client: ApiClient,
  policy: Partial<NewPolicy> & Pick<NewPolicy, 'scope' | 'decision'>,
): Promise<Policy> {
  const body = { name: policy.decision, ...policy };
  return (await client.ok('/policies/create_policy', body, PolicyResponse)).policy;
}

/** What `/policies/test_policy` says. */
export function tested(client: ApiClient, request: Tested): Promise<TestPolicyResponse> {
  return client.ok('/policies/test_policy', request, TestPolicyResponse);
}
