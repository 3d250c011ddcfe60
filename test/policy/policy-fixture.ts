import type { z } from 'zod';
import {
  GetPoliciesResponse,
  type POLICY_OPERATIONS,
  type Policy,
  PolicyResponse,
  type PolicyTrace,
  TestPolicyResponse,
} from '../../contracts/api/policies/policies.js';
import { type CompiledPolicy, compilePolicy, policyOrder } from '../../policy/compiled-policy.js';
import { decideBy } from '../../policy/decision.js';
import { WebhookEvaluators } from '../../policy/evaluators/webhook.js';
import { Facts, type LaterFact } from '../../policy/matching/facts.js';
import type { PolicyRequest } from '../../policy/policy-request.js';
import { PolicySet } from '../../policy/policy-set.js';
import type { PolicyRow } from '../../policy/policy-store.js';
import type { ApiClient } from '../setup/platform/api-client.js';

export type NewPolicy = z.input<typeof POLICY_OPERATIONS.createPolicy.request>;

/** Creates a policy; its name is its decision where none is given. */
export async function policyFor(
  client: ApiClient,
  policy: Partial<NewPolicy> & Pick<NewPolicy, 'scope' | 'decision'>,
): Promise<Policy> {
  const body = { name: policy.decision, ...policy };
  return (await client.ok('/policies/create_policy', body, PolicyResponse)).policy;
}

/** Deletes all policies of the tenant. */
export async function deletePolicies(client: ApiClient): Promise<void> {
  const { policies } = await client.ok('/policies/get_policies', { page_size: 100 }, GetPoliciesResponse);
  for (const { policy_id } of policies) await client.post('/policies/delete_policy', { policy_id });
}

/** What `/policies/test_policy` says about a tool call. */
export function tested(client: ApiClient, request: object = {}): Promise<TestPolicyResponse> {
  const body = { scope: 'tool', action: 'call', tool: 'files.read', ...request };
  return client.ok('/policies/test_policy', body, TestPolicyResponse);
}

/** A policy of scope `tool` that no database holds; its name tells its place. */
export type Given = Pick<NewPolicy, 'decision'> &
  Partial<Pick<NewPolicy, 'priority' | 'match' | 'evaluator'>> & {
    end_at?: Date;
  };

const DEPS = {
  secrets: { decrypt: (sealed: Buffer) => sealed },
  webhooks: new WebhookEvaluators({ request: () => Promise.reject(new Error('nobody is asked')) }),
};

/** Compiles policies and brings them into their order. */
export function compiled(policies: readonly Given[]): CompiledPolicy[] {
  const rows = policies.map((policy, n) => ({
    ...{ tenant_id: 'ten_1', policy_id: `pol_${String(n).padStart(4, '0')}`, scope: 'tool', name: `policy ${n}` },
    ...{ description: '', reason: '', approvers: [], evaluator_secret: null, enabled: true, priority: 1, match: {} },
    ...{ created_at: new Date(0), updated_at: new Date(0), updated_by: null, evaluator: {}, max_calls: null },
    ...{ calls_allowed: null, ...policy, end_at: policy.end_at ?? null },
  }));
  return rows.map((row) => compilePolicy(row as PolicyRow, DEPS)).sort(policyOrder);
}

/** What policies decide about a tool call, with what became of each. @param about what differs from a call of `files.read` by `writer-7` */
export function decided(policies: readonly Given[], about: Partial<PolicyRequest> = {}, later: LaterFact[] = []) {
  const agent = { agent_type: 'writer', instance_id: 'writer-7', skill_id: 'translate' };
  const request: PolicyRequest = { scope: 'tool', action: 'call', tool: 'files.read', agent, ...about };
  const trace: PolicyTrace[] = [];
  const verdict = decideBy(new PolicySet(compiled(policies)), new Facts('ten_1', request, later), { trace });
  if (verdict instanceof Promise) throw new Error('an evaluator was waited for');
  return { verdict, trace, decision: verdict === 'later' ? verdict : verdict.decision };
}
