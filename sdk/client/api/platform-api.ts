import { unlessAborted } from '../../unless-aborted.js';
import { type Answer, type JsonObject, type RequestOptions, readJson, type Transport } from '../transport/transport.js';
import { ApiError } from './errors.js';
import { withRetries } from './retries.js';
import type { TokenSource } from './token-source.js';

/** Validates an answer; a zod schema fits. */
export interface AnswerSchema<T> {
  parse(value: unknown): T;
}

export interface CallOptions {
  /** Aborts the call, which rejects with the signal's reason. Whether the request took effect is then unknown. */
  signal?: AbortSignal;
}

export interface PostOptions extends CallOptions {
  /** Retries the request after a temporary failure. Only for idempotent requests. */
  retry?: boolean;
  headers?: Record<string, string>;
  /** Time limit without any byte from the platform, in milliseconds; 300,000 by default. */
  silenceMs?: number;
}

/** What an operation needs beyond its body. */
export interface OpenOptions extends RequestOptions {
  /** Sends no token. */
  isPublic?: boolean;
}

/** API requests with one credential. Tokens are renewed before they expire, and once after a 401. */
export class PlatformApi {
  readonly tokens: TokenSource;
  readonly #transport: Transport;

  constructor(transport: Transport, tokens: TokenSource) {
    this.#transport = transport;
    this.tokens = tokens;
  }

  get baseUrl(): string {
    return this.#transport.baseUrl;
  }

  /** POSTs `body` and validates the answer. @throws ApiError | UnreachableError | the signal's reason */
  async post<T>(path: string, body: unknown, schema: AnswerSchema<T>, options: PostOptions = {}): Promise<T> {
    const { retry = false, ...rest } = options;
    return schema.parse(await this.json(path, { body, ...rest }, retry));
  }

  /** Sends a request and reads the answer. @param retry whether to repeat it after a temporary failure */
  json(path: string, options: OpenOptions, retry = false): Promise<JsonObject> {
    const once = async () => readJson(await this.open(path, options));
    return retry ? withRetries(once, options.signal) : once();
  }

  /** Sends a request and resolves at the headers of the answer; the caller reads the body. Repeated only once, when the token was refused. */
  async open(path: string, { isPublic = false, ...options }: OpenOptions): Promise<Answer> {
    if (isPublic) return this.#transport.request(path, options);
    const { signal } = options;
    const token = () => (signal ? unlessAborted(this.tokens.get(), signal) : this.tokens.get());
    const bearer = await token();
    try {
      return await this.#transport.request(path, { ...options, bearer });
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 401) throw error;
      this.tokens.invalidate(bearer);
      return this.#transport.request(path, { ...options, bearer: await token() });
    }
  }

  /** Accepts no new requests, and closes the connections when in-flight requests have been answered. */
  close(): void {
    this.#transport.close();
  }

  /** Closes the connections at once; in-flight requests fail with `UnreachableError`. */
  destroy(): void {
    this.#transport.destroy();
  }
}
