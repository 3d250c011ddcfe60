import type { BusEvent, PlacedEvent } from './bus.js';

/** Events kept per message, beside its newest notice; older ones are dropped first. */
export const BUFFERED_EVENTS_MAX = 256;
/** Bytes of JSON kept per message; the newest event stays even when it alone is larger. */
export const BUFFERED_BYTES_MAX = 1024 * 1024;
/** How long the events of a message are kept after the newest one. */
export const RETENTION_MS = 600_000;

/** What one message costs beside its events, so that many small ones are counted too. */
const OVERHEAD_BYTES = 512;

const NOBODY: readonly never[] = [];

interface Kept {
  placed: PlacedEvent;
  bytes: number;
}

/**
 * The newest events of one message, and who follows them live. Most messages only ever change and nobody looks: such a notice is
 * kept as one field, beside the events, and costs no list and no count of its bytes.
 */
export class MessageBuffer {
  /** When the newest event came, in milliseconds. */
  touchedAtMs: number;
  #listeners: Set<(placed: PlacedEvent) => void> | undefined;
  #notice: PlacedEvent | undefined;
  #kept: Kept[] | undefined;
  #bytes = OVERHEAD_BYTES;
  #cursor: number;

  /**
   * @param nowMs also the first cursor: a buffer that was dropped, or lost with its process, goes on above the cursors
   *   that its readers hold
   */
  constructor(nowMs: number) {
    this.touchedAtMs = nowMs;
    this.#cursor = nowMs;
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
    const placed = { cursor: this.#cursor, event };
    if (event.kind === 'changed') this.#notice = placed;
    else this.#keep(placed);
    return placed;
  }

  /** The kept events after `cursor`, oldest first. */
  after(cursor: number): PlacedEvent[] {
    const events = (this.#kept ?? []).map(({ placed }) => placed);
    if (this.#notice) events.push(this.#notice);
    return events.filter((placed) => placed.cursor > cursor).sort((one, other) => one.cursor - other.cursor);
  }

  /** Forgets the events; cursors go on where they were. */
  clear(): void {
    this.#notice = undefined;
    this.#kept = undefined;
    this.#bytes = OVERHEAD_BYTES;
  }

  #keep(placed: PlacedEvent): void {
    this.#kept ??= [];
    const kept = this.#kept;
    const bytes = Buffer.byteLength(JSON.stringify(placed.event));
    kept.push({ placed, bytes });
    this.#bytes += bytes;
    while (kept.length > BUFFERED_EVENTS_MAX) this.#dropOldest(kept);
    while (kept.length > 1 && this.#bytes - OVERHEAD_BYTES > BUFFERED_BYTES_MAX) this.#dropOldest(kept);
  }

  #dropOldest(kept: Kept[]): void {
    this.#bytes -= kept.shift()?.bytes ?? 0;
  }
}
