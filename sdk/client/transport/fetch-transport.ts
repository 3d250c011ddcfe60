import { ClientClosedError, UnreachableError } from '../api/errors.js';
import {
  type Answer,
  type RequestOptions,
  SILENCE_MS,
  successful,
  type Transport,
  urlOf,
  writtenRequest,
} from './transport.js';

/** The transport of browsers: `fetch` without cookies. */
export class FetchTransport implements Transport {
  readonly baseUrl: string;
  readonly #inFlight = new Set<AbortController>();
  #isClosed = false;

  constructor(baseUrl: string) {
    this.baseUrl = baseUrl.replace(/\/+$/, '');
  }

  async request(path: string, options: RequestOptions = {}): Promise<Answer> {
    const url = urlOf(this.baseUrl, path);
    const written = writtenRequest(path, options);
    if (this.#isClosed) throw new ClientClosedError(url);
    const exchange = new Exchange(url, options);
    this.#inFlight.add(exchange.controller);
    const done = () => this.#inFlight.delete(exchange.controller);
    const response = await exchange.fetch(written).catch((error: unknown) => {
      done();
      throw error;
    });
    return successful({
      url,
      status: response.status,
      header: (name) => response.headers.get(name) ?? undefined,
      body: exchange.body(response, done),
      discard: () => exchange.controller.abort(),
    });
  }

  close(): void {
    this.#isClosed = true;
  }

  destroy(): void {
    this.#isClosed = true;
    for (const controller of this.#inFlight) controller.abort(new Error('the client is closed'));
  }
}

/** One request and its answer, which the caller's signal and the platform's silence abort. */
class Exchange {
  readonly controller = new AbortController();
  readonly #url: string;
  readonly #options: RequestOptions;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #onAbort = () => this.controller.abort(this.#options.signal?.reason);

  constructor(url: string, options: RequestOptions) {
    this.#url = url;
    this.#options = options;
    if (options.signal?.aborted) this.#onAbort();
    else options.signal?.addEventListener('abort', this.#onAbort);
  }

  /** Resolves at the headers. */
  async fetch({ headers, text }: ReturnType<typeof writtenRequest>): Promise<Response> {
    this.#expectBytes();
    try {
      return await fetch(this.#url, {
        method: this.#options.method ?? 'POST',
        headers,
        ...(text !== undefined && { body: text }),
        credentials: 'omit',
        redirect: 'error',
        signal: this.controller.signal,
      });
    } catch (error) {
      this.#end();
      throw this.#failure(error);
    }
  }

  /** @param done called once the body was read, broke or was left */
  async *body(response: Response, done: () => void): AsyncGenerator<Uint8Array> {
    const reader = response.body?.getReader();
    try {
      for (;;) {
        this.#expectBytes();
        const { value, done: isOver } = (await reader?.read()) ?? { done: true };
        if (isOver) return;
        if (value) yield value;
      }
    } catch (error) {
      throw this.#failure(error);
    } finally {
      this.#end();
      done();
      this.controller.abort(); // closes the connection of a body that was not read to its end
    }
  }

  #expectBytes(): void {
    clearTimeout(this.#timer);
    const silenceMs = this.#options.silenceMs ?? SILENCE_MS;
    this.#timer = setTimeout(() => this.controller.abort(new Error('the platform is silent')), silenceMs);
  }

  #end(): void {
    clearTimeout(this.#timer);
    this.#options.signal?.removeEventListener('abort', this.#onAbort);
  }

  /** A browser tells no more than that a request failed, also where the platform does not name the page's origin. */
  #failure(error: unknown): unknown {
    const { signal } = this.#options;
    if (signal?.aborted) return signal.reason;
    if (this.controller.signal.aborted) return new UnreachableError(this.#url, this.controller.signal.reason);
    const { origin } = (globalThis as { location?: { origin: string } }).location ?? {};
    if (!origin || new URL(this.#url).origin === origin) return new UnreachableError(this.#url, error);
    const text = error instanceof Error ? error.message : String(error);
    return new UnreachableError(this.#url, new Error(`${text} (is ${origin} one of the platform's CORS_ORIGINS?)`));
  }
}
