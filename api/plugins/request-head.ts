import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { PlatformError } from '../../runtime/errors.js';

const VALID_REQUEST_ID = /^[\x21-\x7e]{1,128}$/;

/** The caller's `X-Request-Id` where it has at most 128 printable characters; a new id otherwise. */
export function requestIdOf(request: IncomingMessage): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && VALID_REQUEST_ID.test(given) ? given : randomUUID();
}

/** Returns request ids, logs answers at level `debug`, and refuses calls while the process stops. Callbacks, because promises cost more. */
export function useRequestHead(
  app: FastifyInstance,
  { stopping, draining }: Record<'stopping' | 'draining', AbortSignal>,
): void {
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id);
    // Kept connections pass by balancers: their clients open the next one elsewhere.
    if (stopping.aborted) reply.header('connection', 'close');
    if (!draining.aborted || request.routeOptions.url === OPERATIONS.health.path) return done();
    const headers = { Connection: 'close' };
    done(new PlatformError('SERVICE_UNAVAILABLE', 'The platform is stopping. Try again.', { headers }));
  });
  if (app.log.level !== 'debug' && app.log.level !== 'trace') return;
  app.addHook('onResponse', (request, reply, done) => {
    const { id: request_id, method, routeOptions } = request;
    const { statusCode: status, elapsedTime: ms } = reply;
    request.log.debug({ request_id, method, route: routeOptions.url, status, ms }, 'answered');
    done();
  });
}
