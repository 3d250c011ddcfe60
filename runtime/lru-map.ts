/**
 * Remembers the newest entries: at least `most`, at most twice as many. In two halves of which the older one goes as a whole, because a
 * `Map` whose oldest key is deleted at every turn has to step over all the deleted ones to find the next.
 */
export class LruMap<Value> {
  readonly #most: number;
  #newer = new Map<string, Value>();
  #older = new Map<string, Value>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Notes an entry; what was noted under its key before is forgotten. */
  note(key: string, value: Value): void {
    if (this.#newer.size >= this.#most) {
      this.#older = this.#newer;
      this.#newer = new Map();
    }
    this.#newer.set(key, value);
  }

  /** What was noted last under the key, while it is remembered. */
  get(key: string): Value | undefined {
    return this.#newer.get(key) ?? this.#older.get(key);
  }
}
