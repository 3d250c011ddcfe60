/**
 * Lets so many pieces of work run at once; the others wait in the order in which they came. With it a thousand agents that come back
 * at once share the database with the messages that are being sent.
 */
export class Semaphore {
  readonly #most: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  /** @param most pieces of work that run at once */
  constructor(most: number) {
    this.#most = most;
  }

  /** How many wait. Whoever calls `run` bounds that number. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Runs `work` when it is its turn, and gives its result. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#most) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running += 1;
    try {
      return await work();
    } finally {
      // The place is handed on, so that nobody who comes now gets it first.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running -= 1;
    }
  }
}
