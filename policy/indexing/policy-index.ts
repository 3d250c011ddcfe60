import type { Facts } from '../matching/facts.js';
import type { PolicyKey } from '../matching/policy-key.js';
import { Candidates } from './candidates.js';
import { FactIndex } from './fact-index.js';

/** Finds policies by one key of each. */
export class PolicyIndex {
  readonly #byFact = new Map<string, FactIndex>();
  readonly #withoutKey: Candidates;

  /** @param keysOf the keys of each policy, of which the rarest is taken */
  constructor(keysOf: readonly (readonly PolicyKey[])[]) {
    const keys = rarestKeys(keysOf);
    this.#withoutKey = new Candidates(keys.length);
    for (const [place, key] of keys.entries()) {
      if (key) this.#add(key, place);
      else this.#withoutKey.add(place);
    }
  }

  /** The policies whose key holds, so that they may match, and those that have none. */
  candidates(facts: Facts): Candidates {
    const candidates = new Candidates(this.#withoutKey);
    for (const index of this.#byFact.values()) index.find(facts, candidates);
    return candidates;
  }

  /** Whether a policy among these has a key here. */
  distinguishes(candidates: Candidates): boolean {
    return candidates.exceeds(this.#withoutKey);
  }

  #add(key: PolicyKey, place: number): void {
    const name = factName(key);
    const index = this.#byFact.get(name) ?? new FactIndex(key);
    this.#byFact.set(name, index);
    index.add(key, place);
  }
}

const KINDS = ['literals', 'starts', 'ends', 'parts'] as const;

const factName = ({ fact, path = '' }: PolicyKey): string => `${fact} ${path}`;

/** How many keys of one fact have each text, and how many a bound. */
class Counts {
  readonly #ofTexts = {
    literals: new Map<string, number>(),
    starts: new Map<string, number>(),
    ends: new Map<string, number>(),
    parts: new Map<string, number>(),
  };
  #ofBounds = 0;

  add(key: PolicyKey): void {
    for (const kind of KINDS) {
      const counts = this.#ofTexts[kind];
      for (const text of key[kind]) counts.set(text, (counts.get(text) ?? 0) + 1);
    }
    if (hasBound(key)) this.#ofBounds += 1;
  }

  /** An estimate of the policies that a value of this key finds. A number is taken to be within half of the bounds. */
  sharing(key: PolicyKey): number {
    let sum = hasBound(key) ? this.#ofBounds / 2 : 0;
    for (const kind of KINDS) for (const text of key[kind]) sum += this.#ofTexts[kind].get(text) ?? 0;
    return sum;
  }
}

const hasBound = ({ least, most }: PolicyKey): boolean => least !== undefined || most !== undefined;

/** For each policy, its key whose values the fewest other policies share. */
function rarestKeys(keysOf: readonly (readonly PolicyKey[])[]): (PolicyKey | undefined)[] {
  const counts = new Map<string, Counts>();
  const countsOf = (key: PolicyKey): Counts => {
    const name = factName(key);
    const known = counts.get(name) ?? new Counts();
    counts.set(name, known);
    return known;
  };
  for (const key of keysOf.flat()) countsOf(key).add(key);
  return keysOf.map((keys) => {
    if (keys.length <= 1) return keys[0];
    const shares = keys.map((key) => countsOf(key).sharing(key));
    return keys[shares.indexOf(Math.min(...shares))];
  });
}
