import { once } from 'node:events';
import type { ServerResponse } from 'node:http';

/** In milliseconds: between two comments, and until a reader that takes nothing is disconnected. */
const TIMES = { heartbeatMs: 15_000, stalledMsMax: 60_000 };

/** Whether a stream has sent its first event in this turn of the event loop. */
let hasBegunInTurn = false;

/** A response of server-sent events, with backpressure and a comment every 15 s. A reader that reads nothing for 60 s is disconnected. */
export class EventStream {
  readonly #raw: ServerResponse;
  readonly #heartbeat: NodeJS.Timeout;
  readonly #stalledMsMax: number;
  #hasWritten = false;

  /** Sends the headers. Fastify must not handle the response any more (`reply.hijack()`). */
  constructor(raw: ServerResponse, requestId: string, times: Partial<typeof TIMES> = {}) {
    const { heartbeatMs, stalledMsMax } = { ...TIMES, ...times };
    this.#raw = raw;
    this.#stalledMsMax = stalledMsMax;
    raw.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no', // tells proxies not to buffer
      'x-request-id': requestId,
    });
    // The first event, if it is there at once, goes out in one write with the headers.
    process.nextTick(() => this.#hasWritten || raw.flushHeaders());
    this.#heartbeat = setInterval(() => {
      if (!raw.writableNeedDrain) raw.write(': keep-alive\n\n');
    }, heartbeatMs);
    raw.once('close', () => clearInterval(this.#heartbeat));
  }

  /**
   * Sends one event; resolves when the reader has room for the next. Rejects with AbortError when `signal` aborts first.
   * @param id the `Last-Event-ID` with which a reader continues after this event; null keeps that of the event before
   */
  send(data: unknown, id: string | null, signal: AbortSignal): Promise<void> {
    return this.sendFrame(`${id === null ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`, signal);
  }

  /** As `send`, of an event as it is on the wire. */
  async sendFrame(frame: string, signal: AbortSignal): Promise<void> {
    const hasRoom = this.#raw.write(frame);
    if (!this.#hasWritten) this.#begin();
    if (hasRoom) return;
    const cutOff = setTimeout(() => this.#raw.destroy(), this.#stalledMsMax);
    try {
      await once(this.#raw, 'drain', { signal });
    } finally {
      clearTimeout(cutOff);
    }
  }

  /** Node writes at the end of a turn, after the agents got their dispatches. A reader that is alone in its turn gets its first event before them. */
  #begin(): void {
    this.#hasWritten = true;
    if (hasBegunInTurn) return;
    hasBegunInTurn = true;
    process.nextTick(() => {
      hasBegunInTurn = false;
    });
    this.#raw.socket?.uncork();
  }

  /** Ends the stream, with a last event where one is given. A reader that does not read the rest is disconnected. */
  end(last?: unknown): void {
    this.endWith(last === undefined ? undefined : `data: ${JSON.stringify(last)}\n\n`);
  }

  /** As `end`, with an event as it is on the wire. */
  endWith(frame?: string): void {
    clearInterval(this.#heartbeat);
    this.#raw.end(frame);
    const cutOff = setTimeout(() => this.#raw.destroy(), this.#stalledMsMax).unref();
    this.#raw.once('close', () => clearTimeout(cutOff));
  }
}

/** One reason for all aborts: a new one is an error with a stack trace, 25 µs. */
const RESPONSE_ENDED = new DOMException('The response is over.', 'AbortError');

/** A signal that aborts when the reader of a response leaves before its end, or when one of the causes aborts. It removes its listeners at the end. */
export function responseSignal(raw: ServerResponse, ...causes: AbortSignal[]): AbortSignal {
  const lifetime = new AbortController();
  const end = () => lifetime.abort(RESPONSE_ENDED);
  if (raw.destroyed || causes.some(({ aborted }) => aborted)) {
    end(); // a destroyed response emits no further `close`
    return lifetime.signal;
  }
  for (const cause of causes) cause.addEventListener('abort', end, { once: true });
  raw.once('close', () => {
    for (const cause of causes) cause.removeEventListener('abort', end);
    if (!raw.writableFinished) end();
  });
  return lifetime.signal;
}
