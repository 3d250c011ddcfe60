import type { FastifyInstance } from 'fastify';
import { healthStatus } from '../../contracts/api/health.js';
import { openApiDocument } from '../../contracts/api/openapi.js';
import { OPERATIONS } from '../../contracts/api/operations.js';
import type { ApiDeps } from '../deps.js';
import { mount } from '../mount.js';

/** Health, and the OpenAPI document. */
export function platformRoutes(app: FastifyInstance, deps: Pick<ApiDeps, 'health' | 'baseUrl'>): void {
  mount(app, OPERATIONS.health).answer(async (_body, { request, reply }) => {
    const health = await deps.health();
    reply.code(healthStatus(health, OPERATIONS.health.query.parse(request.query)));
    return health;
  });

  mount(app, OPERATIONS.openapi).answer(async (_body, { reply }) => {
    reply.header('cache-control', 'no-cache');
    return openApiDocument(deps.baseUrl());
  });
}
