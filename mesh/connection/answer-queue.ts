import { setTimeout as delay } from 'node:timers/promises';
import { LIMITS } from '../../contracts/limits.js';
import type { FrameSocket } from './frame-socket.js';

/** How often the socket of a slow reader is looked at again, in milliseconds. */
const CONGESTION_POLL_MS = 25;
/** Answers that wait for a socket with room, refusals included. */
const WAITING_MAX = 4 * LIMITS.toolCallsInFlightPerCaller;
/** A whole set of the largest results, and half as much for what comes meanwhile. */
const WAITING_BYTES_MAX = 1.5 * LIMITS.toolCallsInFlightPerCaller * LIMITS.toolResultBytes;

/**
 * Sends answers one after the other, each when the socket has room: many at once are no reason to call the reader slow. Bounded: a
 * reader for whom more has to wait is closed with BACKPRESSURE.
 */
export class AnswerQueue {
  readonly #socket: () => FrameSocket;
  readonly #waiting: string[] = [];
  #bytes = 0;

  /** @param socket the present one */
  constructor(socket: () => FrameSocket) {
    this.#socket = socket;
  }

  push(frame: string): void {
    const socket = this.#socket();
    if (this.#waiting.length === 0 && !socket.isCongested) {
      socket.send(frame);
      return;
    }
    this.#waiting.push(frame);
    this.#bytes += Buffer.byteLength(frame);
    if (this.#waiting.length > WAITING_MAX || this.#bytes > WAITING_BYTES_MAX) socket.overflow();
    else if (this.#waiting.length === 1) void this.#drain();
  }

  /** The socket is gone. */
  clear(): void {
    this.#waiting.length = 0;
    this.#bytes = 0;
  }

  async #drain(): Promise<void> {
    for (let frame = this.#waiting[0]; frame !== undefined; frame = this.#waiting[0]) {
      const socket = this.#socket();
      if (socket.isCongested) {
        await delay(CONGESTION_POLL_MS);
        continue;
      }
      socket.send(frame);
      this.#waiting.shift();
      this.#bytes -= Buffer.byteLength(frame);
    }
  }
}
