import { LIMITS } from '../../contracts/limits.js';

/** Sends `ping` frames. Calls `dead` when three in a row are unanswered, after about 90 s. */
export class KeepAlive {
  readonly #intervalMs: number;
  readonly #on: { ping(): void; dead(): void };
  readonly #timer: NodeJS.Timeout;
  /** Runs from the third unanswered ping on. */
  #deadTimer: NodeJS.Timeout | undefined;
  #unanswered = 0;

  constructor(intervalMs: number, on: { ping(): void; dead(): void }) {
    this.#intervalMs = intervalMs;
    this.#on = on;
    this.#timer = setInterval(() => this.#ping(), intervalMs);
  }

  /** Any received frame counts as an answer. */
  frameReceived(): void {
    this.#unanswered = 0;
    clearTimeout(this.#deadTimer);
  }

  stop(): void {
    clearInterval(this.#timer);
    clearTimeout(this.#deadTimer);
  }

  #ping(): void {
    this.#on.ping();
    this.#unanswered += 1;
    if (this.#unanswered !== LIMITS.missedPingsMax) return;
    this.#deadTimer = setTimeout(() => this.#on.dead(), this.#intervalMs / LIMITS.missedPingsMax);
  }
}
