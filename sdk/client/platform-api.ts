import { setTimeout as delay } from 'node:timers/promises';
import { type AccessOptions, type Role, resolveAccess } from '../access.js';
import { ApiError, isTransient, retryAfterMs } from './errors.js';
import { TokenSource } from './token-source.js';
import { type Answer, type JsonObject, type RequestOptions, readJson, Transport } from './transport.js';

/** Anything that checks an answer, for example a zod schema. */
export interface AnswerSchema<T> {
  parse(value: unknown): T;
}

export interface CallOptions {
  /** Ends the call; it rejects with the signal's reason. Whether the request took effect is unknown then. */
  signal?: AbortSignal;
}

export interface PostOptions extends CallOptions {
  /** Repeats the request when it failed in a way that may pass. Only for requests that a repeat does not do twice. */
  retry?: boolean;
  headers?: Record<string, string>;
  /** How long the platform may be silent before the connection counts as lost; 300,000 by default. */
  silenceMs?: number;
}

const RETRIES = 3;
const RETRY_FIRST_MS = 200;
const RETRY_AFTER_MS_MAX = 30_000;

/** The platform's interface to one credential: gets tokens, renews them before they end and once more after a 401. */
export class PlatformApi {
  readonly tokens: TokenSource;
  readonly ca: string | undefined;
  readonly #transport: Transport;

  /**
   * @param agentType the token's `agent_type` claim
   * @param role decides which credential of a local platform is taken
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

  /** POSTs `body` and checks the answer. @throws ApiError | UnreachableError | the signal's reason */
  async post<T>(path: string, body: unknown, schema: AnswerSchema<T>, options: PostOptions = {}): Promise<T> {
    const { retry = false, ...rest } = options;
    const once = async () => schema.parse(await this.#json(path, { body, ...rest }));
    return retry ? withRetries(once, options.signal) : once();
  }

  /** As `post`, at the answer's head: its body is the caller's to read. Never repeated, but for a token that was refused. */
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

  /** Takes no new request; connections end when what is in flight has been answered. */
  close(): void {
    this.#transport.close();
  }

  /** Cuts its connections; what is in flight fails with `UnreachableError`. */
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
  const asked = retryAfterMs(error);
  if (asked !== undefined) return Math.min(asked, RETRY_AFTER_MS_MAX);
  return RETRY_FIRST_MS * 2 ** failures * (0.75 + Math.random() / 2);
}

/** Waits. @throws the signal's reason once it is aborted */
export async function pause(waitMs: number, signal?: AbortSignal): Promise<void> {
  await delay(waitMs, undefined, { signal }).catch((error: unknown) => {
    throw signal?.aborted ? signal.reason : error;
  });
}
