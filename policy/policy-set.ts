import type { CompiledPolicy } from './compiled-policy.js';
import type { Candidates } from './indexing/candidates.js';
import { PolicyIndex } from './indexing/policy-index.js';
import type { Facts } from './matching/facts.js';
import { isOfRequest } from './matching/policy-key.js';

/** The policies of a scope in their order, with indexes by which most are passed over without being looked at. */
export class PolicySet {
  readonly policies: readonly CompiledPolicy[];
  readonly webhooks: readonly CompiledPolicy[];
  readonly #byRequest: PolicyIndex;
  readonly #byContent: PolicyIndex;

  /** @param policies in their order */
  constructor(policies: readonly CompiledPolicy[]) {
    this.policies = policies;
    this.webhooks = policies.filter(({ isWebhook }) => isWebhook);
    const keys = policies.map(({ conditions }) => conditions.flatMap((condition) => condition.keys));
    this.#byRequest = new PolicyIndex(keys.map((ofOne) => ofOne.filter(isOfRequest)));
    this.#byContent = new PolicyIndex(keys.map((ofOne) => ofOne.filter((key) => !isOfRequest(key))));
  }

  /** The places of policies that may match; of every other, some condition does not hold. Content is read only where it can rule out more. */
  candidates(facts: Facts): Candidates {
    const candidates = this.#byRequest.candidates(facts);
    if (this.#byContent.distinguishes(candidates)) candidates.keep(this.#byContent.candidates(facts));
    return candidates;
  }
}
