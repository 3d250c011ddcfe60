import { LIMITS } from '../../../contracts/limits.js';
import { ApiError, UnreachableError } from '../api/errors.js';

export type JsonObject = Record<string, unknown>;

export interface RequestOptions {
  method?: 'GET' | 'POST';
  bearer?: string;
  body?: unknown;
  /** Sends `body` as a form (`application/x-www-form-urlencoded`). */
  form?: boolean;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Time limit without any byte from the platform, in milliseconds; 300,000 by default. */
  silenceMs?: number;
}

/** An HTTP answer whose body has not been read yet. */
export interface Answer {
  url: string;
  status: number;
  /** A header by its lower-case name. */
  header(name: string): string | undefined;
  body: AsyncIterable<Uint8Array>;
  /** Closes the connection without reading the rest of the body. */
  discard(): void;
}

/** HTTP requests to one platform. Throws error answers as `ApiError`, and follows no redirects. */
export interface Transport {
  readonly baseUrl: string;
  /**
   * Sends a request; resolves at the headers of the answer.
   * @throws ApiError for a status other than 2xx
   * @throws UnreachableError when there is no answer
   * @throws the signal's reason once it is aborted
   */
  request(path: string, options?: RequestOptions): Promise<Answer>;
  /** Accepts no new requests, and closes the connections when in-flight requests have been answered. */
  close(): void;
  /** Closes the connections at once; in-flight requests fail with `UnreachableError`. */
  destroy(): void;
}

/** Longer than `SEND_WAIT_MS`, during which `message/send` sends nothing. */
export const SILENCE_MS = 300_000;
const JSON_BYTES_MAX = 32 * 1024 * 1024;
const ERROR_BYTES_MAX = 64 * 1024;

/** Below a path of the address too, at which a proxy may serve the platform. */
export function urlOf(baseUrl: string, path: string): string {
  return new URL(`${baseUrl}${path.startsWith('/') ? '' : '/'}${path}`).href;
}

/**
 * Headers and text of a request's body.
 * @throws ApiError for a body that the platform would not take: it closes the connection while such a body is sent
 */
export function writtenRequest(
  path: string,
  options: RequestOptions,
): { headers: Record<string, string>; text: string | undefined } {
  const { body, bearer, form = false } = options;
  const type = form ? 'application/x-www-form-urlencoded' : 'application/json';
  const headers = {
    ...(body !== undefined && { 'content-type': type }),
    ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
    ...options.headers,
  };
  if (body === undefined) return { headers, text: undefined };
  const text = form ? String(new URLSearchParams(body as Record<string, string>)) : JSON.stringify(body);
  requireSize(path, new TextEncoder().encode(text).length);
  return { headers, text };
}

function requireSize(path: string, bytes: number): void {
  const isKnowledge = path.startsWith('/knowledge_base/');
  const max = isKnowledge ? LIMITS.knowledgeBodyBytes : LIMITS.bodyBytes;
  if (bytes <= max) return;
  const remedy = isKnowledge
    ? 'ingest documents one by one'
    : 'send the URI of a file, or ingest it into a knowledge base';
  const text = `The body has ${bytes} bytes, and the platform takes at most ${max}: ${remedy}.`;
  throw new ApiError(text, { status: 413, code: 'PAYLOAD_TOO_LARGE' });
}

/** The id of the request, for a search in the platform's log; empty where the answer has none. */
export function requestIdOf(answer: Answer): string {
  return answer.header('x-request-id') ?? '';
}

/** The answer. @throws ApiError unless its status is 2xx */
export async function successful(answer: Answer): Promise<Answer> {
  if (answer.status < 200 || answer.status > 299) throw await apiError(answer);
  return answer;
}

/** Reads an answer as a JSON object. @throws UnreachableError when the connection breaks, or the answer is not a JSON object */
export async function readJson(answer: Answer): Promise<JsonObject> {
  const text = await readText(answer, JSON_BYTES_MAX);
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value as JsonObject;
  } catch (error) {
    throw new UnreachableError(answer.url, error);
  }
  throw new UnreachableError(answer.url, new SyntaxError('the answer is no JSON object'));
}

async function readText(answer: Answer, bytesMax: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of answer.body) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw new UnreachableError(answer.url, new Error(`an answer of more than ${bytesMax} bytes`));
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

async function apiError(answer: Answer): Promise<ApiError> {
  const body = parseObject(await readText(answer, ERROR_BYTES_MAX).catch(() => '')); // a body that cannot be read is ignored: the status is known
  const retryAfter = Number(answer.header('retry-after'));
  return new ApiError(textOr(body.error, `HTTP ${answer.status}`), {
    status: answer.status,
    code: textOr(body.code, `HTTP_${answer.status}`),
    requestId: textOr(body.request_id, requestIdOf(answer)),
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
