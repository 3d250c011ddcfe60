import type { FastifyInstance } from 'fastify';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { getReceipt } from '../../requests/receipts.js';
import { getRequest, listRequests, similarRequests } from '../../requests/request-list.js';
import { resolveMany } from '../../requests/resolve-many.js';
import { createDecisions } from '../decisions.js';
import type { ApiDeps } from '../deps.js';
import { mount } from '../mount.js';

/** Requests to people: lists, records, many decisions at once, receipts. */
export function requestRoutes(
  app: FastifyInstance,
  deps: Pick<ApiDeps, 'db' | 'log' | 'secrets' | 'tokens' | 'messages' | 'plans'>,
): void {
  const { decideAs } = createDecisions(deps);

  mount(app, OPERATIONS.getRequests).answer(async (body, { caller }) => ({
    ok: true,
    ...(await listRequests(deps, caller, body)),
  }));

  mount(app, OPERATIONS.getRequest).answer(async ({ request_id }, { caller }) => ({
    ok: true,
    request: await getRequest(deps.db, caller, request_id),
  }));

  mount(app, OPERATIONS.getSimilarRequests).answer(async ({ request_id }, { caller }) => ({
    ok: true,
    requests: await similarRequests(deps.db, caller, request_id),
  }));

  mount(app, OPERATIONS.resolveRequests).answer(async (body, { caller, request }) => ({
    ok: true,
    results: await resolveMany({ ...deps, decideAs }, caller, body, request.ip),
  }));

  mount(app, OPERATIONS.getReceipt).answer(async ({ request_id }, { caller }) => ({
    ok: true,
    ...(await getReceipt(deps, caller, request_id)),
  }));
}
