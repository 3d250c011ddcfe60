import type { FastifyInstance } from 'fastify';
import { OPERATIONS } from '../../../contracts/api/operations.js';
import { ResumeQuery, StreamEventsRequest } from '../../../contracts/api/telemetry.js';
import { listEvents } from '../../../telemetry/event-list.js';
import { listTraces } from '../../../telemetry/traces/trace-list.js';
import { readTrace } from '../../../telemetry/traces/traces.js';
import { readUsage } from '../../../usage/usage-report.js';
import type { ApiDeps } from '../../deps.js';
import { EventStreams } from '../../event-streams.js';
import { mount, pageFields, parseBody, routeConfig } from '../../mount.js';
import type { OpenCalls } from '../../open-calls.js';

/** Telemetry, scope `read`. */
export function telemetryRoutes(
  app: FastifyInstance,
  deps: Pick<ApiDeps, 'db' | 'catchUpUsage' | 'eventFeed' | 'authenticator' | 'clocks' | 'draining'> & {
    openCalls: OpenCalls;
  },
): void {
  mount(app, OPERATIONS.getEvents).answer(async (body, { caller: { tenant_id } }) => {
    const { rows: events, ...counted } = await listEvents(deps.db, tenant_id, body);
    return { ...pageFields(body, counted), events };
  });
  mount(app, OPERATIONS.getTraces).answer(async (body, { caller: { tenant_id } }) => {
    if (body.trace_id !== undefined)
      return { ok: true as const, trace: await readTrace(deps.db, tenant_id, body.trace_id) };
    const { rows: traces, ...counted } = await listTraces(deps.db, tenant_id, body);
    return { ...pageFields(body, counted), traces };
  });
  mount(app, OPERATIONS.getUsage).answer(async (body, { caller: { tenant_id } }) => {
    const { totals, rows, count } = await readUsage(deps, tenant_id, body);
    return { ...pageFields(body, { count }), range: body.range, totals, rows };
  });
  const streams = new EventStreams(deps);
  const { streamEvents, streamEventsByQuery } = OPERATIONS;
  app.get(streamEventsByQuery.path, { config: routeConfig(streamEventsByQuery) }, (request, reply) =>
    streams.answer(request, reply, parseBody(StreamEventsRequest, request.query)),
  );
  app.post(streamEvents.path, { config: routeConfig(streamEvents) }, (request, reply) => {
    const { last_event_id } = parseBody(ResumeQuery, request.query);
    const inQuery = last_event_id === undefined ? {} : { last_event_id };
    return streams.answer(request, reply, { ...inQuery, ...parseBody(StreamEventsRequest, request.body) });
  });
}
