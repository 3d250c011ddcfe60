import type { MessageCore, MessageRef } from '../core.js';
import type { BusEvent, PlacedEvent } from './bus.js';

/** How far a slow reader may fall behind, in events and in bytes; it then misses output. */
const QUEUE_MAX = 1_024;
const QUEUE_BYTES_MAX = 1024 * 1024;

/** What was told of a message since the last look. */
export interface Told {
  events: PlacedEvent[];
  /** Whether the row is to be read again. */
  changed: boolean;
}

/**
 * Bus events of one message as a queue that can be awaited with a bound on the wait. A reader that falls behind by more than the
 * bounds finds a gap in place of what did not fit.
 */
export class EventQueue implements Disposable {
  #queue: PlacedEvent[] = [];
  #bytes = 0;
  /** What did not fit, while the queue has not been taken since. */
  #gap: PlacedEvent | null = null;
  #isCaughtUp: boolean;
  #ring: (() => void) | null = null;
  readonly #stop: () => void;

  /** @param after the cursor of the last event that the reader has, 0 for none; null: output is not wanted, only what changes the row */
  constructor(core: Pick<MessageCore, 'bus'>, ref: MessageRef, after: number | null) {
    this.#isCaughtUp = !after;
    this.#stop = core.bus.subscribe(ref.tenant_id, ref.message_id, after ?? 0, (placed) => {
      const { event } = placed;
      if (event.kind === 'caught_up') this.#isCaughtUp = true;
      else if (event.kind === 'changed') this.#noteChange(placed, event, after === null);
      else if (event.kind === 'gap' || after !== null) this.#add(placed);
      this.#ring?.();
    });
  }

  /** All that came since the last call; waits for something, for `waitMs`, or for the signal. */
  async take(waitMs: number, signal: AbortSignal): Promise<Told> {
    if (this.#queue.length === 0) await this.#wait(waitMs, signal, () => this.#queue.length > 0);
    return this.drain();
  }

  /** All that came since the last call. */
  drain(): Told {
    const events = this.#queue;
    this.#queue = [];
    this.#bytes = 0;
    this.#gap = null;
    return { events, changed: events.some(({ event }) => event.kind === 'changed' || event.kind === 'gap') };
  }

  /** Resolves with true once what was kept after the reader's cursor has come, with false when that takes longer than `waitMs`. */
  async caughtUp(waitMs: number, signal: AbortSignal): Promise<boolean> {
    if (!this.#isCaughtUp) await this.#wait(waitMs, signal, () => this.#isCaughtUp);
    return this.#isCaughtUp;
  }

  [Symbol.dispose](): void {
    this.#stop();
  }

  #noteChange(placed: PlacedEvent, event: BusEvent & { kind: 'changed' }, onlyChanges: boolean): void {
    if (onlyChanges && event.under_way) return;
    const last = this.#queue.at(-1);
    if (last?.event.kind === 'changed') this.#queue.pop(); // the newer one stands for both
    this.#queue.push(placed);
  }

  #add(placed: PlacedEvent): void {
    const isFull = this.#queue.length >= QUEUE_MAX || this.#bytes + placed.bytes > QUEUE_BYTES_MAX;
    if (this.#gap) {
      this.#gap.cursor = placed.cursor;
    } else if (isFull || placed.event.kind === 'gap') {
      const gap: PlacedEvent = { cursor: placed.cursor, event: { kind: 'gap' }, bytes: 0 };
      if (isFull) this.#gap = gap;
      this.#queue.push(gap);
    } else {
      this.#bytes += placed.bytes;
      this.#queue.push(placed);
    }
  }

  async #wait(waitMs: number, signal: AbortSignal, over: () => boolean): Promise<void> {
    if (signal.aborted || waitMs <= 0 || over()) return;
    await new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', done);
        this.#ring = null;
        resolve();
      };
      const timer = setTimeout(done, waitMs);
      this.#ring = () => over() && done();
      signal.addEventListener('abort', done, { once: true });
    });
  }
}
