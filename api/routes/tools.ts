import type { FastifyInstance } from 'fastify';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { listTools, setToolOwner } from '../../tools/tool-owners.js';
import type { ApiDeps } from '../deps.js';
import { mount } from '../mount.js';
import { responseSignal } from '../send/event-stream.js';

type Deps = Pick<ApiDeps, 'db' | 'tools' | 'draining'>;

/** The tools of a tenant, and calls of them by agents without a socket. */
export function toolRoutes(app: FastifyInstance, deps: Deps): void {
  const { db } = deps;

  mount(app, OPERATIONS.getTools).answer(async (_body, { caller: { tenant_id } }) => ({
    ok: true,
    tools: await db.tenant(tenant_id, (tx) => listTools(tx, tenant_id)),
  }));

  mount(app, OPERATIONS.setToolOwner).answer(async ({ tool, agent_types }, { author }) => {
    await db.tenant(author.tenant_id, (tx) => setToolOwner(tx, author, { tool, agent_types }));
    return { ok: true, tool, agent_types };
  });

  mount(app, OPERATIONS.callTool).answer((body, { request, reply, caller }) => {
    const { traceparent } = request.headers;
    return deps.tools.call(caller, body, {
      ...(typeof traceparent === 'string' && { traceparent }),
      signal: responseSignal(reply.raw, deps.draining),
    });
  });
}
