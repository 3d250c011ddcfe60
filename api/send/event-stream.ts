import { once } from 'node:events';
import type { ServerResponse } from 'node:http';

const HEARTBEAT_MS = 15_000;
const BLOCKED_MS_MAX = 60_000;

/**
 * A response of server-sent events: whole events only, at the reader's pace, with a comment every 15 s. A reader who takes nothing
 * for 60 s is cut off.
 */
export class EventStream {
  readonly #raw: ServerResponse;
  readonly #heartbeat: NodeJS.Timeout;
  readonly #blockedMsMax: number;

  /** Sends the head. The caller's framework must have let go of the response. */
  constructor(raw: ServerResponse, requestId: string, blockedMsMax = BLOCKED_MS_MAX) {
    this.#raw = raw;
    this.#blockedMsMax = blockedMsMax;
    raw.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no', // asks proxies to pass events on as they come
      'x-request-id': requestId,
    });
    raw.flushHeaders();
    this.#heartbeat = setInterval(() => {
      if (!raw.writableNeedDrain) raw.write(': keep-alive\n\n');
    }, HEARTBEAT_MS);
    raw.once('close', () => clearInterval(this.#heartbeat));
  }

  /**
   * Sends one event; resolves when the reader has room for the next. Rejects with AbortError when `signal` aborts first.
   * @param id what the reader gives as `Last-Event-ID` to go on after this event; null leaves it at the event before
   */
  async send(data: unknown, id: string | null, signal: AbortSignal): Promise<void> {
    const event = `${id === null ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;
    if (this.#raw.write(event)) return;
    const cutOff = setTimeout(() => this.#raw.destroy(), this.#blockedMsMax);
    try {
      await once(this.#raw, 'drain', { signal });
    } finally {
      clearTimeout(cutOff);
    }
  }

  /** Ends the stream, with one more event where one is given. A reader who does not take the rest is cut off. */
  end(last?: unknown): void {
    clearInterval(this.#heartbeat);
    this.#raw.end(last === undefined ? undefined : `data: ${JSON.stringify(last)}\n\n`);
    const cutOff = setTimeout(() => this.#raw.destroy(), this.#blockedMsMax).unref();
    this.#raw.once('close', () => clearTimeout(cutOff));
  }
}

/** Given, because a reason that is made at each abort is an error with a stack: 25 µs. */
const OVER = new DOMException('The response is over.', 'AbortError');

/**
 * A signal that aborts when the reader of a response goes before it is complete, or one of the causes does (the process drains); whichever
 * is first. It holds on to nothing once the response is closed.
 */
export function lifetimeOf(raw: ServerResponse, ...causes: AbortSignal[]): AbortSignal {
  const lifetime = new AbortController();
  const end = () => lifetime.abort(OVER);
  if (raw.destroyed || causes.some(({ aborted }) => aborted)) {
    end(); // a response that is destroyed does not close again
    return lifetime.signal;
  }
  for (const cause of causes) cause.addEventListener('abort', end, { once: true });
  raw.once('close', () => {
    for (const cause of causes) cause.removeEventListener('abort', end);
    if (!raw.writableFinished) end();
  });
  return lifetime.signal;
}
