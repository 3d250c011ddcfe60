import { EventEmitter, once } from 'node:events';
import type { PositionedEvent } from './event-reader.js';

/** From so many waiting events on, the next page finds the reader too slow. */
const WAITING_EVENTS_MAX = 1_000;
/** The same for their size as server-sent events. */
const WAITING_BYTES_MAX = 1024 * 1024;

/** An event as readers get it: all that follow a tenant share its text. */
export class FeedEvent {
  #frame: string | undefined;

  constructor(readonly event: PositionedEvent) {}

  get position(): number {
    return this.event.position;
  }

  /** The server-sent event: id, type and the record as JSON. */
  get frame(): string {
    const { event_id, event_type } = this.event.record;
    this.#frame ??= `id: ${event_id}\nevent: ${event_type}\ndata: ${JSON.stringify(this.event.record)}\n\n`;
    return this.#frame;
  }
}

/** What a reader wants, and how it is told that it is too slow. */
export interface FeedReaderOptions {
  tenantId: string;
  accepts: (event: PositionedEvent) => boolean;
  /** Called once, when more waits for the reader than may: nothing further comes. */
  onTooSlow: () => void;
}

/** The bounded queue between the feed and one reader. */
export class FeedReader {
  readonly tenantId: string;
  /** The cursor after which the queue begins; null until the feed has taken the reader up. */
  from: number | null = null;
  readonly #options: FeedReaderOptions;
  readonly #changes = new EventEmitter();
  #waiting: FeedEvent[] = [];
  #bytes = 0;
  #isTooSlow = false;

  constructor(options: FeedReaderOptions) {
    this.#options = options;
    this.tenantId = options.tenantId;
  }

  /** The feed has taken the reader up: from this cursor on it pushes every event of the tenant. */
  begin(from: number): void {
    this.from = from;
    this.#changes.emit('change');
  }

  /** Adds what the reader accepts of a page. A page that comes while too much of earlier ones waits ends the queue. */
  push(page: FeedEvent[]): void {
    const events = page.filter(({ event }) => this.#options.accepts(event));
    if (this.#isTooSlow || events.length === 0) return;
    if (this.#waiting.length >= WAITING_EVENTS_MAX || this.#bytes >= WAITING_BYTES_MAX) {
      this.#isTooSlow = true;
      this.#waiting = [];
      this.#options.onTooSlow();
      return;
    }
    this.#waiting.push(...events);
    this.#bytes += events.reduce((sum, { frame }) => sum + frame.length, 0);
    this.#changes.emit('change');
  }

  /** What waits, at least one event. Rejects with AbortError when `signal` aborts first. */
  async next(signal: AbortSignal): Promise<FeedEvent[]> {
    while (this.#waiting.length === 0) await once(this.#changes, 'change', { signal });
    const events = this.#waiting;
    this.#waiting = [];
    this.#bytes = 0;
    return events;
  }

  /** The cursor after which the queue begins. Rejects with AbortError when `signal` aborts first. */
  async begun(signal: AbortSignal): Promise<number> {
    while (this.from === null) await once(this.#changes, 'change', { signal });
    return this.from;
  }
}
