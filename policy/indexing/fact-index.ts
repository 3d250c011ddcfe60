import { SEARCHED_CHARS } from '../matching/budget.js';
import type { Facts } from '../matching/facts.js';
import { keyValues, type PolicyKey } from '../matching/policy-key.js';
import type { Candidates } from './candidates.js';

/** Units of `Budget` to look one text up, and to compare a number with a bound. */
const LOOK_UP = 5;
const COMPARISON = 0.2;

/** Places of policies, by texts of which a value must have one. */
class Texts {
  readonly places = new Map<string, number[]>();

  add(text: string, place: number): void {
    const known = this.places.get(text);
    if (known) known.push(place);
    else this.places.set(text, [place]);
  }

  find(text: string, found: Candidates): void {
    const places = this.places.get(text);
    if (places) found.addAll(places);
  }
}

/** By the start or the end that a text must have. */
class Affixes extends Texts {
  /** Of the affixes, each once, and what looking all up costs. */
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

/** By what a text must contain. */
class Parts extends Texts {
  override find(text: string, found: Candidates): void {
    for (const [part, places] of this.places) if (text.includes(part)) found.addAll(places);
  }
}

/** By the least or the most that a number must be. */
class Bounds {
  readonly #bounds: number[] = [];
  readonly #places: number[] = [];

  /** @param isWithin whether a number keeps to a bound */
  constructor(readonly isWithin: (number: number, bound: number) => boolean) {}

  get size(): number {
    return this.#bounds.length;
  }

  add(bound: number, place: number): void {
    this.#bounds.push(bound);
    this.#places.push(place);
  }

  find(number: number, found: Candidates): void {
    for (let at = 0; at < this.#bounds.length; at++)
      if (this.isWithin(number, this.#bounds[at] as number)) found.add(this.#places[at] as number);
  }
}

/** The places of policies in their order, by what one fact must be. */
export class FactIndex {
  readonly #literals = new Texts();
  readonly #starts = new Affixes((text, length) => text.slice(0, length));
  readonly #ends = new Affixes((text, length) => text.slice(text.length - length));
  readonly #parts = new Parts();
  readonly #least = new Bounds((number, bound) => number >= bound);
  readonly #most = new Bounds((number, bound) => number <= bound);
  readonly #all: number[] = [];

  constructor(readonly fact: Pick<PolicyKey, 'fact' | 'path'>) {}

  add({ literals, starts, ends, parts, least, most }: PolicyKey, place: number): void {
    this.#all.push(place);
    for (const literal of literals) this.#literals.add(literal, place);
    for (const start of starts) this.#starts.add(start, place);
    for (const end of ends) this.#ends.add(end, place);
    for (const part of parts) this.#parts.add(part, place);
    if (least !== undefined) this.#least.add(least, place);
    if (most !== undefined) this.#most.add(most, place);
  }

  /** Adds the policies whose key holds for one of the fact's values; all where nobody can tell, or it would cost too much to find out. */
  find(facts: Facts, found: Candidates): void {
    const values = keyValues(this.fact, facts);
    if (values === 'any' || !this.#isAffordable(values, facts)) found.addAll(this.#all);
    else for (const value of values) this.#find(value, found);
  }

  /** To search and to compare costs about what the conditions do, which may have to be asked as well. */
  #isAffordable(values: readonly (string | number)[], { budget }: Facts): boolean {
    const chars = values.reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 0);
    const searches = this.#parts.places.size * (values.length + chars / SEARCHED_CHARS);
    const comparisons = (this.#least.size + this.#most.size) * values.length * COMPARISON;
    const lookUps = (LOOK_UP + this.#starts.cost + this.#ends.cost) * values.length;
    return budget.takeOptional(searches + comparisons) && budget.take(lookUps);
  }

  #find(value: string | number, found: Candidates): void {
    if (typeof value === 'number') {
      this.#least.find(value, found);
      this.#most.find(value, found);
      return;
    }
    this.#literals.find(value, found);
    this.#starts.find(value, found);
    this.#ends.find(value, found);
    this.#parts.find(value, found);
  }
}
