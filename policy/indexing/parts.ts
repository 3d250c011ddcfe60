import { type Budget, SEARCHED_CHARS } from '../matching/budget.js';
import type { Candidates } from './candidates.js';
import { Texts } from './texts.js';

/** Up to this many parts are searched for directly, without noting the pairs of the text. */
const FEW = 16;
/** Units of `Budget` to begin to note the pairs of a text, and characters whose pairs are noted in one unit. */
const NOTING = 40;
const NOTED_CHARS = 4;
const SLOTS = 4_096;

function slotOf(text: string, at: number): number {
  return ((text.charCodeAt(at) << 6) ^ text.charCodeAt(at + 1)) & (SLOTS - 1);
}

/**
 * The pairs of neighbouring characters of a text. A part that the text does not contain mostly has a pair that it
 * lacks.
 */
class Pairs {
  readonly #slots = new Uint8Array(SLOTS);

  constructor(text: string) {
    for (let at = 0; at < text.length - 1; at++) this.#slots[slotOf(text, at)] = 1;
  }

  /** Whether the text may contain a part. From its end: parts often begin alike. */
  mayContain(part: string): boolean {
    for (let at = part.length - 2; at >= 0; at--) if (this.#slots[slotOf(part, at)] === 0) return false;
    return true;
  }
}

/** Places of policies, by what a text must contain. */
export class Parts extends Texts {
  /** Units to find out what texts may contain, before they are searched. */
  cost(texts: readonly string[]): number {
    if (this.places.size <= FEW) return 0;
    return texts.reduce((sum, { length }) => sum + NOTING + length / NOTED_CHARS + this.places.size, 0);
  }

  /** Adds the policies of which one of the texts contains a part. @returns false: it would cost too much to find out */
  findIn(texts: readonly string[], found: Candidates, budget: Budget): boolean {
    const searches = texts.flatMap((text) => this.#in(text).map(([part, places]) => ({ text, part, places })));
    const cost = searches.reduce((sum, { text }) => sum + 1 + text.length / SEARCHED_CHARS, 0);
    if (!budget.takeOptional(cost)) return false;
    for (const { text, part, places } of searches) if (text.includes(part)) found.addAll(places);
    return true;
  }

  /** The parts that a text may contain. */
  #in(text: string): (readonly [string, readonly number[]])[] {
    if (this.places.size <= FEW) return [...this.places];
    const pairs = new Pairs(text);
    const possible: [string, readonly number[]][] = [];
    for (const entry of this.places) if (pairs.mayContain(entry[0])) possible.push(entry);
    return possible;
  }
}
