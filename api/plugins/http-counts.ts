import type { FastifyInstance, FastifyReply, FastifyRequest, onRouteHookHandler } from 'fastify';

/** The answered requests of one route, for metrics. */
export interface RouteCounts {
  method: string;
  /** The template of its path; `unknown` for paths that there are not. */
  route: string;
  byStatus: Record<number, number>;
  /** How many took less than 2ⁿ milliseconds and not less than half of that, by n. */
  byBitsOfMs: number[];
  ms: number;
}

/** By route, those that were never called included. */
export type HttpCounts = RouteCounts[];

const MS_BITS = 32;

function newRoute(method: string, route: string): RouteCounts {
  return { method, route, byStatus: {}, byBitsOfMs: new Array<number>(MS_BITS + 1).fill(0), ms: 0 };
}

function count(route: RouteCounts, { statusCode, elapsedTime: ms }: FastifyReply): void {
  const bits = MS_BITS - Math.clz32(ms);
  route.byStatus[statusCode] = (route.byStatus[statusCode] ?? 0) + 1;
  route.byBitsOfMs[bits] = (route.byBitsOfMs[bits] ?? 0) + 1;
  route.ms += ms;
}

/**
 * Counts the answers of all routes that are added from now on. Each route has a hook with its own counts, so that a request pays for no
 * search of them; HEAD counts as the GET whose hook it shares.
 */
export function useHttpCounts(app: FastifyInstance, counts: HttpCounts): void {
  const add = (method: string, path: string) => {
    const route = newRoute(method, path);
    counts.push(route);
    return (_request: FastifyRequest, reply: FastifyReply, done: () => void) => {
      count(route, reply);
      done();
    };
  };
  const onRoute: onRouteHookHandler = (options) => {
    if (options.method === 'HEAD') return;
    const others = [options.onResponse ?? []].flat();
    options.onResponse = [add([options.method].flat().join(' '), options.url), ...others];
  };
  app.addHook('onRoute', onRoute);
  const countUnknown = add('any', 'unknown');
  app.addHook('onResponse', (request, reply, done) => {
    if (request.is404) countUnknown(request, reply, done);
    else done();
  });
}
