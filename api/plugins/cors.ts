import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { corsHeaders, preflightHeaders } from '../../http/cors.js';

/**
 * Sets the headers that let the browser of a page read the answer, and answers a browser that asks first.
 * @param origins scheme, host and port, as browsers send them
 * @returns whether the request is answered
 */
export function answerCors(origins: readonly string[], { raw: request }: FastifyRequest, reply: FastifyReply): boolean {
  const headers = Object.entries(corsHeaders(origins, request.headers.origin));
  for (const [name, value] of headers) reply.raw.setHeader(name, value); // on the raw answer, which streams use
  const preflight = preflightHeaders(origins, request);
  if (preflight) reply.code(204).headers(preflight).send();
  return preflight !== undefined;
}

/**
 * Lets pages of the given origins call the API (CORS). Callers bring a token in a header: cookies are never allowed, so a page can do no more
 * than its token. Without origins nothing is answered, and browsers refuse.
 * @param origins scheme, host and port, as browsers send them
 */
export function useCors(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return;
  app.addHook('onRequest', (request, reply, done) => {
    if (!answerCors(origins, request, reply)) done();
  });
  app.addHook('onSend', (_request, reply, _payload, done) => {
    const vary = reply.getHeader('vary');
    if (vary !== undefined && vary !== 'Origin') reply.header('vary', `${String(vary)}, Origin`);
    done();
  });
}
