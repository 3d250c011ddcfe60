import type { FastifyInstance } from 'fastify';
import { OPERATIONS } from '../../contracts/api/operations.js';
import type { ApiDeps } from '../deps.js';
import { mount } from '../mount.js';
import { responseSignal } from '../send/event-stream.js';

type Deps = Pick<ApiDeps, 'tools' | 'draining'>;

/** Tool calls of hosted agents (decisions.md, WebSocket: Extension for hosted agents). */
export function toolRoutes(app: FastifyInstance, deps: Deps): void {
  mount(app, OPERATIONS.callTool).answer((body, { request, reply, caller }) => {
    const { traceparent } = request.headers;
    return deps.tools.call(caller, body, {
      ...(typeof traceparent === 'string' && { traceparent }),
      signal: responseSignal(reply.raw, deps.draining),
    });
  });
}
