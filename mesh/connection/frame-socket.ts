import type { Duplex } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { CLOSE_CODES, type FrameErrorCode } from '../../contracts/errors.js';
import { LIMITS } from '../../contracts/limits.js';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import { errorFrame } from './frames.js';
import type { MeshTimings } from './timings.js';

const INBOX_FRAMES_MAX = 64;
const INBOX_BYTES_MAX = 2 * 1024 * 1024;
/** Frames that are handled before other sockets get a turn. */
const FRAMES_PER_TURN = 64;
/** Frames of one turn leave in one write, up to so many bytes: so they never count as a reader that is slow. */
const GATHERED_BYTES_MAX = 64 * 1024;
/** How often a congested socket is looked at, in milliseconds. */
const CONGESTION_POLL_MS = 250;

export interface FrameSocketHandlers {
  /** Called for one text message at a time, in order. @returns what the next one has to wait for */
  onText(text: string): Promise<void> | undefined;
  /** Called when reading goes on after the inbox was full: answers that were due may come only now. */
  onCaughtUp(): void;
  /** Called once, when the socket is gone or about to go: nothing is sent or received any more. */
  onLost(code: number): void;
}

/**
 * A WebSocket with its bounds. Inbound: one message at a time; the socket is paused while the inbox is full, and a flood leaves turns
 * to other sockets. Outbound: no new work over 256 KiB of buffer; closed with BACKPRESSURE at 1 MiB or when it stays congested for
 * `blockedMaxMs`.
 */
export class FrameSocket {
  readonly #ws: WebSocket;
  readonly #wire: Duplex;
  readonly #handlers: FrameSocketHandlers;
  readonly #timings: MeshTimings;
  readonly #log: Logger;
  readonly #inbox: Buffer[] = [];
  #inboxBytes = 0;
  #handling = false;
  #gathering = false;
  #lost = false;
  #congestedSinceMs: number | undefined;
  #congestion: NodeJS.Timeout | undefined;

  /** @param wire the socket that `ws` writes to */
  constructor(ws: WebSocket, wire: Duplex, handlers: FrameSocketHandlers, timings: MeshTimings, log: Logger) {
    this.#ws = ws;
    this.#wire = wire;
    this.#handlers = handlers;
    this.#timings = timings;
    this.#log = log;
    ws.on('message', (data: Buffer, isBinary: boolean) => this.#receive(data, isBinary));
    ws.on('ping', () => this.#watchBuffer()); // each was answered with a pong that has to go out
    ws.on('error', (error) => log.info({ err: errorMessage(error) }, 'agent socket failed'));
    ws.on('close', (code) => {
      clearInterval(this.#congestion);
      this.#lose(code);
    });
  }

  /** Whether so much waits to go out that no new work should be added. */
  get isCongested(): boolean {
    return !this.#lost && this.#ws.bufferedAmount >= LIMITS.bufferedBytesSoft;
  }

  /** Whether so much has come in that nothing more is read for now. */
  get isBehind(): boolean {
    return this.#ws.isPaused;
  }

  /** @returns false when the socket is closed or closing; nothing was sent then */
  send(frame: string): boolean {
    if (this.#lost || this.#ws.readyState !== WebSocket.OPEN) return false;
    this.#gather();
    this.#ws.send(frame);
    if (this.#ws.bufferedAmount >= GATHERED_BYTES_MAX) this.#letGo();
    this.#watchBuffer();
    return true;
  }

  /** Says why in an `error` frame and closes. */
  fail(code: FrameErrorCode, message: string, closeCode: number, replyTo?: string): void {
    if (this.#lost) return;
    if (this.#ws.readyState === WebSocket.OPEN) this.#ws.send(errorFrame(code, message, replyTo));
    this.close(closeCode, code);
  }

  close(code: number, reason: string): void {
    if (this.#lost) return;
    this.#ws.close(code, reason);
    this.#ws.resume(); // the peer's closing frame must be read even when the inbox was full
    this.#lose(code);
  }

  /** More waits to go out than may: the reader is too slow. */
  overflow(): void {
    if (this.#lost) return;
    clearInterval(this.#congestion);
    this.#log.warn({ buffered_bytes: this.#ws.bufferedAmount }, 'agent does not read, closing its socket');
    this.fail('BACKPRESSURE', 'The socket is not being read.', CLOSE_CODES.BACKPRESSURE);
  }

  /** Destroys it without a closing handshake. */
  terminate(): void {
    this.#ws.terminate();
    this.#lose(CLOSE_CODES.GOING_AWAY);
  }

  /** What is sent before this turn of the event loop ends waits for the rest of it. */
  #gather(): void {
    if (this.#gathering) return;
    this.#gathering = true;
    this.#wire.cork();
    process.nextTick(() => this.#letGo());
  }

  #letGo(): void {
    if (!this.#gathering) return;
    this.#gathering = false;
    this.#wire.uncork();
  }

  #lose(code: number): void {
    if (this.#lost) return;
    this.#lost = true;
    this.#inbox.length = 0;
    this.#handlers.onLost(code);
  }

  #receive(data: Buffer, isBinary: boolean): void {
    if (this.#lost) return;
    if (isBinary) {
      this.close(CLOSE_CODES.UNSUPPORTED_DATA, 'text frames only');
      return;
    }
    this.#inbox.push(data);
    this.#inboxBytes += data.length;
    if (this.#inbox.length >= INBOX_FRAMES_MAX || this.#inboxBytes >= INBOX_BYTES_MAX) this.#ws.pause();
    if (!this.#handling) void this.#drainInbox();
  }

  async #drainInbox(): Promise<void> {
    this.#handling = true;
    let handled = 0;
    for (let data = this.#inbox.shift(); data !== undefined; data = this.#inbox.shift()) {
      this.#inboxBytes -= data.length;
      try {
        const handling = this.#handlers.onText(data.toString());
        if (handling !== undefined) await handling;
      } catch (error) {
        this.#log.error({ err: error }, 'frame handler failed');
        this.fail('INTERNAL', 'The frame could not be handled.', CLOSE_CODES.INTERNAL);
      }
      this.#readOn();
      handled += 1;
      if (handled % FRAMES_PER_TURN === 0) await nextTurn();
    }
    this.#handling = false;
  }

  #readOn(): void {
    if (!this.#ws.isPaused || this.#inbox.length >= INBOX_FRAMES_MAX / 2 || this.#inboxBytes >= INBOX_BYTES_MAX / 2)
      return;
    this.#ws.resume();
    this.#handlers.onCaughtUp();
  }

  #watchBuffer(): void {
    const buffered = this.#ws.bufferedAmount;
    if (buffered >= LIMITS.bufferedBytesHard) this.overflow();
    if (this.#lost || buffered < LIMITS.bufferedBytesSoft || this.#congestion) return;
    this.#congestedSinceMs = performance.now();
    this.#congestion = setInterval(
      () => this.#checkCongestion(),
      Math.min(CONGESTION_POLL_MS, this.#timings.blockedMaxMs),
    );
  }

  #checkCongestion(): void {
    if (!this.isCongested) {
      clearInterval(this.#congestion);
      this.#congestion = undefined;
      return;
    }
    const sinceMs = performance.now() - (this.#congestedSinceMs ?? 0);
    if (sinceMs >= this.#timings.blockedMaxMs || this.#ws.bufferedAmount >= LIMITS.bufferedBytesHard) this.overflow();
  }
}
