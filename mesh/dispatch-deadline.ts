import type { Dispatches, OpenDispatch } from '../messages/dispatch/dispatches.js';
import type { ChunkBus } from '../messages/stream/bus.js';

/** The clocks of the node and of the database may differ by this much. */
const SLACK_MS = 50;
/** Pause before the next try when the record could not be read. */
const RETRY_MS = 1_000;
/** How often the record is read again while the deadline stands still, in case the notice of a decision was lost. */
const RECHECK_MS = 60_000;

/** What a deadline works with. */
export interface DeadlineDeps {
  /** Announces the decision about a tool call. */
  changes: Pick<ChunkBus, 'subscribe'>;
  dispatches: Pick<Dispatches, 'deadlineLeft'>;
}

/**
 * The deadline of a dispatch that was sent. It stands still while a tool call of the dispatch waits for a human. A call that waits in this
 * process pauses it; a call that waits in another process is found on the record once the time has passed.
 */
export class DispatchDeadline {
  readonly #open: OpenDispatch;
  readonly #deps: DeadlineDeps;
  readonly #onPassed: () => void;
  #endsAtMs: number;
  #timer: NodeJS.Timeout | undefined;
  /** How many calls wait in this process, and the time that was left when the first of them began to wait. */
  #pauses = 0;
  #leftMs = 0;
  #isOver = false;
  #unsubscribe: (() => void) | undefined;

  /**
   * @param endsAtMs on `performance.now()`
   * @param onPassed called once, when the time is over
   */
  constructor(open: OpenDispatch, endsAtMs: number, deps: DeadlineDeps, onPassed: () => void) {
    this.#open = open;
    this.#deps = deps;
    this.#onPassed = onPassed;
    this.#endsAtMs = endsAtMs;
    this.#arm(Math.max(0, endsAtMs - performance.now()));
  }

  /** On `performance.now()`; infinite while a call in this process pauses it. */
  get endsAtMs(): number {
    return this.#pauses > 0 ? Number.POSITIVE_INFINITY : this.#endsAtMs;
  }

  /** Milliseconds left. */
  get leftMs(): number {
    return this.#pauses > 0 ? this.#leftMs : Math.max(1, this.#endsAtMs - performance.now());
  }

  pause(): void {
    if (this.#pauses === 0) this.#leftMs = this.leftMs;
    this.#pauses += 1;
    clearTimeout(this.#timer);
  }

  /** Ends one `pause`. */
  resume(): void {
    this.#pauses -= 1;
    if (this.#pauses > 0 || this.#isOver) return;
    this.#endsAtMs = performance.now() + this.#leftMs;
    // The record has the time that is left. The count here may differ: this node may have taken the dispatch over from another.
    void this.#due();
  }

  stop(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#unsubscribe?.();
  }

  #arm(inMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#due(), inMs);
  }

  async #due(): Promise<void> {
    const left = await this.#deps.dispatches.deadlineLeft(this.#open).catch(() => RETRY_MS);
    if (this.#isOver || this.#pauses > 0) return;
    if (left === 'stands_still') {
      const { tenant_id, message_id } = this.#open;
      this.#unsubscribe ??= this.#deps.changes.subscribe(tenant_id, message_id, 0, ({ event }) => {
        if (event.kind === 'changed') void this.#due();
      });
      this.#arm(RECHECK_MS);
    } else if (left > SLACK_MS) {
      this.#endsAtMs = performance.now() + left;
      this.#arm(left);
    } else {
      this.stop();
      this.#onPassed();
    }
  }
}
