/** Keeps the best of many items: a heap whose root is the worst of those kept. Of equal scores the item that came first stays. */
export class TopList {
  readonly #items: number[] = [];
  readonly #scores: number[] = [];

  constructor(private readonly limit: number) {}

  /** The score that a further item must beat; below all while there is room. */
  get threshold(): number {
    return this.#items.length < this.limit ? Number.NEGATIVE_INFINITY : (this.#scores[0] as number);
  }

  add(item: number, score: number): void {
    if (this.#items.length < this.limit) {
      this.#items.push(item);
      this.#scores.push(score);
      this.#up(this.#items.length - 1);
    } else if (score > (this.#scores[0] as number)) {
      this.#items[0] = item;
      this.#scores[0] = score;
      this.#down();
    }
  }

  /** The best first; equal scores by their items. */
  sorted(): { item: number; score: number }[] {
    const all = this.#items.map((item, index) => ({ item, score: this.#scores[index] as number }));
    return all.sort((one, other) => other.score - one.score || one.item - other.item);
  }

  /** Whether the entry at `one` is worse than that at `other`. */
  #worse(one: number, other: number): boolean {
    const [a = 0, b = 0] = [this.#scores[one], this.#scores[other]];
    return a < b || (a === b && (this.#items[one] as number) > (this.#items[other] as number));
  }

  #swap(one: number, other: number): void {
    for (const list of [this.#items, this.#scores])
      [list[one], list[other]] = [list[other] as number, list[one] as number];
  }

  #up(from: number): void {
    for (let at = from; at > 0; ) {
      const parent = (at - 1) >> 1;
      if (!this.#worse(at, parent)) return;
      this.#swap(at, parent);
      at = parent;
    }
  }

  #down(): void {
    for (let at = 0; ; ) {
      let worst = at;
      for (const child of [2 * at + 1, 2 * at + 2])
        if (child < this.#items.length && this.#worse(child, worst)) worst = child;
      if (worst === at) return;
      this.#swap(at, worst);
      at = worst;
    }
  }
}
