/**
 * Limits a rate: `burst` tokens at once, refilled at `perSecond`. The clock is monotonic. Our own, because rate-limiter-flexible counts fixed
 * windows and returns a promise for each frame.
 */
export class TokenBucket {
  #left: number;
  #atMs = performance.now();

  constructor(private readonly bounds: { burst: number; perSecond: number }) {
    this.#left = bounds.burst;
  }

  /** Takes a token. @returns false where none is left */
  take(): boolean {
    const { burst, perSecond } = this.bounds;
    const nowMs = performance.now();
    this.#left = Math.min(burst, this.#left + ((nowMs - this.#atMs) * perSecond) / 1_000);
    this.#atMs = nowMs;
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}
