import type { FastifyInstance } from 'fastify';
import type { z } from 'zod';
import { healthStatus, type PlatformHealth } from '../../../contracts/api/health.js';
import { openApiDocument } from '../../../contracts/api/openapi.js';
import { OPERATIONS } from '../../../contracts/api/operations.js';
import { queryJson } from '../../../db/json-rows.js';
import type { ApiDeps } from '../../deps.js';
import { mount } from '../../mount.js';

type Node = z.infer<typeof PlatformHealth>['nodes'][number];
const NODES = `
  SELECT n.mesh_id, n.started_at, n.renewed_at, n.draining, (SELECT count(*)::int FROM agents a WHERE a.mesh_id = n.mesh_id) AS agents
    FROM mesh_nodes n ORDER BY n.started_at, n.mesh_id`;

/** Health, and the OpenAPI document. */
export function platformRoutes(app: FastifyInstance, deps: Pick<ApiDeps, 'db' | 'health' | 'baseUrl'>): void {
  mount(app, OPERATIONS.health).answer(async (_body, { request, reply }) => {
    const health = await deps.health();
    reply.code(healthStatus(health, OPERATIONS.health.query.parse(request.query)));
    return health;
  });

  mount(app, OPERATIONS.platformHealth).answer(async () => {
    const [health, nodes] = await Promise.all([deps.health(), deps.db.system((tx) => queryJson<Node>(tx, NODES))]);
    return { ok: true, ...health, nodes };
  });

  mount(app, OPERATIONS.openapi).answer(async (_body, { reply }) => {
    reply.header('cache-control', 'no-cache');
    return openApiDocument(deps.baseUrl());
  });
}
