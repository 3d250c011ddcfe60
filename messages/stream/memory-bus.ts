import type { Logger } from '../../runtime/logger.js';
import type { BusEvent, ChunkBus, PlacedEvent } from './bus.js';
import { MessageBuffer, RETENTION_MS } from './message-buffer.js';
import { deliver } from './notify-listeners.js';

const SWEEP_MS = 60_000;
const TOTAL_BYTES_MAX = 64 * 1024 * 1024;

export interface MemoryBusOptions {
  log: Pick<Logger, 'error'>;
  /** How long a message's events are kept after the newest; ten minutes by default. */
  retentionMs?: number;
  /** How often old ones are dropped; a minute by default. */
  sweepMs?: number;
  /** For the events of all messages; 64 MiB by default. The message that was silent longest is dropped first. */
  totalBytesMax?: number;
}

class MemoryBus implements ChunkBus {
  readonly #options: Required<MemoryBusOptions>;
  /** The message with the oldest newest event first. */
  readonly #buffers = new Map<string, MessageBuffer>();
  readonly #sweeper: NodeJS.Timeout;
  #bytes = 0;

  constructor(options: MemoryBusOptions) {
    this.#options = { retentionMs: RETENTION_MS, sweepMs: SWEEP_MS, totalBytesMax: TOTAL_BYTES_MAX, ...options };
    this.#sweeper = setInterval(() => this.#sweep(), this.#options.sweepMs).unref();
  }

  publish(tenantId: string, messageId: string, event: BusEvent): void {
    const key = `${tenantId}:${messageId}`;
    const buffer = this.#buffer(key);
    this.#bytes -= buffer.bytes;
    const placed = buffer.add(event, Date.now());
    this.#bytes += buffer.bytes;
    this.#buffers.delete(key);
    this.#buffers.set(key, buffer);
    if (this.#bytes > this.#options.totalBytesMax) this.#fit();
    for (const listener of buffer.listeners) deliver(listener, placed, this.#options.log);
  }

  subscribe(
    tenantId: string,
    messageId: string,
    afterCursor: number,
    listener: (placed: PlacedEvent) => void,
  ): () => void {
    const buffer = this.#buffer(`${tenantId}:${messageId}`);
    for (const placed of buffer.after(afterCursor)) deliver(listener, placed, this.#options.log);
    return buffer.follow(listener);
  }

  async isReachable(): Promise<boolean> {
    return true;
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    this.#buffers.clear();
    this.#bytes = 0;
  }

  #buffer(key: string): MessageBuffer {
    const known = this.#buffers.get(key);
    if (known) return known;
    const buffer = new MessageBuffer(Date.now());
    this.#buffers.set(key, buffer);
    this.#bytes += buffer.bytes;
    return buffer;
  }

  /** Drops what was silent longest until the total fits; whoever still follows keeps following. */
  #fit(): void {
    for (const [key, buffer] of this.#buffers) {
      if (this.#bytes <= this.#options.totalBytesMax) return;
      this.#drop(key, buffer);
    }
  }

  #sweep(): void {
    const oldestMs = Date.now() - this.#options.retentionMs;
    for (const [key, buffer] of this.#buffers) if (buffer.touchedAtMs <= oldestMs) this.#drop(key, buffer);
  }

  #drop(key: string, buffer: MessageBuffer): void {
    this.#bytes -= buffer.bytes;
    buffer.clear();
    if (buffer.listeners.length === 0) this.#buffers.delete(key);
    else this.#bytes += buffer.bytes;
  }
}

/** The bus of one process that runs everything: events and followers in memory, listeners called at once. */
export function createMemoryBus(options: MemoryBusOptions): ChunkBus {
  return new MemoryBus(options);
}
