import type { FastifyInstance } from 'fastify';
import { openApiDocument } from '../../contracts/openapi.js';
import { OPERATIONS } from '../../contracts/operations.js';
import type { ApiDeps } from '../deps.js';
import { mount } from '../mount.js';

/** Health and the description of the interface. */
export function platformRoutes(app: FastifyInstance, deps: Pick<ApiDeps, 'health' | 'baseUrl'>): void {
  mount(app, OPERATIONS.health).answer(async (_body, { request, reply }) => {
    const { ready } = OPERATIONS.health.query.parse(request.query);
    const health = await deps.health();
    // Without Temporal or Redis quick messages are still answered and the others accepted: taking every node out would stop both.
    if (health.checks.database === 'down' || (ready === 'full' && health.status !== 'ok')) reply.code(503);
    return health;
  });

  mount(app, OPERATIONS.openapi).answer(async (_body, { reply }) => {
    reply.header('cache-control', 'no-cache');
    return openApiDocument(deps.baseUrl());
  });
}
