import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { Operation } from '../contracts/api/operation.js';
import { PlatformError } from '../runtime/errors.js';

/** What a handler gets besides the body. */
export interface HandlerContext {
  request: FastifyRequest;
  reply: FastifyReply;
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
function parseBody<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  const parsed = schema.safeParse(body === undefined ? {} : body);
  if (parsed.success) return parsed.data;
  throw new PlatformError('BAD_REQUEST', body === undefined ? 'The body is empty.' : firstProblem(parsed.error));
}

/**
 * Mounts an operation on JSON bodies: `mount(app, OPERATIONS.x).answer(handler)`. The handler gets the parsed body. Its answer is parsed by
 * the schema of the response, so members that the schema does not name stay inside.
 */
export function mount<Request extends z.ZodType, Response extends z.ZodType>(
  app: FastifyInstance,
  operation: Operation<Request, Response>,
) {
  // Two calls, so that both schemas are known where the compiler infers the types of the handler.
  const answer = (handler: (body: z.output<Request>, context: HandlerContext) => Promise<z.input<Response>>): void => {
    app.route({
      method: operation.method,
      url: operation.path,
      config: { access: operation.access, agents: operation.agents },
      handler: async (request, reply) => {
        const body = operation.request ? parseBody(operation.request, request.body) : ({} as z.output<Request>);
        const answered = operation.response.parse(await handler(body, { request, reply }));
        if (!reply.hasHeader('cache-control')) reply.header('cache-control', 'no-store');
        return reply.send(answered);
      },
    });
  };
  return { answer };
}

/** The members that all lists share (decisions.md, Conventions). */
export function pageFields(query: { page: number; page_size: number }, count: number) {
  const { page, page_size } = query;
  return { ok: true as const, count, page, page_size, total_pages: Math.ceil(count / page_size) };
}
