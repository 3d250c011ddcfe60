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

  /** @returns the mean time of a message, from getting it to answering it */
  handlingMs = () => this.#totalMs / this.#count;
}
