import type { FastifyInstance, FastifyReply, FastifyRequest, RouteShorthandOptions } from 'fastify';
import type { z } from 'zod';
import { type Author, authorOf } from '../audit/record-audit.js';
import type { Caller } from '../contracts/api/auth.js';
import type { Operation } from '../contracts/api/operation.js';
import type { Counted, PageRequest } from '../db/pages/page.js';
import { PlatformError } from '../runtime/errors.js';
import { callerOf } from './plugins/authentication.js';

/** What a handler gets besides the body. Reading `caller` throws `unauthorized` for a request without a token. */
interface HandlerContext {
  request: FastifyRequest;
  reply: FastifyReply;
  readonly caller: Caller;
  /** The caller as the author of a change. */
  readonly author: Author;
}

/** The first problem of a body, with the field: `page_size: Too big…`. */
export function firstProblem(error: z.ZodError): string {
  const issue = error.issues[0];
  if (!issue) return 'The body is not valid.';
  // The alternative of a union with the fewest problems says more than "Invalid input".
  const closest =
    issue.code === 'invalid_union'
      ? issue.errors.toSorted((one, other) => one.length - other.length)[0]?.[0]
      : undefined;
  const path = [...issue.path, ...(closest?.path ?? [])].join('.');
  const message = closest?.message ?? issue.message;
  return path === '' ? message : `${path}: ${message}`;
}

/** @throws PlatformError `BAD_REQUEST` with the field */
export function parseBody<Body>(schema: z.ZodType<Body>, body: unknown): Body {
  const parsed = schema.safeParse(body === undefined ? {} : body);
  if (parsed.success) return parsed.data;
  throw new PlatformError('BAD_REQUEST', body === undefined ? 'The body is empty.' : firstProblem(parsed.error));
}

/** What the plugins must know of an operation's route. */
export function routeConfig({
  access,
  agents,
  path,
  sunset,
}: Pick<Operation, 'access' | 'agents' | 'path' | 'sunset'>) {
  return { access, agents, path, ...(sunset !== undefined && { sunset }) };
}

/** Mounts an operation: `mount(app, OPERATIONS.x).answer(handler)`. `hooks` run after those of all routes. Only the members that the response schema names leave the platform. */
export function mount<Body, Answer>(
  app: FastifyInstance,
  operation: Operation<z.ZodType<Body>, z.ZodType<unknown, Answer>>,
  hooks: Pick<RouteShorthandOptions, 'onRequest'> = {},
) {
  const { method, path, request: schema, response, bodyBytes: bodyLimit } = operation;
  // Two calls, so that both schemas are known where the compiler infers the types of the handler.
  const answer = (handler: (body: Body, context: HandlerContext) => Promise<Answer>): void => {
    app.route({
      method,
      url: path,
      config: routeConfig(operation),
      ...(bodyLimit !== undefined && { bodyLimit }),
      ...hooks,
      handler: async (request, reply) => {
        const body = (schema && parseBody(schema, request.body)) as Body; // no schema: the handler of a GET takes no body
        const context = {
          request,
          reply,
          get caller() {
            return callerOf(request);
          },
          get author() {
            return authorOf(callerOf(request), request.ip);
          },
        };
        const answered = response.parse(await handler(body, context));
        if (!reply.hasHeader('cache-control')) reply.header('cache-control', 'no-store');
        return reply.send(answered);
      },
    });
  };
  return { answer };
}

/** The members that all lists share. */
export function pageFields({ page, page_size }: PageRequest, { count, count_estimated }: Counted) {
  const total_pages = Math.ceil(count / page_size);
  return { ok: true as const, count, ...(count_estimated && { count_estimated }), page, page_size, total_pages };
}
