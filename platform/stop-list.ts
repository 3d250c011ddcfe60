import { errorMessage } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';

/** What was started, and is stopped in reverse order. */
export class StopList {
  readonly #stops: ((graceMs: number) => Promise<void>)[] = [];

  add(stop: (graceMs: number) => Promise<void>): void {
    this.#stops.push(stop);
  }

  /** Stops everything, last first. A failure is logged, and the rest is still stopped. */
  async stop(graceMs: number, log: Logger): Promise<void> {
    for (let stop = this.#stops.pop(); stop; stop = this.#stops.pop()) {
      await stop(graceMs).catch((error: unknown) =>
        log.error({ err: errorMessage(error) }, 'a component failed to stop'),
      );
    }
  }
}
