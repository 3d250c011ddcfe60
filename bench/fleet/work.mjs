/** The work of agents and of the anchor's jobs: it only takes time, and measures how long it really took. */
import { setTimeout as delay } from 'node:timers/promises';

/** Counts the messages that one process handles. */
export class Work {
  #ms;
  #count = 0;
  #totalMs = 0;

  /** @param {number} ms of one message */
  constructor(ms) {
    this.#ms = ms;
  }

  async handle() {
    const from = performance.now();
    await delay(this.#ms);
    this.#count += 1;
    this.#totalMs += performance.now() - from;
  }

  /** What was handled so far counts no more. */
  forget = () => {
    this.#count = 0;
    this.#totalMs = 0;
  };

  /** @returns the mean time of a message, from getting it to answering it */
  handlingMs = () => this.#totalMs / this.#count;
}
