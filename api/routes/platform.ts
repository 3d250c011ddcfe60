import type { FastifyInstance } from 'fastify';
import { openApiDocument } from '../../contracts/api/openapi.js';
import { OPERATIONS } from '../../contracts/api/operations.js';
import type { ApiDeps } from '../deps.js';
import { mount } from '../mount.js';

/** Health, and the OpenAPI document. */
export function platformRoutes(app: FastifyInstance, deps: Pick<ApiDeps, 'health' | 'baseUrl'>): void {
  mount(app, OPERATIONS.health).answer(async (_body, { request, reply }) => {
    const { ready } = OPERATIONS.health.query.parse(request.query);
    const health = await deps.health();
    // 200 without Temporal or Redis: the nodes still answer short messages and accept the others, so they stay in the load balancer.
    if (health.checks.database === 'down' || (ready === 'full' && health.status !== 'ok')) reply.code(503);
    return health;
  });

  mount(app, OPERATIONS.openapi).answer(async (_body, { reply }) => {
    reply.header('cache-control', 'no-cache');
    return openApiDocument(deps.baseUrl());
  });
}
