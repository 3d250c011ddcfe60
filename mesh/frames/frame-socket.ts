import type { Duplex } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { CLOSE_CODES, type FrameErrorCode } from '../../contracts/errors.js';
import { LIMITS } from '../../contracts/limits.js';
import type { Clocks } from '../../runtime/clocks.js';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import { errorFrame } from './frames.js';

const INBOX_FRAMES_MAX = 64;
const INBOX_BYTES_MAX = 2 * 1024 * 1024;
/** Frames that are handled before other sockets are served. */
const FRAMES_PER_TURN = 64;
/** Frames of one turn of the event loop go out in one write, up to this size, so that they do not count as a slow reader. */
const CORKED_BYTES_MAX = 64 * 1024;
/** How often a congested socket is checked, in milliseconds. */
const CONGESTION_POLL_MS = 250;

export interface FrameSocketHandlers {
  /** Called for one text message at a time, in order. @returns what the next message has to wait for */
  onText(text: string): Promise<void> | undefined;
  /** Called when reading resumes after the inbox was full: a due pong may be read only now. */
  onReadingResumed(): void;
  /** Called once, when the socket is closed or closing: nothing is sent or received after that. */
  onLost(code: number): void;
}

/**
 * A WebSocket with limits. Inbound: one message at a time; reading pauses while the inbox is full, and other sockets are served between
 * many messages. Outbound: no new work over 256 KiB of buffer; closed with BACKPRESSURE at 1 MiB or when it stays congested for
 * `blockedMaxMs`.
 */
export class FrameSocket {
  readonly #ws: WebSocket;
  readonly #wire: Duplex;
  readonly #handlers: FrameSocketHandlers;
  readonly #clocks: Pick<Clocks, 'blockedMaxMs'>;
  readonly #log: Logger;
  readonly #inbox: Buffer[] = [];
  #inboxBytes = 0;
  #handling = false;
  #corked = false;
  #lost = false;
  #congestedSinceMs: number | undefined;
  #congestion: NodeJS.Timeout | undefined;

  /** @param wire the TCP or TLS socket that `ws` writes to */
  constructor(
    ws: WebSocket,
    wire: Duplex,
    handlers: FrameSocketHandlers,
    clocks: Pick<Clocks, 'blockedMaxMs'>,
    log: Logger,
  ) {
    this.#ws = ws;
    this.#wire = wire;
    this.#handlers = handlers;
    this.#clocks = clocks;
    this.#log = log;
    ws.on('message', (data: Buffer, isBinary: boolean) => this.#receive(data, isBinary));
    ws.on('ping', () => this.#watchBuffer()); // ws answers each with a pong, which is buffered too
    ws.on('error', (error) => log.info({ err: errorMessage(error) }, 'agent socket failed'));
    ws.on('close', (code) => {
      clearInterval(this.#congestion);
      this.#markLost(code);
    });
  }

  /** Whether so much is buffered that no new work should be sent. */
  get isCongested(): boolean {
    return !this.#lost && this.#ws.bufferedAmount >= LIMITS.bufferedBytesSoft;
  }

  /** Whether reading is paused because the inbox is full. */
  get isPaused(): boolean {
    return this.#ws.isPaused;
  }

  /** @returns false when the socket is closed or closing; nothing was sent then */
  send(frame: string): boolean {
    if (this.#lost || this.#ws.readyState !== WebSocket.OPEN) return false;
    this.#cork();
    this.#ws.send(frame);
    if (this.#ws.bufferedAmount >= CORKED_BYTES_MAX) this.#uncork();
    this.#watchBuffer();
    return true;
  }

  /** Sends an `error` frame and closes. */
  fail(code: FrameErrorCode, message: string, closeCode: number, replyTo?: string): void {
    if (this.#lost) return;
    if (this.#ws.readyState === WebSocket.OPEN) this.#ws.send(errorFrame(code, message, replyTo));
    this.close(closeCode, code);
  }

  close(code: number, reason: string): void {
    if (this.#lost) return;
    this.#ws.close(code, reason);
    this.#ws.resume(); // the peer's close frame must be read even when the inbox was full
    this.#markLost(code);
  }

  /** Closes with BACKPRESSURE: the reader is too slow. */
  overflow(): void {
    if (this.#lost) return;
    clearInterval(this.#congestion);
    this.#log.warn({ buffered_bytes: this.#ws.bufferedAmount }, 'agent does not read, closing its socket');
    this.fail('BACKPRESSURE', 'The socket is not being read.', CLOSE_CODES.BACKPRESSURE);
  }

  /** Destroys it without a close handshake. */
  terminate(): void {
    this.#ws.terminate();
    this.#markLost(CLOSE_CODES.GOING_AWAY);
  }

  /** Collects what is sent in this turn of the event loop. */
  #cork(): void {
    if (this.#corked) return;
    this.#corked = true;
    this.#wire.cork();
    process.nextTick(() => this.#uncork());
  }

  #uncork(): void {
    if (!this.#corked) return;
    this.#corked = false;
    this.#wire.uncork();
  }

  #markLost(code: number): void {
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
      this.#resumeReading();
      handled += 1;
      if (handled % FRAMES_PER_TURN === 0) await nextTurn();
    }
    this.#handling = false;
  }

  #resumeReading(): void {
    if (!this.#ws.isPaused || this.#inbox.length >= INBOX_FRAMES_MAX / 2 || this.#inboxBytes >= INBOX_BYTES_MAX / 2)
      return;
    this.#ws.resume();
    this.#handlers.onReadingResumed();
  }

  #watchBuffer(): void {
    const buffered = this.#ws.bufferedAmount;
    if (buffered >= LIMITS.bufferedBytesHard) this.overflow();
    if (this.#lost || buffered < LIMITS.bufferedBytesSoft || this.#congestion) return;
    this.#congestedSinceMs = performance.now();
    this.#congestion = setInterval(
      () => this.#checkCongestion(),
      Math.min(CONGESTION_POLL_MS, this.#clocks.blockedMaxMs),
    );
  }

  #checkCongestion(): void {
    if (!this.isCongested) {
      clearInterval(this.#congestion);
      this.#congestion = undefined;
      return;
    }
    const sinceMs = performance.now() - (this.#congestedSinceMs ?? 0);
    if (sinceMs >= this.#clocks.blockedMaxMs || this.#ws.bufferedAmount >= LIMITS.bufferedBytesHard) this.overflow();
  }
}
