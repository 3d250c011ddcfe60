import type { BusEvent, PlacedEvent } from './bus.js';

/** Events kept per message; older ones are dropped first. */
export const BUFFERED_EVENTS_MAX = 256;
/** Bytes of JSON kept per message; the newest event stays even when it alone is larger. */
export const BUFFERED_BYTES_MAX = 1024 * 1024;
/** How long the events of a message are kept after the newest one. */
export const RETENTION_MS = 600_000;

/** What one message costs beside its events, so that many small ones are counted too. */
const OVERHEAD_BYTES = 512;

/** The newest events of one message, and who follows them live. */
export class MessageBuffer {
  readonly listeners = new Set<(placed: PlacedEvent) => void>();
  /** When the newest event came, in milliseconds. */
  touchedAtMs: number;
  #kept: { placed: PlacedEvent; bytes: number }[] = [];
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

  /** Keeps the event within the bounds; a notice replaces the notice before it. */
  add(event: BusEvent, nowMs: number): PlacedEvent {
    if (event.kind === 'changed') this.#drop(this.#kept.findIndex(({ placed }) => placed.event.kind === 'changed'));
    this.#cursor += 1;
    this.touchedAtMs = nowMs;
    const placed = { cursor: this.#cursor, event };
    const bytes = Buffer.byteLength(JSON.stringify(event));
    this.#kept.push({ placed, bytes });
    this.#bytes += bytes;
    while (this.#kept.length > BUFFERED_EVENTS_MAX) this.#drop(0);
    while (this.#kept.length > 1 && this.#bytes - OVERHEAD_BYTES > BUFFERED_BYTES_MAX) this.#drop(0);
    return placed;
  }

  /** The kept events after `cursor`, oldest first. */
  after(cursor: number): PlacedEvent[] {
    return this.#kept.map(({ placed }) => placed).filter((placed) => placed.cursor > cursor);
  }

  /** Forgets the events; cursors go on where they were. */
  clear(): void {
    this.#kept = [];
    this.#bytes = OVERHEAD_BYTES;
  }

  #drop(index: number): void {
    const [dropped] = index < 0 ? [] : this.#kept.splice(index, 1);
    this.#bytes -= dropped?.bytes ?? 0;
  }
}
