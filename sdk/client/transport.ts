import { rootCertificates } from 'node:tls';
import { Agent, fetch, type Response } from 'undici';
import { ApiError, UnreachableError } from './errors.js';

export type JsonObject = Record<string, unknown>;

export interface RequestOptions {
  method?: 'GET' | 'POST';
  bearer?: string;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** HTTP to one platform: joins paths, trusts its certificate authority, turns error answers into `ApiError`. */
export class Transport {
  readonly baseUrl: string;
  readonly #dispatcher: Agent;

  /** @param ca certificate authority in PEM, trusted beside the usual ones */
  constructor(baseUrl: string, ca?: string) {
    this.baseUrl = baseUrl.replace(/\/+$/, '');
    this.#dispatcher = new Agent({
      bodyTimeout: 0, // a stream may be silent for as long as an agent thinks
      headersTimeout: 300_000,
      ...(ca !== undefined && { connect: { ca: [...rootCertificates, ca] } }),
    });
  }

  /**
   * @throws ApiError for a status of 400 and above
   * @throws UnreachableError when no answer came
   */
  async request(path: string, options: RequestOptions = {}): Promise<Response> {
    const url = new URL(path, `${this.baseUrl}/`).href;
    const response = await fetch(url, {
      method: options.method ?? 'POST',
      dispatcher: this.#dispatcher,
      headers: {
        ...(options.body !== undefined && { 'content-type': 'application/json' }),
        ...(options.bearer !== undefined && { authorization: `Bearer ${options.bearer}` }),
        ...options.headers,
      },
      ...(options.body !== undefined && { body: JSON.stringify(options.body) }),
      ...(options.signal && { signal: options.signal }),
    }).catch((error: unknown) => {
      throw options.signal?.aborted ? error : new UnreachableError(url, error);
    });
    if (!response.ok) throw await apiError(response);
    return response;
  }

  /** As `request`, with the answer read as a JSON object. */
  async json(path: string, options: RequestOptions = {}): Promise<JsonObject> {
    return readJson(await this.request(path, options));
  }

  /** Ends its connections when what is in flight has been answered. */
  close(): Promise<void> {
    return this.#dispatcher.close();
  }

  /** Cuts its connections. */
  destroy(): Promise<void> {
    return this.#dispatcher.destroy();
  }
}

/** Reads an answer as a JSON object. @throws UnreachableError when the connection breaks, or a proxy answered in another form */
export async function readJson(response: Response): Promise<JsonObject> {
  try {
    return (await response.json()) as JsonObject;
  } catch (error) {
    throw new UnreachableError(response.url, error);
  }
}

async function apiError(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => '');
  const body = parseObject(text);
  return new ApiError(textOr(body.error, `HTTP ${response.status}`), {
    status: response.status,
    code: textOr(body.code, `HTTP_${response.status}`),
    requestId: textOr(body.request_id, response.headers.get('x-request-id') ?? ''),
  });
}

function parseObject(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as JsonObject) : {};
  } catch {
    return {}; // a proxy's page: the status says enough
  }
}

function textOr(value: unknown, fallback: string): string {
  return typeof value === 'string' && value !== '' ? value : fallback;
}
