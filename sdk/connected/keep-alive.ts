import { LIMITS } from '../../contracts/limits.js';

/** App-level pings: `dead` when three of them in a row stay without an answer, after about 90 s (specification section 6). */
export class KeepAlive {
  readonly #intervalMs: number;
  readonly #on: { ping(): void; dead(): void };
  readonly #timer: NodeJS.Timeout;
  /** Runs from the last ping that may go unanswered. */
  #lastAnswer: NodeJS.Timeout | undefined;
  #unanswered = 0;

  constructor(intervalMs: number, on: { ping(): void; dead(): void }) {
    this.#intervalMs = intervalMs;
    this.#on = on;
    this.#timer = setInterval(() => this.#ping(), intervalMs);
  }

  /** A frame came: the peer lives. */
  heard(): void {
    this.#unanswered = 0;
    clearTimeout(this.#lastAnswer);
  }

  stop(): void {
    clearInterval(this.#timer);
    clearTimeout(this.#lastAnswer);
  }

  #ping(): void {
    this.#on.ping();
    this.#unanswered += 1;
    if (this.#unanswered !== LIMITS.missedPingsMax) return;
    this.#lastAnswer = setTimeout(() => this.#on.dead(), this.#intervalMs / LIMITS.missedPingsMax);
  }
}
