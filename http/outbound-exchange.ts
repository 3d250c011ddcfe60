import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { OutboundBody } from './outbound-body.js';
import { OutboundError, type OutboundErrorCode, outboundErrorCode } from './outbound-error.js';

/** What a caller says about the request itself. */
export interface RequestParts {
  /** `GET` by default. */
  method?: string;
  headers?: Record<string, string>;
  body?: string | Buffer;
}

/** The head of an answer. */
interface Head {
  status: number;
  headers: IncomingHttpHeaders;
}

/**
 * One request and its answer: the deadline, the caller's signal, whether the request was sent, and the error that
 * follows from these. `settle()` must be called once it is over. It speaks to undici's `dispatch`: `request()` with its streams,
 * an interceptor and a signal for each call measured twice the CPU.
 */
export class Exchange {
  #sent = false;
  #status: number | undefined;
  #cutBy: 'TIMEOUT' | 'ABORTED' | undefined;
  #deadline: NodeJS.Timeout | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #refuseHead: (error: unknown) => void = () => undefined;
  readonly #body = new OutboundBody({
    pause: () => this.#controller?.pause(),
    resume: () => this.#controller?.resume(),
    drop: () => this.#controller?.abort(this.error('ABORTED')),
  });
  readonly #callerSignal: AbortSignal | undefined;
  readonly #onCallerAbort = (): void => this.cut('ABORTED');

  /** @param timeoutMs from now until `clearDeadline()` or `settle()` */
  constructor(timeoutMs: number, callerSignal?: AbortSignal) {
    this.#callerSignal = callerSignal;
    this.#deadline = setTimeout(() => this.cut('TIMEOUT'), timeoutMs);
    if (callerSignal?.aborted) this.cut('ABORTED');
    callerSignal?.addEventListener('abort', this.#onCallerAbort, { once: true });
  }

  /** Sends the request and waits for the response headers. A 3xx fails with REDIRECT. */
  open(agent: Dispatcher, url: URL, parts: RequestParts, bodyTimeoutMs: number): Promise<Head> {
    return new Promise((resolve, reject) => {
      if (this.#cutBy) return reject(this.error(this.#cutBy));
      if (parts.method === 'CONNECT') return reject(this.error('BAD_URL')); // a tunnel, not an exchange
      this.#refuseHead = reject;
      const options = {
        origin: url.origin,
        path: url.pathname + url.search,
        method: (parts.method ?? 'GET') as Dispatcher.HttpMethod,
        headers: parts.headers,
        body: parts.body,
        headersTimeout: 0, // the deadline counts for connect and headers together
        bodyTimeout: bodyTimeoutMs,
      };
      agent.dispatch(options, this.#handler(resolve));
    });
  }

  /** The body, to be read once; leaving it before its end drops the connection. Throws anything: see `explain`. */
  body(): AsyncGenerator<Buffer> {
    return this.#body.read();
  }

  /** Ends the exchange early. A request that still waits for its connection is never sent. The first cut names the error. */
  cut(code: 'TIMEOUT' | 'ABORTED'): void {
    this.#cutBy ??= code;
    this.#fail(this.error(this.#cutBy));
  }

  /** Lifts the time limit, for a body that may go on for as long as it likes. */
  clearDeadline(): void {
    clearTimeout(this.#deadline);
  }

  /** Releases the timer and the caller's signal. */
  settle(): void {
    this.clearDeadline();
    this.#callerSignal?.removeEventListener('abort', this.#onCallerAbort);
  }

  /** An error of this exchange, carrying whether the request was sent and the status seen. */
  error(code: OutboundErrorCode, cause?: unknown): OutboundError {
    return new OutboundError(code, { requestSent: this.#sent, status: this.#status, cause });
  }

  /** The caller's view of anything that was thrown during the exchange. */
  explain(thrown: unknown): OutboundError {
    if (thrown instanceof OutboundError && thrown.requestSent) return thrown;
    return this.error(this.#cutBy ?? outboundErrorCode(thrown, this.#sent), thrown);
  }

  /** undici hears an abort only once it has a connection, so whoever waits does not wait for that. */
  #fail(error: unknown): void {
    this.#refuseHead(error);
    this.#body.fail(error);
    this.#controller?.abort(error as Error);
  }

  #handler(onHead: (head: Head) => void): Dispatcher.DispatchHandler {
    return {
      onRequestStart: (controller) => {
        // The moment before the first byte is written. A second one is refused: undici may requeue a request.
        if (this.#sent) return controller.abort(this.error('BROKEN'));
        if (this.#cutBy) return controller.abort(this.error(this.#cutBy));
        this.#sent = true;
        this.#controller = controller;
      },
      onResponseStart: (_controller, status, headers) => {
        if (status < 200) return;
        this.#status = status;
        if (status >= 300 && status < 400) this.#fail(this.error('REDIRECT'));
        else onHead({ status, headers });
      },
      onResponseData: (_controller, chunk) => this.#body.push(chunk),
      onResponseEnd: () => this.#body.end(),
      onResponseError: (_controller, error) => this.#fail(error),
    };
  }
}
