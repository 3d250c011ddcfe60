import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { secureContextFor } from '../tls.js';
import { ApiError, UnreachableError } from './errors.js';

export type JsonObject = Record<string, unknown>;

export interface RequestOptions {
  method?: 'GET' | 'POST';
  bearer?: string;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Time limit without any byte from the platform, in milliseconds; 300,000 by default. */
  silenceMs?: number;
}

/** An HTTP answer whose body has not been read yet. */
export interface Answer {
  url: string;
  status: number;
  /** Lower-case names. */
  headers: Record<string, string | string[] | undefined>;
  body: AsyncIterable<Uint8Array>;
  /** Closes the connection without reading the rest of the body. */
  discard(): void;
}

/** Longer than `SEND_WAIT_MS`, during which `message/send` sends nothing. */
const SILENCE_MS = 300_000;
const JSON_BYTES_MAX = 32 * 1024 * 1024;
const ERROR_BYTES_MAX = 64 * 1024;

/** HTTP requests to one platform. Trusts its certificate authority, throws error answers as `ApiError`, and follows no redirects. */
export class Transport {
  readonly baseUrl: string;
  readonly #agent: HttpAgent;
  readonly #request: typeof httpRequest;
  readonly #inFlight = new Set<() => void>();
  #isClosed = false;

  /** @param ca certificate authority in PEM, trusted in addition to the default ones */
  constructor(baseUrl: string, ca?: string) {
    this.baseUrl = baseUrl.replace(/\/+$/, '');
    const isTls = new URL(this.baseUrl).protocol === 'https:';
    const tls = ca === undefined ? {} : { secureContext: secureContextFor(ca) };
    this.#agent = isTls ? new HttpsAgent({ keepAlive: true, ...tls }) : new HttpAgent({ keepAlive: true });
    this.#request = isTls ? httpsRequest : httpRequest;
  }

  /**
   * Sends a request; resolves at the headers of the answer.
   * @throws ApiError for a status other than 2xx
   * @throws UnreachableError when there is no answer
   * @throws the signal's reason once it is aborted
   */
  async request(path: string, options: RequestOptions = {}): Promise<Answer> {
    const url = new URL(path, `${this.baseUrl}/`).href;
    if (this.#isClosed) throw new UnreachableError(url, new Error('the client is closed'));
    const response = await this.#send(url, options).catch((error: unknown) => {
      throw options.signal?.aborted ? options.signal.reason : new UnreachableError(url, error);
    });
    const answer: Answer = {
      url,
      status: response.statusCode ?? 0,
      headers: response.headers,
      body: bodyOf(response, url, options.signal),
      discard: () => response.destroy(),
    };
    if (answer.status < 200 || answer.status > 299) throw await apiError(answer);
    return answer;
  }

  /** Like `request`, and reads the answer as a JSON object. */
  async json(path: string, options: RequestOptions = {}): Promise<JsonObject> {
    return readJson(await this.request(path, options));
  }

  /** Accepts no new requests, and closes the connections when in-flight requests have been answered. */
  close(): void {
    this.#isClosed = true;
    if (this.#inFlight.size === 0) this.#agent.destroy();
  }

  /** Closes the connections at once; in-flight requests fail with `UnreachableError`. */
  destroy(): void {
    this.#isClosed = true;
    for (const cut of this.#inFlight) cut();
    this.#agent.destroy();
  }

  #send(url: string, options: RequestOptions): Promise<IncomingMessage> {
    const body = options.body === undefined ? undefined : Buffer.from(JSON.stringify(options.body));
    return new Promise((resolve, reject) => {
      const request = this.#request(url, {
        agent: this.#agent,
        method: options.method ?? 'POST',
        headers: {
          ...(body && { 'content-type': 'application/json', 'content-length': body.length }),
          ...(options.bearer !== undefined && { authorization: `Bearer ${options.bearer}` }),
          ...options.headers,
        },
        ...(options.signal && { signal: options.signal }),
      });
      const cut = () => void request.destroy(new Error('the client is closed'));
      this.#inFlight.add(cut);
      request.setTimeout(options.silenceMs ?? SILENCE_MS, () => request.destroy(new Error('the platform is silent')));
      request.once('response', resolve).once('error', reject);
      request.once('close', () => {
        this.#inFlight.delete(cut);
        if (this.#isClosed && this.#inFlight.size === 0) this.#agent.destroy();
      });
      request.end(body);
    });
  }
}

async function* bodyOf(response: IncomingMessage, url: string, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    yield* response as AsyncIterable<Buffer>;
  } catch (error) {
    throw signal?.aborted ? signal.reason : new UnreachableError(url, error);
  }
}

/** Reads an answer as a JSON object. @throws UnreachableError when the connection breaks, or the answer is not JSON */
export async function readJson(answer: Answer): Promise<JsonObject> {
  const text = await readText(answer, JSON_BYTES_MAX);
  try {
    return JSON.parse(text) as JsonObject;
  } catch (error) {
    throw new UnreachableError(answer.url, error);
  }
}

async function readText(answer: Answer, bytesMax: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of answer.body) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw new UnreachableError(answer.url, new Error(`an answer of more than ${bytesMax} bytes`));
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

async function apiError(answer: Answer): Promise<ApiError> {
  const body = parseObject(await readText(answer, ERROR_BYTES_MAX).catch(() => '')); // a body that cannot be read is ignored: the status is known
  const retryAfter = Number(answer.headers['retry-after']);
  return new ApiError(textOr(body.error, `HTTP ${answer.status}`), {
    status: answer.status,
    code: textOr(body.code, `HTTP_${answer.status}`),
    requestId: textOr(body.request_id, String(answer.headers['x-request-id'] ?? '')),
    ...(retryAfter > 0 && { retryAfterMs: retryAfter * 1000 }),
  });
}

function parseObject(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as JsonObject) : {};
  } catch {
    return {}; // not JSON, for example a proxy's page: only the status is known
  }
}

function textOr(value: unknown, fallback: string): string {
  return typeof value === 'string' && value !== '' ? value : fallback;
}
