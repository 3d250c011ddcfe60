import { errorMessage } from './errors.js';
import type { Logger } from './logger.js';

/** How a loop works. */
export interface LoopOptions {
  /** In the log. */
  name: string;
  /** Between the end of a turn and the start of the next, unless `work` says otherwise. */
  intervalMs: number;
  /** One turn. May resolve to the milliseconds until the next one. */
  work: () => Promise<number> | Promise<void>;
  log: Pick<Logger, 'info' | 'warn'>;
  /** The first turn starts at once; after `intervalMs` by default. */
  immediate?: boolean;
}

/** Repeats work with pauses, one turn at a time. Failures do not end it: the log says when turns begin to fail and when they work again. */
export class Loop {
  /** The loops of this process whose last turn failed, for metrics. */
  static readonly failing = new Set<Loop>();

  #timer: NodeJS.Timeout | undefined;
  #turn: Promise<void> = Promise.resolve();
  #stopped = true;
  #inTurn = false;
  #woken = false;
  #failing = false;

  constructor(private readonly options: LoopOptions) {}

  get name(): string {
    return this.options.name;
  }

  start(): void {
    this.#stopped = false;
    this.#schedule(this.options.immediate ? 0 : this.options.intervalMs);
  }

  /** Ends the pause. During a turn, the next one follows without a pause. */
  wake(): void {
    if (this.#inTurn) this.#woken = true;
    else this.#schedule(0);
  }

  /** Starts no further turn; resolves when the one under way has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#turn;
    Loop.failing.delete(this);
  }

  #schedule(inMs: number): void {
    if (this.#stopped) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#turn = this.#run();
    }, inMs);
  }

  #noteFailing(failing: boolean): void {
    this.#failing = failing;
    if (failing) Loop.failing.add(this);
    else Loop.failing.delete(this);
  }

  async #run(): Promise<void> {
    const { name, intervalMs, work, log } = this.options;
    let pauseMs = intervalMs;
    this.#inTurn = true;
    this.#woken = false;
    try {
      pauseMs = (await work()) ?? intervalMs;
      if (this.#failing) log.info({ loop: name }, 'a background loop works again');
      this.#noteFailing(false);
    } catch (error) {
      if (!this.#failing)
        log.warn({ err: errorMessage(error), loop: name }, 'a background loop fails; it keeps trying');
      this.#noteFailing(true);
    }
    this.#inTurn = false;
    this.#schedule(this.#woken ? 0 : pauseMs);
  }
}
