import type { Budget } from './matching/budget.js';
import type { Facts } from './matching/facts.js';
import { keyTexts, type PolicyKey } from './matching/policy-key.js';

/** Units of `Budget` to look one text up. */
const LOOK_UP = 5;

/** Places of policies, by the start or the end that a text must have. */
class Affixes {
  readonly #places = new Map<string, number[]>();
  /** Of the affixes, each once, and what looking all up costs. */
  readonly #lengths = new Set<number>();
  #cost = 0;

  /** @param affixOf the start or end of a text */
  constructor(readonly affixOf: (text: string, length: number) => string) {}

  add(affix: string, place: number): void {
    listOf(this.#places, affix).push(place);
    if (this.#lengths.has(affix.length)) return;
    this.#lengths.add(affix.length);
    this.#cost += LOOK_UP + affix.length / 4;
  }

  /** @returns false: it would cost too much to find out */
  mark(text: string, marks: Uint8Array, budget: Budget): boolean {
    if (!budget.take(this.#cost)) return false;
    for (const length of this.#lengths)
      if (length <= text.length) markAll(this.#places.get(this.affixOf(text, length)) ?? [], marks);
    return true;
  }
}

/** The places of policies in their order, by what one fact must be. */
class FactIndex {
  readonly #literals = new Map<string, number[]>();
  readonly #starts = new Affixes((text, length) => text.slice(0, length));
  readonly #ends = new Affixes((text, length) => text.slice(text.length - length));
  readonly #all: number[] = [];

  constructor(readonly fact: Pick<PolicyKey, 'fact' | 'path'>) {}

  add({ literals, starts, ends }: PolicyKey, place: number): void {
    this.#all.push(place);
    for (const literal of literals) listOf(this.#literals, literal).push(place);
    for (const start of starts) this.#starts.add(start, place);
    for (const end of ends) this.#ends.add(end, place);
  }

  mark(facts: Facts, marks: Uint8Array): void {
    const texts = keyTexts(this.fact, facts);
    const isKnown = texts !== 'any' && texts.every((text) => this.#mark(text, marks, facts.budget));
    if (!isKnown) markAll(this.#all, marks);
  }

  #mark(text: string, marks: Uint8Array, budget: Budget): boolean {
    if (!budget.take(LOOK_UP)) return false;
    markAll(this.#literals.get(text) ?? [], marks);
    return this.#starts.mark(text, marks, budget) && this.#ends.mark(text, marks, budget);
  }
}

/** Finds policies by one key of each. */
export class PolicyIndex {
  readonly #byFact = new Map<string, FactIndex>();
  /** By the places of the policies: 1 where there is no key. */
  readonly #withoutKey: Uint8Array;
  /** None has a key. */
  readonly isEmpty: boolean;

  /** @param keysOf the keys of each policy, of which the rarest is taken */
  constructor(keysOf: readonly (readonly PolicyKey[])[]) {
    const keys = rarestKeys(keysOf);
    this.#withoutKey = Uint8Array.from(keys, (key) => (key ? 0 : 1));
    this.isEmpty = keys.every((key) => key === null);
    for (const [place, key] of keys.entries()) if (key) this.#add(key, place);
  }

  /** By the places of the policies: 0 where the key does not hold, so that the policy does not match. */
  candidates(facts: Facts): Uint8Array {
    const marks: Uint8Array = this.#withoutKey.slice();
    for (const index of this.#byFact.values()) index.mark(facts, marks);
    return marks;
  }

  /** Whether a policy among these has a key here. */
  distinguishes(candidates: Uint8Array): boolean {
    return !this.isEmpty && candidates.some((candidate, place) => candidate === 1 && this.#withoutKey[place] === 0);
  }

  #add(key: PolicyKey, place: number): void {
    const name = factName(key);
    const index = this.#byFact.get(name) ?? new FactIndex(key);
    this.#byFact.set(name, index);
    index.add(key, place);
  }
}

const factName = ({ fact, path = '' }: PolicyKey): string => `${fact} ${path}`;

const valuesOf = (key: PolicyKey): string[] => [
  ...key.literals.map((literal) => `${factName(key)} ${literal}`),
  ...key.starts.map((start) => `${factName(key)} ${start}*`),
  ...key.ends.map((end) => `${factName(key)} *${end}`),
];

/** Of each policy the key whose values the fewest policies share. */
function rarestKeys(keysOf: readonly (readonly PolicyKey[])[]): (PolicyKey | null)[] {
  const counts = new Map<string, number>();
  for (const keys of keysOf)
    for (const value of keys.flatMap(valuesOf)) counts.set(value, (counts.get(value) ?? 0) + 1);
  const shared = (key: PolicyKey) => valuesOf(key).reduce((sum, value) => sum + (counts.get(value) ?? 0), 0);
  return keysOf.map((keys) => {
    const ranked = keys.map((key) => ({ key, shared: shared(key) })).sort((one, other) => one.shared - other.shared);
    return ranked[0]?.key ?? null;
  });
}

function listOf(places: Map<string, number[]>, text: string): number[] {
  const known = places.get(text) ?? [];
  places.set(text, known);
  return known;
}

function markAll(places: readonly number[], marks: Uint8Array): void {
  for (const place of places) marks[place] = 1;
}
