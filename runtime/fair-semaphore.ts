/** The bounds of a `FairSemaphore`. */
export interface FairSemaphoreOptions {
  /** Pieces of work that run at once. */
  limit: number;
  /** Of these, at most so many of one key. */
  perKey: number;
  /** Pieces of work of one key that wait; further ones are refused. */
  waitingMax: number;
  /** How long one waits before it is refused; without an end by default. */
  waitMaxMs?: number;
  /** The error of a piece of work that is refused. */
  refusal: (key: string) => Error;
}

interface Waiting {
  start(): void;
}

/** How long work waited for its turn in a `FairSemaphore` so far. */
export interface TurnCounts {
  /** Pieces of work that wait now. */
  waiting: number;
  /** Pieces of work that had to wait and then began. */
  waited: number;
  /** How long these waited, all together. */
  waitedMs: number;
  /** Pieces of work that were refused. */
  refused: number;
}

/**
 * Bounds how much work runs at once and gives each key its turn: whoever has much waiting delays others by one piece of work. Room that one key
 * may not use goes to the next key at once.
 */
export class FairSemaphore {
  readonly #options: FairSemaphoreOptions;
  #running = 0;
  readonly #runningOf = new Map<string, number>();
  /** By key, in the order of their turns. */
  readonly #waiting = new Map<string, Waiting[]>();
  #waited = 0;
  #waitedMs = 0;
  #refused = 0;

  constructor(options: FairSemaphoreOptions) {
    this.#options = options;
  }

  /** For metrics. Work that finds room is not counted: it pays nothing for being measured. */
  counts(): TurnCounts {
    let waiting = 0;
    for (const queue of this.#waiting.values()) waiting += queue.length;
    return { waiting, waited: this.#waited, waitedMs: this.#waitedMs, refused: this.#refused };
  }

  /** Runs `work` in its turn. @throws the refusal, without having begun, at the bound of waiting work or of its time */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    if (this.hasRoom(key)) this.#begin(key);
    else await this.#turn(key);
    try {
      return await work();
    } finally {
      this.#end(key);
    }
  }

  /** Whether work of the key would begin at once. */
  hasRoom(key: string): boolean {
    return this.#running < this.#options.limit && (this.#runningOf.get(key) ?? 0) < this.#options.perKey;
  }

  #begin(key: string): void {
    this.#running += 1;
    this.#runningOf.set(key, (this.#runningOf.get(key) ?? 0) + 1);
  }

  #end(key: string): void {
    this.#running -= 1;
    const left = (this.#runningOf.get(key) ?? 0) - 1;
    if (left > 0) this.#runningOf.set(key, left);
    else this.#runningOf.delete(key);
    this.#startNext();
  }

  #turn(key: string): Promise<void> {
    const { waitingMax, waitMaxMs, refusal } = this.#options;
    const queue = this.#waiting.get(key) ?? [];
    const refuse = (): Error => {
      this.#refused += 1;
      return refusal(key);
    };
    if (queue.length >= waitingMax) return Promise.reject(refuse());
    this.#waiting.set(key, queue);
    const sinceMs = performance.now();
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      const waiting = {
        start: () => {
          clearTimeout(timer);
          this.#waited += 1;
          this.#waitedMs += performance.now() - sinceMs;
          resolve();
        },
      };
      queue.push(waiting);
      if (waitMaxMs === undefined) return;
      timer = setTimeout(() => {
        queue.splice(queue.indexOf(waiting), 1);
        if (queue.length === 0) this.#waiting.delete(key);
        reject(refuse());
      }, waitMaxMs);
    });
  }

  /** Starts the first piece of the key whose turn it is; that key's next turn comes after those of all others. */
  #startNext(): void {
    for (const [key, queue] of this.#waiting) {
      if (!this.hasRoom(key)) continue;
      const next = queue.shift();
      this.#waiting.delete(key);
      if (queue.length > 0) this.#waiting.set(key, queue);
      this.#begin(key);
      next?.start();
      return;
    }
  }
}
