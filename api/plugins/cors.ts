import type { FastifyInstance } from 'fastify';

/** How long a browser may keep the answer to a preflight. */
const MAX_AGE_SECONDS = 600;
/** What pages may send, and what they may read of an answer beside its body. */
const REQUEST_HEADERS = 'Authorization, Content-Type, Last-Event-ID, Traceparent, A2A-Version, X-Request-Id';
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
 * Lets pages of the given origins call the API (CORS). Callers bring a token in a header: cookies are never allowed, so a page can do no more
 * than its token. Without origins nothing is answered, and browsers refuse.
 * @param origins scheme, host and port, as browsers send them
 */
export function useCors(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return;
  app.addHook('onRequest', (request, reply, done) => {
    const headers = Object.entries(corsHeaders(origins, request.headers.origin));
    for (const [name, value] of headers) reply.raw.setHeader(name, value); // on the raw answer, which streams use
    const isPreflight = request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined;
    if (!isPreflight || !reply.raw.hasHeader('access-control-allow-origin')) return done();
    const preflight = {
      'access-control-allow-methods': 'GET, POST',
      'access-control-allow-headers': REQUEST_HEADERS,
      'access-control-max-age': MAX_AGE_SECONDS,
    };
    reply.code(204).headers(preflight).send();
  });
  app.addHook('onSend', (_request, reply, _payload, done) => {
    const vary = reply.getHeader('vary');
    if (vary !== undefined && vary !== 'Origin') reply.header('vary', `${String(vary)}, Origin`);
    done();
  });
}
