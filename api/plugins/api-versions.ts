import type { FastifyInstance } from 'fastify';
import type { Operation } from '../../contracts/api/operation.js';
import { PlatformError } from '../../runtime/errors.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The operation is deprecated and ends then. */
    sunset?: Operation['sunset'];
  }
}

/** The headers of a deprecated operation: both give the date of its end, as RFC 9745 and RFC 8594 write it. @param sunset ISO 8601 UTC */
function sunsetHeaders(sunset: string): { deprecation: string; sunset: string } {
  const end = new Date(sunset);
  return { deprecation: `@${Math.floor(end.getTime() / 1_000)}`, sunset: end.toUTCString() };
}

/** Deprecated operations say when they end, and answer 410 from then on. Other routes have no hook for it. */
export function useApiVersions(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    const { sunset } = route.config ?? {};
    if (sunset === undefined) return;
    const headers = sunsetHeaders(sunset);
    const endMs = Date.parse(sunset);
    route.onRequest = [
      ...[route.onRequest ?? []].flat(),
      (_request, reply, done) => {
        reply.headers(headers);
        const message = `This endpoint ended at ${headers.sunset}. The changelog says what replaces it.`;
        done(Date.now() < endMs ? undefined : new PlatformError('ENDPOINT_SUNSET', message));
      },
    ];
  });
}
