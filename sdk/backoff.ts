const STEPS_MS = [1_000, 2_000, 4_000, 8_000, 16_000, 30_000];
const JITTER = 0.25;

/** Waits between reconnects: 1, 2, 4, 8, 16, then 30 s, each ±25 % (specification section 6). */
export class Backoff {
  readonly #random: () => number;
  #failures = 0;

  /** @param random in [0, 1) */
  constructor(random: () => number = Math.random) {
    this.#random = random;
  }

  /** The next wait in milliseconds. */
  next(): number {
    const step = STEPS_MS[Math.min(this.#failures, STEPS_MS.length - 1)] ?? 0;
    this.#failures += 1;
    return Math.round(step * (1 - JITTER + this.#random() * 2 * JITTER));
  }

  /** After a success the next failure waits 1 s again. */
  reset(): void {
    this.#failures = 0;
  }
}
