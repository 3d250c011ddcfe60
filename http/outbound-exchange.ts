import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { OutboundError, type OutboundErrorCode, outboundErrorCode } from './outbound-error.js';

/** Buffered bytes at which the connection is paused. */
const BUFFERED_BYTES_MAX = 64 * 1024;

/** The request of an exchange. */
export interface RequestParts {
  /** `GET` by default. */
  method?: string;
  headers?: Record<string, string>;
  body?: string | Buffer;
  /** A 3xx is an answer like others, and its `location` is the caller's to judge. By default it fails with REDIRECT. */
  returnRedirects?: boolean;
}

/** Status and headers of a response. */
interface ResponseHead {
  status: number;
  headers: IncomingHttpHeaders;
}

/**
 * One request and its response: the deadline, the caller's signal, whether the request was sent, and the error that results. Callers
 * call `settle()` at the end. Uses undici's `dispatch`: `request()` with streams, an interceptor and a signal takes twice the CPU.
 */
export class OutboundExchange {
  #sent = false;
  /** The response has ended. */
  #isWhole = false;
  #status: number | undefined;
  #canceledBy: 'TIMEOUT' | 'ABORTED' | undefined;
  #deadline: NodeJS.Timeout | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #rejectHead: (error: unknown) => void = () => undefined;
  /** The body, readable once. Leaving the loop early drops the connection. Throws anything: see `explain`. */
  readonly body: Readable = new Readable({
    highWaterMark: BUFFERED_BYTES_MAX,
    read: () => this.#controller?.resume(),
    destroy: (error, done) => {
      if (!this.body.readableEnded) this.#controller?.abort(error ?? this.error('ABORTED'));
      done(error);
    },
  }).on('error', () => undefined); // nobody may be reading; a reader gets the error itself
  readonly #callerSignal: AbortSignal | undefined;
  readonly #onCallerAbort = (): void => this.cancel('ABORTED');

  /** @param timeoutMs from now until `clearDeadline()` or `settle()` */
  constructor(timeoutMs: number, callerSignal?: AbortSignal) {
    this.#callerSignal = callerSignal;
    this.#deadline = setTimeout(() => this.cancel('TIMEOUT'), timeoutMs);
    if (callerSignal?.aborted) this.cancel('ABORTED');
    callerSignal?.addEventListener('abort', this.#onCallerAbort, { once: true });
  }

  /** Sends the request and waits for the response headers. A 3xx fails with REDIRECT. */
  open(agent: Dispatcher, url: URL, parts: RequestParts, bodyTimeoutMs: number): Promise<ResponseHead> {
    return new Promise((resolve, reject) => {
      if (this.#canceledBy) return reject(this.error(this.#canceledBy));
      if (parts.method === 'CONNECT') return reject(this.error('BAD_URL')); // a tunnel, not an exchange
      this.#rejectHead = reject;
      const options = {
        origin: url.origin,
        path: url.pathname + url.search,
        method: (parts.method ?? 'GET') as Dispatcher.HttpMethod,
        headers: parts.headers,
        body: parts.body,
        headersTimeout: 0, // the deadline counts for connect and headers together
        bodyTimeout: bodyTimeoutMs,
      };
      agent.dispatch(options, this.#handler(resolve, parts.returnRedirects ?? false));
    });
  }

  /** Ends the exchange. A request that still waits for its connection is never sent. The code of the first call counts. */
  cancel(code: 'TIMEOUT' | 'ABORTED'): void {
    this.#canceledBy ??= code;
    this.#fail(this.error(this.#canceledBy));
  }

  /** Removes the deadline, for a body of unlimited duration. */
  clearDeadline(): void {
    clearTimeout(this.#deadline);
  }

  /** The body for a reader that calls `leave()` at its end: to leave a loop over `body` itself makes an error, with its stack. */
  chunks(): AsyncIterable<Buffer> {
    return this.body.iterator({ destroyOnReturn: false });
  }

  /** Ends the reading of `chunks()`. Drops the connection unless the whole response has come. */
  leave(): void {
    this.settle();
    if (!this.#isWhole) this.body.destroy();
  }

  /** Removes the timer and the listener on the caller's signal. */
  settle(): void {
    this.clearDeadline();
    this.#callerSignal?.removeEventListener('abort', this.#onCallerAbort);
  }

  /** An error with the state of this exchange. */
  error(code: OutboundErrorCode, cause?: unknown): OutboundError {
    return new OutboundError(code, { requestSent: this.#sent, status: this.#status, cause });
  }

  /** The error to throw for anything that was thrown during the exchange. */
  explain(thrown: unknown): OutboundError {
    if (thrown instanceof OutboundError && thrown.requestSent) return thrown;
    return this.error(this.#canceledBy ?? outboundErrorCode(thrown, this.#sent), thrown);
  }

  /** Rejects at once: undici handles an abort only once it has a connection. What has come as a whole can still be read. */
  #fail(error: Error): void {
    this.#rejectHead(error);
    if (!this.#isWhole) this.body.destroy(error);
  }

  #handler(onHead: (head: ResponseHead) => void, returnRedirects: boolean): Dispatcher.DispatchHandler {
    return {
      onRequestStart: (controller) => {
        // Called right before the first byte is written. A second call is refused: undici may requeue a request.
        if (this.#sent) return controller.abort(this.error('BROKEN'));
        if (this.#canceledBy) return controller.abort(this.error(this.#canceledBy));
        this.#sent = true;
        this.#controller = controller;
      },
      onResponseStart: (_controller, status, headers) => {
        if (status < 200) return;
        this.#status = status;
        if (status >= 300 && status < 400 && !returnRedirects) this.#fail(this.error('REDIRECT'));
        else onHead({ status, headers });
      },
      onResponseData: (controller, chunk) => {
        if (!this.body.push(chunk)) controller.pause();
      },
      onResponseEnd: () => {
        this.#isWhole = true;
        this.body.push(null);
      },
      onResponseError: (_controller, error) => this.#fail(error),
    };
  }
}
