/** The policies of a set that have to be looked at: one bit each, by their places in its order. */
export class Candidates {
  readonly #words: Int32Array;

  /** @param count the number of policies, or candidates to copy */
  constructor(count: number | Candidates) {
    this.#words = typeof count === 'number' ? new Int32Array((count + 31) >>> 5) : count.#words.slice();
  }

  has(place: number): boolean {
    return ((this.#words[place >>> 5] as number) & (1 << place)) !== 0;
  }

  add(place: number): void {
    (this.#words[place >>> 5] as number) |= 1 << place;
  }

  addAll(places: readonly number[]): void {
    for (const place of places) this.add(place);
  }

  /** Drops those that are not among others. */
  keep(others: Candidates): void {
    for (let at = 0; at < this.#words.length; at++) (this.#words[at] as number) &= others.#words[at] as number;
  }

  /** Whether one is not among others. */
  exceeds(others: Candidates): boolean {
    return this.#words.some((word, at) => (word & ~(others.#words[at] as number)) !== 0);
  }

  /** The first at a place or behind it; infinite for none. */
  next(place: number): number {
    let at = place >>> 5;
    let word = (this.#words[at] ?? 0) & (-1 << place);
    while (word === 0) {
      if (++at >= this.#words.length) return Number.POSITIVE_INFINITY;
      word = this.#words[at] as number;
    }
    return at * 32 + 31 - Math.clz32(word & -word);
  }
}
