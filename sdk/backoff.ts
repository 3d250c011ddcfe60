const FIRST_MS = 1_000;
/** As multiples of the first wait. */
const STEPS = [1, 2, 4, 8, 16, 30];
const JITTER = 0.25;
/** Upper limit for the wait that the platform asks for. */
const RETRY_AFTER_MS_MAX = 300_000;

/** Waits between reconnect attempts: 1, 2, 4, 8, 16, then 30 s, each ±25 %. */
export class Backoff {
  readonly #firstMs: number;
  readonly #random: () => number;
  #failures = 0;

  /**
   * @param firstMs the first wait, of which the others are multiples
   * @param random in [0, 1)
   */
  constructor(firstMs = FIRST_MS, random: () => number = Math.random) {
    this.#firstMs = firstMs;
    this.#random = random;
  }

  /**
   * The next wait in milliseconds.
   * @param retryAfterMs the wait that the platform asked for (`Retry-After`); up to 25 % are added so that clients do not all return at once
   */
  next(retryAfterMs = 0): number {
    const step = this.#firstMs * (STEPS[Math.min(this.#failures, STEPS.length - 1)] ?? 0);
    this.#failures += 1;
    const random = this.#random();
    const asked = Math.min(retryAfterMs, RETRY_AFTER_MS_MAX) * (1 + random * JITTER);
    return Math.round(Math.max(step * (1 - JITTER + random * 2 * JITTER), asked));
  }

  /** Called after a success: the next failure has the first wait again. */
  reset(): void {
    this.#failures = 0;
  }
}
