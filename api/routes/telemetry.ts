import type { FastifyInstance } from 'fastify';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { listEvents } from '../../telemetry/event-list.js';
import type { ApiDeps } from '../deps.js';
import { mount, pageFields } from '../mount.js';

/** Telemetry, scope `read` (decisions.md, Telemetry). */
export function telemetryRoutes(app: FastifyInstance, deps: Pick<ApiDeps, 'db'>): void {
  mount(app, OPERATIONS.getEvents).answer(async (body, { caller: { tenant_id } }) => {
    const { rows: events, ...counted } = await listEvents(deps.db, tenant_id, body);
    return { ...pageFields(body, counted), events };
  });
}
