import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Authenticator } from '../../auth/authenticator.js';
import type { Caller } from '../../contracts/api/auth.js';
import { CONSOLE_OPERATIONS } from '../../contracts/api/console.js';
import type { Operation } from '../../contracts/api/operation.js';
import { callRefusal } from '../../contracts/permissions.js';
import { PlatformError } from '../../runtime/errors.js';
import type { SessionCookie } from '../console/session-cookie.js';
import type { RateLimit } from '../rate-limit.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** Null where the route requires no token. */
    caller: Caller | null;
    /** Of the header, or of the console's session; '' without one. */
    accessToken: string;
  }
  interface FastifyContextConfig {
    access?: Operation['access'];
    /** What agents may do there; nothing by default. */
    agents?: Operation['agents'];
    /** The operation's, by which the limits of a token say whether it may be called. */
    path?: Operation['path'];
    /** The body is JSON-RPC: the route answers bodies that are not JSON. */
    rpc?: boolean;
  }
}

/** The access token of a request; undefined without one. @throws PlatformError `unauthorized` for a malformed header */
export function bearerToken(request: FastifyRequest): string | undefined {
  const header = request.headers.authorization;
  if (header === undefined) return undefined;
  const token = /^Bearer +([\w.~+/=-]+) *$/i.exec(header)?.[1];
  if (token === undefined) throw new PlatformError('unauthorized', 'The Authorization header must be a bearer token.');
  return token;
}

/** Checks the token, or that of the console's session, (401), what the operation requires (403), and the calls of the tenant (429; null for any number), before the body is read. */
export function useAuthentication(
  app: FastifyInstance,
  { authenticator, calls, cookie }: { authenticator: Authenticator; calls: RateLimit | null; cookie: SessionCookie },
): void {
  app.decorateRequest('caller', null);
  app.decorateRequest('accessToken', '');
  app.addHook('onRequest', async (request) => {
    const { access = 'public', agents = 'forbidden', path = '' } = request.routeOptions.config;
    if (access === 'public') return;
    const header = bearerToken(request);
    const token = header ?? cookie.tokenOf(request);
    if (token === undefined) {
      if (access === 'optional') return;
      throw new PlatformError('unauthorized', 'An access token is needed.');
    }
    // A sign-in outlives the sessions in its tenants: with the cookie of one that has ended it can still be ended.
    const mayBeEnded = path === CONSOLE_OPERATIONS.signOut.path && header === undefined;
    const caller = await authenticator.authenticate(token).catch((error: unknown) => {
      if (mayBeEnded && error instanceof PlatformError && error.code === 'unauthorized') return null;
      throw error;
    });
    if (caller === null) return;
    const refusal = callRefusal({ access, agents, path }, caller);
    if (refusal !== null) throw new PlatformError('forbidden', refusal);
    calls?.check(caller.tenant_id, 'The tenant has used up its calls of this minute.');
    calls?.add(caller.tenant_id);
    request.caller = caller;
    request.accessToken = token;
  });
}

/** The caller of a route that requires a token. */
export function callerOf(request: FastifyRequest): Caller {
  if (!request.caller) throw new PlatformError('unauthorized', 'An access token is needed.');
  return request.caller;
}
