import type { BusEvent, BusNotice, PlacedEvent } from './bus.js';

/** Events kept per message, beside its newest notice; older ones are dropped first. */
export const BUFFERED_EVENTS_MAX = 256;
/** Bytes of JSON kept per message; the newest event stays even when it alone is larger. */
export const BUFFERED_BYTES_MAX = 1024 * 1024;
/** How long the events of a message are kept after the newest one. */
export const RETENTION_MS = 600_000;

/** What one message costs beside its events, so that many small ones are counted too. */
const OVERHEAD_BYTES = 512;

const NOBODY: readonly never[] = [];

/**
 * The newest events of one message, and who follows them live. Most messages only ever change and nobody looks: such a notice is
 * kept as one field, beside the events, and costs no list and no count of its bytes.
 */
export class MessageBuffer {
  /** When the newest event came, in milliseconds. */
  touchedAtMs: number;
  #listeners: Set<(placed: PlacedEvent) => void> | undefined;
  #notice: PlacedEvent | undefined;
  #kept: PlacedEvent[] | undefined;
  #bytes = OVERHEAD_BYTES;
  #cursor: number;
  /** Output up to this cursor is not here: it was dropped, or came before the buffer. */
  #lostTo: number;
  /** Output up to this cursor is in the row. */
  #recordedTo = 0;

  /**
   * @param nowMs also the first cursor: a buffer that was dropped, or lost with its process, goes on above the cursors
   *   that its readers hold
   */
  constructor(nowMs: number) {
    this.touchedAtMs = nowMs;
    this.#cursor = nowMs;
    this.#lostTo = nowMs;
  }

  /** Bytes that this message occupies, its fixed cost included. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whoever follows now: a copy, so that a listener may leave, or bring another, while it is told. */
  get listeners(): readonly ((placed: PlacedEvent) => void)[] {
    return this.#listeners && this.#listeners.size > 0 ? [...this.#listeners] : NOBODY;
  }

  /** @returns ends it */
  follow(listener: (placed: PlacedEvent) => void): () => void {
    // One wrapper per subscription: the same function may follow twice.
    const follower = (placed: PlacedEvent): void => listener(placed);
    this.#listeners ??= new Set();
    this.#listeners.add(follower);
    return () => void this.#listeners?.delete(follower);
  }

  /** Keeps the event within the bounds; a notice replaces the notice before it. */
  add(event: BusEvent, nowMs: number): PlacedEvent {
    this.#cursor += 1;
    this.touchedAtMs = nowMs;
    if (event.kind === 'changed') return this.#keepNotice(event);
    const placed = { cursor: this.#cursor, event, bytes: Buffer.byteLength(JSON.stringify(event)) };
    this.#keep(placed);
    return placed;
  }

  /** What a follower that has seen everything up to `cursor` is told first, oldest first; 0: one that begins. */
  after(cursor: number): PlacedEvent[] {
    if (cursor === 0) return this.#keptAfter(this.#recordedTo);
    const caughtUp = news(this.#cursor, 'caught_up');
    const isWhole = cursor >= this.#lostTo && cursor <= this.#cursor;
    if (isWhole) return [...this.#keptAfter(cursor), caughtUp];
    const from = Math.max(this.#lostTo, this.#recordedTo);
    return [news(from, 'gap'), ...this.#keptAfter(from), caughtUp];
  }

  /** Forgets the events; cursors go on where they were. */
  clear(): void {
    this.#notice = undefined;
    this.#kept = undefined;
    this.#bytes = OVERHEAD_BYTES;
    this.#lostTo = this.#cursor;
  }

  #keptAfter(cursor: number): PlacedEvent[] {
    const events = [...(this.#kept ?? [])];
    if (this.#notice) events.push(this.#notice);
    return events.filter((placed) => placed.cursor > cursor).sort((one, other) => one.cursor - other.cursor);
  }

  #keepNotice(event: BusEvent & { kind: 'changed' }): PlacedEvent {
    this.#notice = { cursor: this.#cursor, event, bytes: 0 };
    if (event.recorded) this.#recordedTo = this.#cursor - 1;
    return this.#notice;
  }

  #keep(placed: PlacedEvent): void {
    this.#kept ??= [];
    const kept = this.#kept;
    kept.push(placed);
    this.#bytes += placed.bytes;
    while (kept.length > BUFFERED_EVENTS_MAX) this.#dropOldest(kept);
    while (kept.length > 1 && this.#bytes - OVERHEAD_BYTES > BUFFERED_BYTES_MAX) this.#dropOldest(kept);
  }

  #dropOldest(kept: PlacedEvent[]): void {
    const dropped = kept.shift();
    if (!dropped) return;
    this.#bytes -= dropped.bytes;
    this.#lostTo = dropped.cursor;
  }
}

function news(cursor: number, kind: BusNotice['kind']): PlacedEvent {
  return { cursor, event: { kind }, bytes: 0 };
}
