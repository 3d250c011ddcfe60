import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { type FastifyBaseLogger, type FastifyInstance, fastify, LogController } from 'fastify';
import { verifySecret } from '../auth/credentials.js';
import { OPERATIONS } from '../contracts/api/operations.js';
import { LIMITS } from '../contracts/limits.js';
import { answerClientError } from '../http/client-error.js';
import { PlatformError } from '../runtime/errors.js';
import { approveRoutes } from './approve/approve-routes.js';
import { consoleFiles } from './console/console-files.js';
import { consoleRoutes } from './console/console-routes.js';
import { personRoutes } from './console/person-routes.js';
import { SessionCookie } from './console/session-cookie.js';
import type { ApiDeps } from './deps.js';
import { docsRoutes } from './docs/docs-routes.js';
import { JsonLines } from './json-lines.js';
import { Logins } from './logins.js';
import { OpenCalls } from './open-calls.js';
import { useApiVersions } from './plugins/api-versions.js';
import { useAuthentication } from './plugins/authentication.js';
import { answerCors, useCors } from './plugins/cors.js';
import { sendError, useErrorContract } from './plugins/error-contract.js';
import { useHttpCounts } from './plugins/http-counts.js';
import { useJsonBodies } from './plugins/json-body.js';
import { RateLimit } from './rate-limit.js';
import { agentRoutes } from './routes/agents.js';
import { alertRoutes } from './routes/alerts.js';
import { approvalRoutes } from './routes/approvals.js';
import { authRoutes } from './routes/auth.js';
import { cardOf, cardRoutes } from './routes/card.js';
import { knowledgeRoutes } from './routes/knowledge.js';
import { messageRoutes } from './routes/messages.js';
import { auditRoutes } from './routes/operations/audit.js';
import { platformRoutes } from './routes/operations/platform.js';
import { telemetryRoutes } from './routes/operations/telemetry.js';
import { temporalCodecRoutes } from './routes/operations/temporal-codec.js';
import { tenantRoutes } from './routes/operations/tenants.js';
import { planRoutes } from './routes/plans.js';
import { policyRoutes } from './routes/policies.js';
import { requestRoutes } from './routes/requests.js';
import { sendRoutes } from './routes/send.js';
import { sessionRoutes } from './routes/sessions.js';
import { toolRoutes } from './routes/tools.js';
import { WrongTokens } from './wrong-tokens.js';

const REQUEST_TIMEOUT_MS = 30_000;
/** So a request that is too slow is noticed at most a sixth of the timeout late. */
const CHECKS_PER_TIMEOUT = 6;
const PATH_PARAMETER_MAX = 256;

const VALID_REQUEST_ID = /^[\x21-\x7e]{1,128}$/;

/** The caller's `X-Request-Id` where it has at most 128 printable characters; a new id otherwise. */
function requestIdOf(request: IncomingMessage): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && VALID_REQUEST_ID.test(given) ? given : randomUUID();
}

function createServer(deps: ApiDeps): FastifyInstance {
  const requestTimeout = deps.requestTimeoutMs ?? REQUEST_TIMEOUT_MS;
  const origins = deps.config.CORS_ORIGINS;
  return fastify({
    loggerInstance: deps.log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    childLoggerFactory: (logger) => logger, // log lines name their request; a child logger for each request costs 4 µs
    bodyLimit: LIMITS.bodyBytes,
    requestTimeout,
    http: {
      headersTimeout: requestTimeout,
      connectionsCheckingInterval: Math.max(100, Math.floor(requestTimeout / CHECKS_PER_TIMEOUT)),
    },
    return503OnClosing: false, // while draining, calls get the platform's own error body
    requestIdHeader: false,
    genReqId: requestIdOf,
    trustProxy: deps.config.TRUST_PROXY_CIDRS.length > 0 ? deps.config.TRUST_PROXY_CIDRS : false,
    // Some A2A clients add a slash to the URL that the card names.
    routerOptions: { maxParamLength: PATH_PARAMETER_MAX, ignoreTrailingSlash: true },
    clientErrorHandler: (error, socket) => answerClientError(error, socket, origins),
    // No hook runs for these: a path that cannot be decoded, for one.
    frameworkErrors: (error, request, reply) => {
      if (!answerCors(origins, request, reply)) sendError(request, reply, error);
    },
  });
}

/** Returns request ids, logs answers at level `debug`, and refuses calls while the process stops. Callbacks, because promises cost more. */
function useRequestHead(
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

/** Builds the HTTP API. After `app.ready()`, `app.routing(req, res)` serves the mesh address too: `/send`, `/sessions/interrupt`, the card. */
export function buildApi(deps: ApiDeps): FastifyInstance {
  const app = createServer(deps);
  useErrorContract(app);
  useHttpCounts(app, deps.counts);
  useCors(app, deps.config.CORS_ORIGINS); // before what refuses, so that pages can read why
  useApiVersions(app);
  useRequestHead(app, deps);
  useJsonBodies(app);
  const limit = deps.config.RATE_LIMIT_PER_MINUTE;
  const calls = limit > 0 ? new RateLimit({ name: 'calls', limit, windowSeconds: 60, redis: deps.redis }) : null;
  const cookie = new SessionCookie(deps.secrets, deps.baseUrl);
  useAuthentication(app, { authenticator: deps.authenticator, calls, cookie });
  const { OPEN_CALLS_PER_TOKEN: perToken, OPEN_CALLS_PER_TENANT: perTenant, OPEN_CALLS_MAX: inAll } = deps.config;
  const openCalls = new OpenCalls({ perToken, perTenant, inAll });
  const jsonLines = new JsonLines(deps);
  const logins = new Logins((client) => verifySecret(deps.db, deps.secrets, client), deps.redis);
  authRoutes(app, { ...deps, logins });
  sessionRoutes(app, deps);
  sendRoutes(app, {
    ...{ ...deps, openCalls },
    extendedCard: async (caller, version, agentType) => (await cardOf(deps, version, caller, agentType)).card,
  });
  const wrongTokens = new WrongTokens(deps.redis);
  consoleRoutes(app, { ...deps, logins, wrongTokens, cookie });
  personRoutes(app, { ...deps, wrongTokens, cookie });
  messageRoutes(app, { ...deps, wrongTokens });
  approvalRoutes(app, { ...deps, jsonLines });
  requestRoutes(app, deps);
  approveRoutes(app, { ...deps, wrongTokens });
  agentRoutes(app, deps);
  toolRoutes(app, deps);
  planRoutes(app, deps);
  policyRoutes(app, deps);
  alertRoutes(app, { ...deps, wrongTokens });
  temporalCodecRoutes(app, deps);
  telemetryRoutes(app, { ...deps, openCalls });
  tenantRoutes(app, deps);
  auditRoutes(app, { ...deps, jsonLines });
  knowledgeRoutes(app, deps);
  cardRoutes(app, deps);
  platformRoutes(app, deps);
  docsRoutes(app, deps);
  consoleFiles(app, deps);
  return app;
}
