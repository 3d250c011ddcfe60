/** Work that repeats while a long run goes on. */
import { setTimeout as delay } from 'node:timers/promises';

export const randomOf = (list) => list[Math.floor(Math.random() * list.length)];

/** A random number of this range. */
export const between = ([from, to]) => from + Math.random() * (to - from);

/** Runs `work` every `ms` until the signal aborts. */
export async function every(ms, signal, work) {
  while (!signal.aborted) {
    await delay(ms, undefined, { signal }).catch(() => undefined);
    if (!signal.aborted) await work();
  }
}

/** Work at a steady rate, which does not wait for what was begun before. */
export class SteadyRate {
  #underWay = new Set();

  get inFlight() {
    return this.#underWay.size;
  }

  /**
   * Begins `work`, which does not reject, `perSecond` times a second until `endsAtMs` (`performance.now()`); resolves when all of it has ended.
   * @param {(index: number) => Promise<unknown>} work
   */
  async run(perSecond, endsAtMs, work) {
    const from = performance.now();
    for (let count = 0; performance.now() < endsAtMs; count += 1) {
      await delay(Math.max(0, from + (count * 1_000) / perSecond - performance.now()));
      const one = work(count);
      this.#underWay.add(one);
      void one.finally(() => this.#underWay.delete(one));
    }
    await Promise.all(this.#underWay);
  }
}
