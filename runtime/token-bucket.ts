/**
 * How often something may be done: so many times at once, then so many times a second (a token bucket). Its clock is monotonic.
 */
export class TokenBucket {
  readonly #burst: number;
  readonly #perSecond: number;
  #left: number;
  #atMs = performance.now();

  constructor(bounds: { burst: number; perSecond: number }) {
    this.#burst = bounds.burst;
    this.#perSecond = bounds.perSecond;
    this.#left = bounds.burst;
  }

  /** Takes one. @returns false when there is none: then nothing was taken */
  take(): boolean {
    const nowMs = performance.now();
    this.#left = Math.min(this.#burst, this.#left + ((nowMs - this.#atMs) * this.#perSecond) / 1_000);
    this.#atMs = nowMs;
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}
