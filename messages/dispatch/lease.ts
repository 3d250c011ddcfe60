/**
 * How long a process that took a message the fast path has it to itself, in milliseconds: from `wake_requested_at` on, which the sweeper
 * looks at, and which the owner renews until the message's workflow is there.
 */
export const LEASE_MS = 10_000;

/** Measures time that passes for others too: by the monotonic clock, and by the wall clock, which a suspended machine moves. */
export class Stopwatch {
  readonly #startedAtMs = performance.now();
  readonly #startedAtWallMs = Date.now();

  elapsedMs(): number {
    return Math.max(performance.now() - this.#startedAtMs, Date.now() - this.#startedAtWallMs);
  }
}
