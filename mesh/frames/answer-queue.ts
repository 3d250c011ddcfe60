import { setTimeout as delay } from 'node:timers/promises';
import { LIMITS } from '../../contracts/limits.js';
import type { FrameSocket } from './frame-socket.js';

/** How often the socket of a slow reader is checked, in milliseconds. */
const CONGESTION_POLL_MS = 25;
/** Queued answers, refusals included. */
const QUEUED_MAX = 4 * LIMITS.toolCallsInFlightPerCaller;
/** The largest result for every call that a caller may have in flight, and half as much again. */
const QUEUED_BYTES_MAX = 1.5 * LIMITS.toolCallsInFlightPerCaller * LIMITS.toolResultBytes;

/**
 * Sends answers one after the other, each when the socket has room, so that many answers at once do not count as a slow reader. Beyond
 * its limits it closes the socket with BACKPRESSURE.
 */
export class AnswerQueue {
  readonly #socket: () => FrameSocket;
  readonly #queued: string[] = [];
  #bytes = 0;

  /** @param socket gives the agent's current socket */
  constructor(socket: () => FrameSocket) {
    this.#socket = socket;
  }

  push(frame: string): void {
    const socket = this.#socket();
    if (this.#queued.length === 0 && !socket.isCongested) {
      socket.send(frame);
      return;
    }
    this.#queued.push(frame);
    this.#bytes += Buffer.byteLength(frame);
    if (this.#queued.length > QUEUED_MAX || this.#bytes > QUEUED_BYTES_MAX) socket.overflow();
    else if (this.#queued.length === 1) void this.#drain();
  }

  /** Drops what is queued: the socket is gone. */
  clear(): void {
    this.#queued.length = 0;
    this.#bytes = 0;
  }

  async #drain(): Promise<void> {
    for (let frame = this.#queued[0]; frame !== undefined; frame = this.#queued[0]) {
      const socket = this.#socket();
      if (socket.isCongested) {
        await delay(CONGESTION_POLL_MS);
        continue;
      }
      socket.send(frame);
      this.#queued.shift();
      this.#bytes -= Buffer.byteLength(frame);
    }
  }
}
