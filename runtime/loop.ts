import { errorMessage } from './errors.js';
import type { Logger } from './logger.js';

/** Work that is repeated with a pause between its end and its next start. A failure is logged and the next turn tries again. */
export class Loop {
  readonly #intervalMs: number;
  readonly #work: () => Promise<void>;
  readonly #log: Logger;
  readonly #name: string;
  #timer: NodeJS.Timeout | undefined;
  #turn: Promise<void> = Promise.resolve();
  #stopped = true;

  constructor(options: { name: string; intervalMs: number; work: () => Promise<void>; log: Logger }) {
    this.#name = options.name;
    this.#intervalMs = options.intervalMs;
    this.#work = options.work;
    this.#log = options.log;
  }

  start(): void {
    this.#stopped = false;
    this.#schedule();
  }

  /** Resolves when the present turn has ended; there is no other. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#turn;
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.#turn = this.#run().finally(() => this.#schedule());
    }, this.#intervalMs);
  }

  async #run(): Promise<void> {
    try {
      await this.#work();
    } catch (error) {
      this.#log.warn({ err: errorMessage(error), loop: this.#name }, 'mesh loop failed, will try again');
    }
  }
}
