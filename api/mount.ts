import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { Operation } from '../contracts/operation.js';
import { PlatformError } from '../runtime/errors.js';

/** What a handler is given beside the body. */
export interface Call {
  request: FastifyRequest;
  reply: FastifyReply;
}

/** The first thing that does not fit, naming the field: `page_size: Too big…`. */
export function firstProblem(error: z.ZodError): string {
  const issue = error.issues[0];
  if (!issue) return 'The body does not fit.';
  // Of a union, the alternative that fits best says more than "Invalid input".
  const closest =
    issue.code === 'invalid_union'
      ? issue.errors.toSorted((one, other) => one.length - other.length)[0]?.[0]
      : undefined;
  const path = [...issue.path, ...(closest?.path ?? [])].join('.');
  const message = closest?.message ?? issue.message;
  return path === '' ? message : `${path}: ${message}`;
}

/** Checks a body by its schema. @throws PlatformError `BAD_REQUEST` naming the field */
function parseBody<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  const parsed = schema.safeParse(body === undefined ? {} : body);
  if (parsed.success) return parsed.data;
  throw new PlatformError('BAD_REQUEST', body === undefined ? 'The body is empty.' : firstProblem(parsed.error));
}

/**
 * Mounts an operation that takes and gives JSON: `mount(app, OPERATIONS.x).answer(handler)`. The handler is given the checked
 * body; its answer passes the schema, so nothing that the schema does not name goes out.
 */
export function mount<Request extends z.ZodType, Response extends z.ZodType>(
  app: FastifyInstance,
  operation: Operation<Request, Response>,
) {
  // Two calls, so that the compiler knows both schemas when it looks at the handler.
  const answer = (handler: (body: z.output<Request>, call: Call) => Promise<z.input<Response>>): void => {
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

/** The frame of a list response (decisions.md, Conventions). */
export function pageFields(query: { page: number; page_size: number }, count: number) {
  const { page, page_size } = query;
  return { ok: true as const, count, page, page_size, total_pages: Math.ceil(count / page_size) };
}
