import type { Logger } from '../../runtime/logger.js';
import { Loop } from '../../runtime/loop.js';
import type { Dispatches } from '../dispatch/dispatches.js';
import type { LostDispatches } from './lost-dispatches.js';
import type { RunningDispatches } from './running-dispatches.js';

/** Dispatches compared with the record in one statement. */
const BATCH = 1_000;

interface ReconciliationOptions {
  dispatches: Pick<Dispatches, 'closedAmong'>;
  running: Pick<RunningDispatches, 'all' | 'get'>;
  lost: Pick<LostDispatches, 'mend'>;
  intervalMs: number;
  log: Logger;
}

/**
 * Stops dispatches that ended elsewhere: an agent must not keep working because its cancel was lost. Ends those that the record may name as this
 * node's and that do not run.
 */
export class Reconciliation {
  readonly #options: ReconciliationOptions;
  readonly #loop: Loop;

  constructor(options: ReconciliationOptions) {
    this.#options = options;
    const { intervalMs, log } = options;
    this.#loop = new Loop({ name: 'dispatch reconciliation', intervalMs, work: () => this.#reconcile(), log });
  }

  start(): void {
    this.#loop.start();
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  async #reconcile(): Promise<void> {
    const { dispatches, running, lost } = this.#options;
    const sending = running.all().filter(({ phase }) => phase === 'sending');
    for (let start = 0; start < sending.length; start += BATCH) {
      const refs = sending.slice(start, start + BATCH).map(({ ref }) => ref);
      for (const { dispatch_id, state } of await dispatches.closedAmong(refs))
        running.get(dispatch_id)?.close(state, '');
    }
    await lost.mend();
  }
}
