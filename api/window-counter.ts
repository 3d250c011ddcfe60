import { PlatformError } from '../runtime/errors.js';

interface Window {
  startedAtMs: number;
  count: number;
}

/**
 * Counts by key in windows of fixed length, in this process's memory. At most `maxKeys` are kept: beyond that the key that was
 * begun first is forgotten, so a flood of keys costs accuracy, never memory.
 */
export class WindowCounter {
  readonly #windowMs: number;
  readonly #limit: number;
  readonly #maxKeys: number;
  readonly #nowMs: () => number;
  readonly #windows = new Map<string, Window>();

  constructor(options: { windowMs: number; limit: number; maxKeys: number; nowMs?: () => number }) {
    this.#windowMs = options.windowMs;
    this.#limit = options.limit;
    this.#maxKeys = options.maxKeys;
    this.#nowMs = options.nowMs ?? (() => performance.now());
  }

  /** @throws PlatformError `RATE_LIMITED` with `Retry-After` when the key has used up its window */
  check(key: string, message: string): void {
    const window = this.#current(key);
    if (!window || window.count < this.#limit) return;
    const seconds = Math.max(1, Math.ceil((window.startedAtMs + this.#windowMs - this.#nowMs()) / 1000));
    throw new PlatformError('RATE_LIMITED', message, { headers: { 'Retry-After': String(seconds) } });
  }

  add(key: string): void {
    const window = this.#current(key);
    if (window) {
      window.count++;
      return;
    }
    this.#windows.delete(key);
    this.#windows.set(key, { startedAtMs: this.#nowMs(), count: 1 });
    if (this.#windows.size > this.#maxKeys) this.#windows.delete(this.#windows.keys().next().value ?? key);
  }

  #current(key: string): Window | undefined {
    const window = this.#windows.get(key);
    return window && this.#nowMs() - window.startedAtMs < this.#windowMs ? window : undefined;
  }
}
