import type { FastifyInstance } from 'fastify';

/** How long a browser may keep the answer to a preflight. */
const MAX_AGE_SECONDS = 600;
/** What pages may send, and what they may read of an answer beside its body. */
const REQUEST_HEADERS = 'Authorization, Content-Type, Last-Event-ID, Traceparent, A2A-Version, X-Request-Id';
const ANSWER_HEADERS = 'X-Request-Id, Retry-After, Deprecation, Sunset, Allow';

/**
 * Lets pages of the given origins call the API (CORS). Callers bring a token in a header: cookies are never allowed, so a page can do no more
 * than its token. Without origins nothing is answered, and browsers refuse.
 * @param origins scheme, host and port, as browsers send them
 */
export function useCors(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return;
  const allowed = new Set(origins);
  app.addHook('onRequest', (request, reply, done) => {
    const { origin } = request.headers;
    // On the raw answer, which streams use.
    reply.raw.setHeader('vary', 'Origin');
    if (origin === undefined || !allowed.has(origin)) return done();
    reply.raw.setHeader('access-control-allow-origin', origin);
    reply.raw.setHeader('access-control-expose-headers', ANSWER_HEADERS);
    if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) return done();
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
