import type { CompiledPolicy } from './compiled-policy.js';
import type { Facts } from './matching/facts.js';
import { KEY_FACTS, type KeyFact, keyValue, type PolicyKey } from './matching/policy-key.js';

/** The places of policies in their order, by what one fact must be or begin with. */
interface FactIndex {
  literals: Map<string, number[]>;
  prefixes: Map<string, number[]>;
  /** Of the prefixes, each once. */
  lengths: Set<number>;
  all: number[];
}

/** The policies of a scope in their order, with an index by which most are passed over without being looked at. */
export class PolicySet {
  readonly policies: readonly CompiledPolicy[];
  readonly webhooks: readonly CompiledPolicy[];
  /** By which each is found; null: its conditions are asked in any case. */
  readonly keys: readonly (PolicyKey | null)[];
  readonly #byFact = new Map<KeyFact, FactIndex>();
  readonly #withoutKey: Uint8Array;

  /** @param policies in their order */
  constructor(policies: readonly CompiledPolicy[]) {
    this.policies = policies;
    this.webhooks = policies.filter(({ isWebhook }) => isWebhook);
    this.keys = rarestKeys(policies);
    this.#withoutKey = Uint8Array.from(this.keys, (key) => (key ? 0 : 1));
    for (const [place, key] of this.keys.entries()) if (key) this.#add(place, key);
  }

  /** By the places of the policies: 0 where the key does not hold, so that the policy does not match. */
  candidates(facts: Facts): Uint8Array {
    const candidates: Uint8Array = this.#withoutKey.slice();
    for (const fact of KEY_FACTS) {
      const index = this.#byFact.get(fact);
      if (!index) continue;
      const value = keyValue(fact, facts);
      if (typeof value === 'string') markMatching(index, value, candidates);
      else if (value !== undefined) mark(index.all, candidates);
    }
    return candidates;
  }

  #add(place: number, { fact, literals, prefixes }: PolicyKey): void {
    const index = this.#byFact.get(fact) ?? emptyIndex();
    this.#byFact.set(fact, index);
    index.all.push(place);
    for (const literal of literals) placesOf(index.literals, literal).push(place);
    for (const prefix of prefixes) {
      placesOf(index.prefixes, prefix).push(place);
      index.lengths.add(prefix.length);
    }
  }
}

const valuesOf = ({ fact, literals, prefixes }: PolicyKey): string[] => [
  ...literals.map((literal) => `${fact} ${literal}`),
  ...prefixes.map((prefix) => `${fact} ${prefix}*`),
];

/** Of each policy the key whose values the fewest policies share. */
function rarestKeys(policies: readonly CompiledPolicy[]): (PolicyKey | null)[] {
  const counts = new Map<string, number>();
  for (const { keys } of policies)
    for (const value of keys.flatMap(valuesOf)) counts.set(value, (counts.get(value) ?? 0) + 1);
  const shared = (key: PolicyKey) => valuesOf(key).reduce((sum, value) => sum + (counts.get(value) ?? 0), 0);
  return policies.map(({ keys }) => {
    const ranked = keys.map((key) => ({ key, shared: shared(key) })).sort((one, other) => one.shared - other.shared);
    return ranked[0]?.key ?? null;
  });
}

function emptyIndex(): FactIndex {
  return { literals: new Map(), prefixes: new Map(), lengths: new Set(), all: [] };
}

function placesOf(places: Map<string, number[]>, text: string): number[] {
  const known = places.get(text) ?? [];
  places.set(text, known);
  return known;
}

function mark(places: readonly number[], candidates: Uint8Array): void {
  for (const place of places) candidates[place] = 1;
}

function markMatching({ literals, prefixes, lengths }: FactIndex, value: string, candidates: Uint8Array): void {
  mark(literals.get(value) ?? [], candidates);
  for (const length of lengths)
    if (length <= value.length) mark(prefixes.get(value.slice(0, length)) ?? [], candidates);
}
