import type { Db } from '../db/pool.js';
import type { Logger } from '../runtime/logger.js';
import { Loop } from '../runtime/loop.js';
import { type EventPage, readEvents } from './event-reader.js';
import { FeedEvent, FeedReader, type FeedReaderOptions } from './feed-reader.js';

/** Events read at once. */
const PAGE = 500;
/** Between two looks while there are readers, in milliseconds; the sequencer of this process wakes the feed sooner. */
const INTERVAL_MS = 100;
/** Without readers nothing is read. */
const IDLE_MS = 60_000;

/** Who follows the events of a tenant. */
export interface Follower extends FeedReaderOptions {
  /** A cursor: the events after it are given. */
  after: number;
  signal: AbortSignal;
  /** Those that the reader may see. */
  visible?: (events: FeedEvent[]) => Promise<FeedEvent[]>;
}

/**
 * Brings the events of tenants to the streams of this process, in the order of their positions, each once. One loop reads for all streams;
 * a stream that continues reads by itself what it missed, at its reader's pace.
 */
export class EventFeed {
  readonly #db: Db;
  readonly #loop: Loop;
  readonly #joining = new Map<FeedReader, number>();
  readonly #readers = new Set<FeedReader>();
  /** Everything up to here has been given to all of `#readers`. */
  #cursor = 0;

  constructor(db: Db, log: Logger) {
    this.#db = db;
    this.#loop = new Loop({ name: 'event feed', intervalMs: INTERVAL_MS, work: () => this.#turn(), log });
    this.#loop.start();
  }

  /** How many streams follow. */
  get size(): number {
    return this.#joining.size + this.#readers.size;
  }

  /** Looks for events now. */
  wake(): void {
    if (this.size > 0) this.#loop.wake();
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  /** The events after a cursor, and then those that follow. Ends when `signal` aborts, by an AbortError. */
  async *follow({
    after,
    signal,
    visible = async (events) => events,
    ...options
  }: Follower): AsyncGenerator<FeedEvent, never> {
    const { tenantId, accepts } = options;
    let cursor = after;
    const read = async (): Promise<{ events: FeedEvent[]; isWhole: boolean }> => {
      signal.throwIfAborted();
      const page = await this.#read(cursor, [tenantId]);
      cursor = page.cursor;
      const events = page.events.filter(accepts).map((event) => new FeedEvent(event));
      return { events: await visible(events), isWhole: page.events.length < PAGE };
    };
    for (let isWhole = false; !isWhole; ) {
      const page = await read();
      isWhole = page.isWhole;
      yield* page.events;
    }
    const reader = new FeedReader(options);
    this.#joining.set(reader, cursor);
    this.#loop.wake();
    try {
      const from = await reader.begun(signal);
      while (cursor < from) yield* (await read()).events;
      while (true) {
        for (const event of await visible(await reader.next(signal))) if (event.position > cursor) yield event;
      }
    } finally {
      this.#joining.delete(reader);
      this.#readers.delete(reader);
    }
  }

  #read(after: number, tenants: string[]): Promise<EventPage> {
    return this.#db.system((tx) => readEvents(tx, { after, tenants, limit: PAGE }));
  }

  /** Reads one page for all readers. Those that wait to join do so with it: from its beginning on they get everything. */
  async #turn(): Promise<number> {
    if (this.size === 0) return IDLE_MS;
    const joining = [...this.#joining.keys()];
    if (this.#readers.size === 0) this.#cursor = Math.min(...this.#joining.values());
    const tenants = new Set([...this.#readers, ...joining].map(({ tenantId }) => tenantId));
    const { events, cursor } = await this.#read(this.#cursor, [...tenants]);
    for (const reader of joining) {
      if (!this.#joining.delete(reader)) continue; // it has left
      this.#readers.add(reader);
      reader.begin(this.#cursor);
    }
    this.#cursor = cursor;
    if (events.length > 0) this.#deliver(events.map((event) => new FeedEvent(event)));
    return events.length === PAGE ? 0 : INTERVAL_MS;
  }

  #deliver(events: FeedEvent[]): void {
    const byTenant = new Map<string, FeedEvent[]>();
    for (const event of events) {
      const { tenant_id } = event.event.record;
      const page = byTenant.get(tenant_id);
      if (page) page.push(event);
      else byTenant.set(tenant_id, [event]);
    }
    for (const reader of this.#readers) {
      const page = byTenant.get(reader.tenantId);
      if (page) reader.push(page);
    }
  }
}
