import { setTimeout as delay } from 'node:timers/promises';
import { type AccessOptions, type Role, resolveAccess } from '../access.js';
import { ApiError, isTransient, retryAfterMs } from './errors.js';
import { TokenSource } from './token-source.js';
import { type Answer, type JsonObject, type RequestOptions, readJson, Transport } from './transport.js';

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

const RETRIES = 3;
const RETRY_FIRST_MS = 200;
const RETRY_AFTER_MS_MAX = 30_000;

/** Authenticated API requests with one credential. Tokens are renewed before they expire, and once after a 401. */
export class PlatformApi {
  readonly tokens: TokenSource;
  readonly ca: string | undefined;
  readonly #transport: Transport;

  /**
   * @param agentType the token's `agent_type` claim
   * @param role selects the credential of a local platform
   */
  constructor(options: AccessOptions, agentType?: string, role: Role = 'caller') {
    const access = resolveAccess(options, role);
    this.ca = access.ca;
    this.#transport = new Transport(access.url, access.ca);
    this.tokens = new TokenSource(this.#transport, access.credentials, agentType);
  }

  get baseUrl(): string {
    return this.#transport.baseUrl;
  }

  /** POSTs `body` and validates the answer. @throws ApiError | UnreachableError | the signal's reason */
  async post<T>(path: string, body: unknown, schema: AnswerSchema<T>, options: PostOptions = {}): Promise<T> {
    const { retry = false, ...rest } = options;
    const once = async () => schema.parse(await this.#json(path, { body, ...rest }));
    return retry ? withRetries(once, options.signal) : once();
  }

  /** POSTs and resolves at the headers of the answer; the caller reads the body. Repeated only once, when the token was refused. */
  async open(path: string, options: RequestOptions): Promise<Answer> {
    const bearer = await this.tokens.get();
    try {
      return await this.#transport.request(path, { ...options, bearer });
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 401) throw error;
      this.tokens.invalidate(bearer);
      return this.#transport.request(path, { ...options, bearer: await this.tokens.get() });
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

  async #json(path: string, options: RequestOptions): Promise<JsonObject> {
    return readJson(await this.open(path, options));
  }
}

/** Up to four attempts: after 0.2, 0.4 and 0.8 s (±25 %), or as long as the platform asks to wait. */
export async function withRetries<T>(attempt: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  for (let failures = 0; ; failures += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (failures >= RETRIES || !isTransient(error) || signal?.aborted) throw error;
      await pause(retryWaitMs(error, failures), signal);
    }
  }
}

function retryWaitMs(error: unknown, failures: number): number {
  const retryAfter = retryAfterMs(error);
  if (retryAfter !== undefined) return Math.min(retryAfter, RETRY_AFTER_MS_MAX);
  return RETRY_FIRST_MS * 2 ** failures * (0.75 + Math.random() / 2);
}

/** Waits for `waitMs`. @throws the signal's reason once it is aborted */
export async function pause(waitMs: number, signal?: AbortSignal): Promise<void> {
  await delay(waitMs, undefined, { signal }).catch((error: unknown) => {
    throw signal?.aborted ? signal.reason : error;
  });
}
