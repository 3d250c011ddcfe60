import type { CompiledPolicy } from './compiled-policy.js';
import type { Facts } from './matching/facts.js';
import { PolicyIndex } from './policy-index.js';

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
    this.#byRequest = new PolicyIndex(policies.map(({ requestKeys }) => requestKeys));
    this.#byContent = new PolicyIndex(policies.map(({ contentKeys }) => contentKeys));
  }

  /** By the places of the policies: 0 where a key does not hold, so that the policy does not match. Content is read only where it matters. */
  candidates(facts: Facts): Uint8Array {
    const candidates = this.#byRequest.candidates(facts);
    if (!this.#byContent.distinguishes(candidates)) return candidates;
    const byContent = this.#byContent.candidates(facts);
    for (let place = 0; place < candidates.length; place++) if (byContent[place] === 0) candidates[place] = 0;
    return candidates;
  }
}
