import type { IncomingMessage } from 'node:http';

/** How long a browser may keep the answer to a preflight. */
const MAX_AGE_SECONDS = 600;
/** What pages may send, and what they may read of an answer beside its body. */
const REQUEST_HEADERS =
  'Authorization, Content-Type, Last-Event-ID, Traceparent, A2A-Version, X-Request-Id, X-Namespace';
const ANSWER_HEADERS = 'X-Request-Id, Retry-After, Deprecation, Sunset, Allow';

/**
 * What an answer tells the browser of a page, and caches: whether a page of this origin may read it. Nothing where no origin may.
 * @param origins scheme, host and port, as browsers send them
 */
export function corsHeaders(origins: readonly string[], origin: string | undefined): Record<string, string> {
  if (origins.length === 0) return {};
  const isAllowed = origin !== undefined && origins.includes(origin);
  return {
    vary: 'Origin',
    ...(isAllowed && { 'access-control-allow-origin': origin, 'access-control-expose-headers': ANSWER_HEADERS }),
  };
}

/**
 * What the browser of a page of a named origin is answered (204) that asks before its request, beside `corsHeaders`; undefined for any
 * other request.
 * @param origins scheme, host and port, as browsers send them
 */
export function preflightHeaders(
  origins: readonly string[],
  { method, headers }: Pick<IncomingMessage, 'method' | 'headers'>,
): Record<string, string> | undefined {
  const isPreflight = method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
  if (!isPreflight || headers.origin === undefined || !origins.includes(headers.origin)) return undefined;
  return {
    'access-control-allow-methods': 'GET, POST',
    'access-control-allow-headers': REQUEST_HEADERS,
    'access-control-max-age': `${MAX_AGE_SECONDS}`,
  };
}
