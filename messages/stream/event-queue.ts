import type { MessageCore, MessageRef } from '../core.js';
import type { BusItem } from './bus.js';

/** Events and bytes of output in a queue; a reader that is slower misses output. */
const QUEUE_MAX = 1_024;
const QUEUE_BYTES_MAX = 1024 * 1024;

/** The events of a message since the last batch. */
export interface EventBatch {
  events: BusItem[];
  /** Whether the row must be read again. */
  changed: boolean;
}

/** The longest time that a timer can have: `unlessEvents` waits without a limit. */
const SILENCE_MS_MAX = 2 ** 31 - 1;

/** The bus events of a message in a bounded queue. A gap takes the place of events that did not fit. */
export class EventQueue implements Disposable {
  #queue: BusItem[] = [];
  #bytes = 0;
  /** The gap at the end of a full queue. */
  #gap: BusItem | null = null;
  #isCaughtUp: boolean;
  #wake: (() => void) | null = null;
  readonly #unsubscribe: () => void;

  /** @param after the cursor of the last event that the reader has; 0 for none; null for a reader that needs only changes of the row */
  constructor(core: Pick<MessageCore, 'bus'>, ref: MessageRef, after: number | null) {
    this.#isCaughtUp = !after;
    this.#unsubscribe = core.bus.subscribe(ref.tenant_id, ref.message_id, after ?? 0, (item) => {
      const { event } = item;
      const changesRow = event.kind === 'gap' || (event.kind === 'changed' && !event.under_way);
      if (event.kind === 'caught_up') this.#isCaughtUp = true;
      else if (changesRow || after !== null) this.#add(item);
      this.#wake?.();
    });
  }

  /** All events since the last call. If there are none it waits for one, for `waitMs` or until the signal aborts. */
  async take(waitMs: number, signal: AbortSignal): Promise<EventBatch> {
    if (this.#queue.length === 0) await this.#wait(waitMs, signal, () => this.#queue.length > 0);
    return this.drain();
  }

  /** The outcome of `work`; undefined as soon as there are events, or the signal aborts. @throws what `work` rejects with before that */
  async unlessEvents<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
    const over = new AbortController();
    const events = this.#wait(SILENCE_MS_MAX, AbortSignal.any([signal, over.signal]), () => this.#queue.length > 0);
    try {
      return await Promise.race([work, events.then(() => undefined)]);
    } finally {
      over.abort(null);
    }
  }

  /** All events since the last call. */
  drain(): EventBatch {
    const events = this.#queue;
    this.#queue = [];
    this.#bytes = 0;
    this.#gap = null;
    return { events, changed: events.some(({ event }) => event.kind === 'changed' || event.kind === 'gap') };
  }

  /** Waits for the retained events after the reader's cursor. @returns false when that takes longer than `waitMs` */
  async caughtUp(waitMs: number, signal: AbortSignal): Promise<boolean> {
    if (!this.#isCaughtUp) await this.#wait(waitMs, signal, () => this.#isCaughtUp);
    return this.#isCaughtUp;
  }

  [Symbol.dispose](): void {
    this.#unsubscribe();
  }

  #add(item: BusItem): void {
    const isFull = this.#queue.length >= QUEUE_MAX || this.#bytes + item.bytes > QUEUE_BYTES_MAX;
    if (item.event.kind === 'changed') {
      if (this.#queue.at(-1)?.event.kind === 'changed') this.#queue.pop(); // one read of the row serves both
      this.#queue.push(item);
    } else if (this.#gap) {
      this.#gap.cursor = item.cursor;
    } else if (isFull || item.event.kind === 'gap') {
      const gap: BusItem = { cursor: item.cursor, event: { kind: 'gap' }, bytes: 0 };
      if (isFull) this.#gap = gap;
      this.#queue.push(gap);
    } else {
      this.#bytes += item.bytes;
      this.#queue.push(item);
    }
  }

  async #wait(waitMs: number, signal: AbortSignal, isOver: () => boolean): Promise<void> {
    if (signal.aborted || waitMs <= 0 || isOver()) return;
    await new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', done);
        this.#wake = null;
        resolve();
      };
      const timer = setTimeout(done, waitMs);
      this.#wake = () => isOver() && done();
      signal.addEventListener('abort', done, { once: true });
    });
  }
}
