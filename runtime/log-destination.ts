import { mkdirSync, openSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

/** What waits in memory while nothing can be written; further lines are dropped and counted. */
const WAITING_BYTES_MAX = 1024 * 1024;
/** Between two tries, in milliseconds. */
const RETRY_MS = 250;
const STANDARD_ERROR = 2;

/**
 * Where the lines of a log go. A disk that is full or a reader that is gone costs lines of the log and nothing else: up to 1 MiB waits until it can be
 * written, and what comes beyond is dropped.
 */
export class LogDestination {
  /** How many lines were dropped. */
  dropped = 0;
  /** Called once lines can be written again after some were dropped. */
  onRecovered: (dropped: number) => void = () => undefined;
  readonly #fd: number;
  /** In order; the first may be the rest of a line. */
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #droppedBefore = 0;
  readonly #lastTry = () => this.#writeWaiting();

  /** @param file a path to append to; standard error when absent */
  constructor(file?: string) {
    if (file !== undefined) mkdirSync(dirname(file), { recursive: true });
    this.#fd = file === undefined ? STANDARD_ERROR : openSync(file, 'a', 0o600);
  }

  /** Never throws. */
  write(text: string): void {
    const line = Buffer.from(text);
    if (this.#waiting.length > 0) this.#wait(line);
    else {
      const written = this.#writeSome(line);
      if (written < line.length) this.#beginWaiting(line.subarray(written));
    }
  }

  /** @returns how many bytes the destination took */
  #writeSome(bytes: Buffer): number {
    let written = 0;
    try {
      while (written < bytes.length) written += writeSync(this.#fd, bytes, written);
    } catch {
      // There is nowhere to say it: `dropped` counts, and `onRecovered` tells afterwards.
    }
    return written;
  }

  #beginWaiting(rest: Buffer): void {
    this.#droppedBefore = this.dropped;
    this.#wait(rest);
    process.once('exit', this.#lastTry);
    const retry = setInterval(() => {
      this.#writeWaiting();
      if (this.#waiting.length > 0) return;
      clearInterval(retry);
      process.off('exit', this.#lastTry);
      if (this.dropped > this.#droppedBefore) this.onRecovered(this.dropped - this.#droppedBefore);
    }, RETRY_MS);
    retry.unref();
  }

  /** The rest of a line that was begun always waits. */
  #wait(line: Buffer): void {
    if (this.#waiting.length > 0 && this.#waitingBytes + line.length > WAITING_BYTES_MAX) this.dropped += 1;
    else {
      this.#waiting.push(line);
      this.#waitingBytes += line.length;
    }
  }

  #writeWaiting(): void {
    const bytes = Buffer.concat(this.#waiting);
    const rest = bytes.subarray(this.#writeSome(bytes));
    this.#waiting = rest.length > 0 ? [rest] : [];
    this.#waitingBytes = rest.length;
  }
}
