import type { Logger } from '../../runtime/logger.js';
import {
  BUFFERED_BYTES_MAX,
  BUFFERED_EVENTS_MAX,
  type BusEvent,
  type BusItem,
  type BusListener,
  type BusNotice,
  type ChunkBus,
  deliver,
  RETENTION_MS,
} from './bus.js';

const SWEEP_MS = 10_000;
/**
 * Events that nobody has followed, and that are in the row, are kept this long for callers that know the message's id and do not follow it yet. A later one
 * polls the row (`rereadMs`).
 */
const UNFOLLOWED_MS = 10_000;
const TOTAL_BYTES_MAX = 64 * 1024 * 1024;
/** The fixed size of a message's buffer, so that many empty ones are counted too. */
const OVERHEAD_BYTES = 512;
const NO_LISTENERS: readonly never[] = [];

function notice(cursor: number, kind: BusNotice['kind']): BusItem {
  return { cursor, event: { kind }, bytes: 0 };
}

/**
 * The newest events of one message, and its subscribers. Most messages have only `changed` notices and no subscriber: the newest notice is
 * one field beside the events, and needs no list and no size.
 */
class MessageBuffer {
  /** The time of the newest event. */
  updatedAtMs: number;
  #listeners: Set<BusListener> | undefined;
  #notice: BusItem | undefined;
  #events: BusItem[] | undefined;
  #bytes = OVERHEAD_BYTES;
  #cursor: number;
  /** Output up to this cursor is not here: it was dropped, or is older than the buffer. */
  #droppedTo: number;
  /** Output up to this cursor is in the row. */
  #recordedTo = 0;
  #wasFollowed = false;

  /** @param nowMs also the first cursor, so that a buffer made again continues above the cursors that readers hold */
  constructor(nowMs: number) {
    this.updatedAtMs = nowMs;
    this.#cursor = nowMs;
    this.#droppedTo = nowMs;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether a reader may hold a cursor of this message, or the row lacks output. */
  get isNeeded(): boolean {
    const newest = this.#events?.at(-1)?.cursor ?? 0;
    return this.#wasFollowed || newest > this.#recordedTo;
  }

  /** A copy, because a listener may end its subscription or add another. */
  get listeners(): readonly BusListener[] {
    return this.#listeners && this.#listeners.size > 0 ? [...this.#listeners] : NO_LISTENERS;
  }

  /** @returns ends the subscription */
  subscribe(listener: BusListener): () => void {
    this.#wasFollowed = true;
    // One wrapper for each subscription: the same function may subscribe twice.
    const subscriber = (item: BusItem): void => listener(item);
    this.#listeners ??= new Set();
    this.#listeners.add(subscriber);
    return () => void this.#listeners?.delete(subscriber);
  }

  /** Keeps an event within the limits. A notice replaces the one before. */
  add(event: BusEvent, nowMs: number): BusItem {
    this.#cursor += 1;
    this.updatedAtMs = nowMs;
    if (event.kind === 'changed') {
      this.#notice = { cursor: this.#cursor, event, bytes: 0 };
      if (event.recorded) this.#recordedTo = this.#cursor - 1;
      return this.#notice;
    }
    const item = { cursor: this.#cursor, event, bytes: Buffer.byteLength(JSON.stringify(event)) };
    this.#keep(item);
    return item;
  }

  /** The retained events for a subscriber, oldest first. @param cursor of the last event that it has; 0 for none */
  after(cursor: number): BusItem[] {
    if (cursor === 0) return this.#eventsAfter(this.#recordedTo);
    const caughtUp = notice(this.#cursor, 'caught_up');
    const isWhole = cursor >= this.#droppedTo && cursor <= this.#cursor;
    if (isWhole) return [...this.#eventsAfter(cursor), caughtUp];
    const from = Math.max(this.#droppedTo, this.#recordedTo);
    return [notice(from, 'gap'), ...this.#eventsAfter(from), caughtUp];
  }

  /** Drops the events; the cursor stays. */
  clear(): void {
    this.#notice = undefined;
    this.#events = undefined;
    this.#bytes = OVERHEAD_BYTES;
    this.#droppedTo = this.#cursor;
  }

  #eventsAfter(cursor: number): BusItem[] {
    const events = [...(this.#events ?? [])];
    if (this.#notice) events.push(this.#notice);
    return events.filter((item) => item.cursor > cursor).sort((one, other) => one.cursor - other.cursor);
  }

  #keep(item: BusItem): void {
    this.#events ??= [];
    const events = this.#events;
    events.push(item);
    this.#bytes += item.bytes;
    while (events.length > BUFFERED_EVENTS_MAX) this.#dropOldest(events);
    while (events.length > 1 && this.#bytes - OVERHEAD_BYTES > BUFFERED_BYTES_MAX) this.#dropOldest(events);
  }

  #dropOldest(events: BusItem[]): void {
    const dropped = events.shift();
    if (!dropped) return;
    this.#bytes -= dropped.bytes;
    this.#droppedTo = dropped.cursor;
  }
}

export interface MemoryBusOptions {
  log: Pick<Logger, 'error'>;
  /** The events of a message that somebody follows or followed are kept this long after the newest; ten minutes by default. */
  retentionMs?: number;
  /** The interval at which old events are dropped; ten seconds by default. */
  sweepMs?: number;
  /** For the events of all messages; 64 MiB by default. The messages with the oldest events are dropped first. */
  totalBytesMax?: number;
}

/** The bus of a platform in one process: events and subscriptions in memory. Listeners are called within `publish` and `subscribe`. */
export class MemoryBus implements ChunkBus {
  readonly #options: Required<MemoryBusOptions>;
  /** By message, the least recently updated first. */
  readonly #buffers = new Map<string, MessageBuffer>();
  readonly #sweeper: NodeJS.Timeout;
  #bytes = 0;

  constructor(options: MemoryBusOptions) {
    this.#options = { retentionMs: RETENTION_MS, sweepMs: SWEEP_MS, totalBytesMax: TOTAL_BYTES_MAX, ...options };
    this.#sweeper = setInterval(() => this.#sweep(), this.#options.sweepMs).unref();
  }

  publish(tenantId: string, messageId: string, event: BusEvent): void {
    const key = `${tenantId}:${messageId}`;
    const buffer = this.#bufferOf(key);
    this.#bytes -= buffer.bytes;
    const item = buffer.add(event, Date.now());
    this.#bytes += buffer.bytes;
    this.#buffers.delete(key);
    this.#buffers.set(key, buffer);
    if (this.#bytes > this.#options.totalBytesMax) this.#fit();
    for (const listener of buffer.listeners) deliver(listener, item, this.#options.log);
  }

  subscribe(tenantId: string, messageId: string, afterCursor: number, listener: BusListener): () => void {
    const buffer = this.#bufferOf(`${tenantId}:${messageId}`);
    for (const item of buffer.after(afterCursor)) deliver(listener, item, this.#options.log);
    return buffer.subscribe(listener);
  }

  async keysOf(): Promise<string[]> {
    return [];
  }

  async forget(tenantId: string, messageIds: readonly string[] | null): Promise<void> {
    const keys = messageIds?.map((id) => `${tenantId}:${id}`) ?? [...this.#buffers.keys()];
    for (const key of keys) {
      const buffer = this.#buffers.get(key);
      if (buffer && key.startsWith(`${tenantId}:`)) this.#drop(key, buffer);
    }
  }

  async isReachable(): Promise<boolean> {
    return true;
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    this.#buffers.clear();
    this.#bytes = 0;
  }

  #bufferOf(key: string): MessageBuffer {
    const known = this.#buffers.get(key);
    if (known) return known;
    const buffer = new MessageBuffer(Date.now());
    this.#buffers.set(key, buffer);
    this.#bytes += buffer.bytes;
    return buffer;
  }

  #fit(): void {
    for (const [key, buffer] of this.#buffers) {
      if (this.#bytes <= this.#options.totalBytesMax) return;
      this.#drop(key, buffer);
    }
  }

  #sweep(): void {
    const now = Date.now();
    const { retentionMs } = this.#options;
    for (const [key, buffer] of this.#buffers) {
      const keptMs = buffer.isNeeded ? retentionMs : Math.min(retentionMs, UNFOLLOWED_MS);
      if (now - buffer.updatedAtMs >= keptMs) this.#drop(key, buffer);
    }
  }

  /** Drops the events of a message. Its subscriptions continue. */
  #drop(key: string, buffer: MessageBuffer): void {
    this.#bytes -= buffer.bytes;
    buffer.clear();
    if (buffer.listeners.length === 0) this.#buffers.delete(key);
    else this.#bytes += buffer.bytes;
  }
}
