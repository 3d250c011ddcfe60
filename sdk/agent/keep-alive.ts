import { LIMITS } from '../../contracts/limits.js';

/** App-level pings: `dead` after three of them in a row without an answer (specification section 6). */
export class KeepAlive {
  readonly #timer: NodeJS.Timeout;
  #unanswered = 0;

  constructor(intervalMs: number, on: { ping(): void; dead(): void }) {
    this.#timer = setInterval(() => {
      if (this.#unanswered >= LIMITS.missedPingsMax) on.dead();
      else on.ping();
      this.#unanswered += 1;
    }, intervalMs);
  }

  /** A pong came. */
  heard(): void {
    this.#unanswered = 0;
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
