import type { FastifyInstance } from 'fastify';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { listPlans } from '../../plans/plan-records.js';
import type { ApiDeps } from '../deps.js';
import { mount, pageFields } from '../mount.js';

/** Plans, scope `read`; `admin` to approve and reject them. */
export function planRoutes(
  app: FastifyInstance,
  { db, secrets, plans }: Pick<ApiDeps, 'db' | 'secrets' | 'plans'>,
): void {
  mount(app, OPERATIONS.createPlan).answer(async (body, { caller, request }) => {
    const { traceparent } = request.headers;
    const from = { ip: request.ip, ...(typeof traceparent === 'string' && { traceparent }) };
    return { ok: true, plan: await plans.create(caller, body, from) };
  });

  mount(app, OPERATIONS.getPlans).answer(async (body, { caller }) => {
    const { rows, next_cursor, ...counted } = await listPlans({ db, secrets }, caller, body);
    return { ...pageFields(body, counted), plans: rows, ...(next_cursor && { next_cursor }) };
  });

  mount(app, OPERATIONS.getPlan).answer(async ({ plan_id }, { caller }) => ({
    ok: true,
    plan: await plans.get(caller, plan_id),
  }));

  mount(app, OPERATIONS.approvePlan).answer(async ({ plan_id, comment }, { caller, request }) => ({
    ok: true,
    plan: await plans.approve(caller, plan_id, comment, request.ip),
  }));

  mount(app, OPERATIONS.rejectPlan).answer(async ({ plan_id, comment }, { caller, request }) => ({
    ok: true,
    plan: await plans.reject(caller, plan_id, comment, request.ip),
  }));

  mount(app, OPERATIONS.cancelPlan).answer(async ({ plan_id, reason }, { caller }) => ({
    ok: true,
    plan: await plans.cancel(caller, plan_id, reason),
  }));
}
