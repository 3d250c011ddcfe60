import type { Budget } from '../matching/budget.js';
import type { Facts } from '../matching/facts.js';
import { keyValues, type PolicyKey } from '../matching/policy-key.js';
import type { Candidates } from './candidates.js';
import { Parts } from './parts.js';
import { Texts } from './texts.js';

/** Units of `Budget` to look one text up, and to compare a number with a bound. */
const LOOK_UP = 5;
const COMPARISON = 0.2;

/** Places of policies, by the start or the end that a text must have. */
class Affixes extends Texts {
  /** The distinct lengths of the affixes, and what it costs to look a text up by all of them. */
  readonly #lengths = new Set<number>();
  cost = 0;

  /** @param affixOf the start or end of a text */
  constructor(readonly affixOf: (text: string, length: number) => string) {
    super();
  }

  override add(affix: string, place: number): void {
    super.add(affix, place);
    if (this.#lengths.has(affix.length)) return;
    this.#lengths.add(affix.length);
    this.cost += LOOK_UP + affix.length / 4;
  }

  override find(text: string, found: Candidates): void {
    for (const length of this.#lengths) if (length <= text.length) super.find(this.affixOf(text, length), found);
  }
}

/** Places of policies, by the least or the most that a number must be. */
class Bounds {
  readonly #least: { bound: number; place: number }[] = [];
  readonly #most: { bound: number; place: number }[] = [];

  /** Units of `Budget` to compare a number with all bounds. */
  get cost(): number {
    return (this.#least.length + this.#most.length) * COMPARISON;
  }

  add({ least, most }: PolicyKey, place: number): void {
    if (least !== undefined) this.#least.push({ bound: least, place });
    if (most !== undefined) this.#most.push({ bound: most, place });
  }

  find(number: number, found: Candidates): void {
    for (const { bound, place } of this.#least) if (number >= bound) found.add(place);
    for (const { bound, place } of this.#most) if (number <= bound) found.add(place);
  }
}

/** The places of policies in their order, by what one fact must be. */
export class FactIndex {
  readonly #literals = new Texts();
  readonly #starts = new Affixes((text, length) => text.slice(0, length));
  readonly #ends = new Affixes((text, length) => text.slice(text.length - length));
  readonly #parts = new Parts();
  readonly #bounds = new Bounds();
  readonly #all: number[] = [];

  constructor(readonly fact: Pick<PolicyKey, 'fact' | 'path'>) {}

  add(key: PolicyKey, place: number): void {
    this.#all.push(place);
    for (const literal of key.literals) this.#literals.add(literal, place);
    for (const start of key.starts) this.#starts.add(start, place);
    for (const end of key.ends) this.#ends.add(end, place);
    for (const part of key.parts) this.#parts.add(part, place);
    this.#bounds.add(key, place);
  }

  /** Adds the policies whose key holds for one of the fact's values; all where nobody can tell, or it would cost too much to find out. */
  find(facts: Facts, found: Candidates): void {
    const values = keyValues(this.fact, facts);
    if (values === 'any' || !this.#find(values, found, facts.budget)) found.addAll(this.#all);
  }

  /** To search parts and bounds costs about as much as asking the conditions, which may follow anyway: so it is optional. */
  #find(values: readonly (string | number)[], found: Candidates, budget: Budget): boolean {
    const texts = values.filter((value) => typeof value === 'string');
    const numbers = values.filter((value) => typeof value === 'number');
    const optional = this.#parts.cost(texts) + this.#bounds.cost * numbers.length;
    const lookUps = (LOOK_UP + this.#starts.cost + this.#ends.cost) * texts.length;
    if (!budget.takeOptional(optional) || !budget.take(lookUps)) return false;
    for (const text of texts) {
      this.#literals.find(text, found);
      this.#starts.find(text, found);
      this.#ends.find(text, found);
    }
    for (const number of numbers) this.#bounds.find(number, found);
    return this.#parts.findIn(texts, found, budget);
  }
}
