import type { Dispatcher } from 'undici';
import { OutboundError, type OutboundErrorCode, outboundErrorCode } from './outbound-error.js';

/** What a caller says about the request itself. */
export interface RequestParts {
  /** `GET` by default. */
  method?: string;
  headers?: Record<string, string>;
  body?: string | Buffer;
}

type Response = Dispatcher.ResponseData;

/**
 * One request and its answer: the deadline, the caller's signal, whether the request was sent, and the error that
 * follows from these. `settle()` must be called once it is over.
 */
export class Exchange {
  #sent = false;
  #status: number | undefined;
  #cutBy: 'TIMEOUT' | 'ABORTED' | undefined;
  #deadline: NodeJS.Timeout | undefined;
  readonly #abort = new AbortController();
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
  async open(agent: Dispatcher, url: URL, parts: RequestParts, bodyTimeoutMs: number): Promise<Response> {
    const response = await this.#headers(agent, {
      origin: url.origin,
      path: url.pathname + url.search,
      method: (parts.method ?? 'GET') as Dispatcher.HttpMethod,
      headers: parts.headers,
      body: parts.body,
      signal: this.#abort.signal,
      headersTimeout: 0, // the deadline counts for connect and headers together
      bodyTimeout: bodyTimeoutMs,
    });
    // Readers get the error from the iterator; without a reader a destroyed body must not end the process.
    response.body.on('error', () => undefined);
    this.#status = response.statusCode;
    if (response.statusCode >= 300 && response.statusCode < 400) {
      response.body.destroy();
      throw this.error('REDIRECT');
    }
    return response;
  }

  /** Ends the exchange early. A request that still waits for its connection is never sent. The first cut names the error. */
  cut(code: 'TIMEOUT' | 'ABORTED'): void {
    this.#cutBy ??= code;
    this.#abort.abort();
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

  /** undici hears an abort only once it has a connection, so a cut does not wait for it. */
  #headers(agent: Dispatcher, options: Dispatcher.RequestOptions): Promise<Response> {
    const { signal } = this.#abort;
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      agent.compose(this.#watchStart).request(options).then(resolve, reject);
    });
  }

  /** Notes the moment before the first byte is written, and refuses a second one: undici may requeue a request. */
  readonly #watchStart: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (options, handler) =>
    dispatch(options, {
      onRequestStart: (controller, context) => {
        if (this.#sent) return controller.abort(this.error('BROKEN'));
        if (this.#abort.signal.aborted) return controller.abort(this.error('ABORTED'));
        this.#sent = true;
        handler.onRequestStart?.(controller, context);
      },
      onResponseStart: (...args) => handler.onResponseStart?.(...args),
      onResponseData: (...args) => handler.onResponseData?.(...args),
      onResponseEnd: (...args) => handler.onResponseEnd?.(...args),
      onResponseError: (...args) => handler.onResponseError?.(...args),
    });
}
