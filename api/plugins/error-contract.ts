import { STATUS_CODES } from 'node:http';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ErrorCode } from '../../contracts/errors.js';
import { isDatabaseUnavailable } from '../../db/errors.js';
import { errorBody } from '../../http/client-error.js';
import { PlatformError } from '../../runtime/errors.js';

/** Codes of framework errors by status; `BAD_REQUEST` for every other 4xx. */
const CODES_BY_STATUS: Partial<Record<number, ErrorCode>> = {
  404: 'NOT_FOUND',
  408: 'REQUEST_TIMEOUT',
  413: 'PAYLOAD_TOO_LARGE',
};
const FRAMEWORK_MESSAGES: Record<string, string> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'The Content-Type must be application/json.',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'The body is not as long as Content-Length says.',
  FST_ERR_BAD_URL: 'The path is not a valid URL path.',
};
/** gRPC `UNAVAILABLE` and `DEADLINE_EXCEEDED`: Temporal cannot be reached. */
const GRPC_UNAVAILABLE = new Set<unknown>([14, 4]);

function isTemporalUnavailable(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (GRPC_UNAVAILABLE.has((cause as { code?: unknown }).code)) return true;
  }
  return false;
}

function fromFramework(error: FastifyError, bodyLimit: number | undefined): PlatformError | undefined {
  const status = error.statusCode;
  if (!error.code?.startsWith('FST_') || status === undefined || status >= 500) return undefined;
  const tooLarge = bodyLimit === undefined ? undefined : `The body has more than ${bodyLimit} bytes.`;
  const known = status === 413 ? tooLarge : FRAMEWORK_MESSAGES[error.code];
  const message = known ?? STATUS_CODES[status] ?? 'The request is not valid.';
  return new PlatformError(CODES_BY_STATUS[status] ?? 'BAD_REQUEST', message);
}

/**
 * The error to show for anything thrown. An unexpected one becomes `INTERNAL_ERROR` without its details.
 * @param bodyLimit of the route, which the error of a larger body names
 */
export function toPlatformError(error: unknown, bodyLimit?: number): PlatformError {
  if (error instanceof PlatformError) return error;
  if (isDatabaseUnavailable(error) || isTemporalUnavailable(error)) {
    return new PlatformError('SERVICE_UNAVAILABLE', 'A part of the platform cannot be reached. Try again.', {
      cause: error,
    });
  }
  const known = error instanceof Error ? fromFramework(error as FastifyError, bodyLimit) : undefined;
  return known ?? new PlatformError('INTERNAL_ERROR', 'An unexpected error occurred.', { cause: error });
}

/** Logs unexpected errors, and servers that cannot be reached. */
export function logFailure(request: FastifyRequest, shown: PlatformError): void {
  if (request.raw.destroyed && !request.raw.complete) return; // the caller left before its request was complete
  const err = shown.cause ?? shown;
  if (shown.code === 'INTERNAL_ERROR')
    request.log.error({ err, request_id: request.id, url: request.routeOptions.url }, 'request failed');
  else if (shown.statusCode >= 500) request.log.warn({ err, request_id: request.id }, 'request could not be served');
}

/** Answers with the error body of the API. */
export function sendError(request: FastifyRequest, reply: FastifyReply, error: unknown): FastifyReply {
  const shown = toPlatformError(error, request.routeOptions.bodyLimit);
  logFailure(request, shown);
  if (shown.statusCode === 401) reply.header('www-authenticate', 'Bearer');
  if (shown.statusCode === 503) reply.header('retry-after', '1');
  return reply
    .code(shown.statusCode)
    .headers(shown.headers)
    .header('x-request-id', request.id)
    .header('cache-control', 'no-store')
    .type('application/json; charset=utf-8')
    .send(errorBody(shown.code, shown.message, request.id));
}

/** Answers thrown errors, unknown paths (404) and wrong methods (405 with `Allow`) with one error body. */
export function useErrorContract(app: FastifyInstance): void {
  const routes: { pattern: RegExp; methods: string[] }[] = [];
  app.addHook('onRoute', ({ url, method }) => {
    const pattern = url.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/:\w+/g, '[^/]+');
    routes.push({ pattern: new RegExp(`^${pattern}$`), methods: [method].flat() });
  });
  app.setErrorHandler((error, request, reply) => sendError(request, reply, error));
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?', 1)[0] ?? '';
    const methods = new Set(routes.flatMap((route) => (route.pattern.test(path) ? route.methods : [])));
    if (methods.size === 0) throw new PlatformError('NOT_FOUND', 'There is no such path.');
    const headers = { Allow: [...methods, 'OPTIONS'].join(', ') };
    if (request.method === 'OPTIONS') return reply.code(204).headers(headers).send();
    throw new PlatformError('METHOD_NOT_ALLOWED', `This path takes ${[...methods].join(', ')}.`, { headers });
  });
}
