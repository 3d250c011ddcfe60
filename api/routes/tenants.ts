import type { FastifyInstance } from 'fastify';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { getPrices, setPrice } from '../../usage/model-prices.js';
import { getLimits, setLimits } from '../../usage/tenant-limits.js';
import type { ApiDeps } from '../deps.js';
import { mount } from '../mount.js';

/** Quotas and prices of the tenant, scope `full` (decisions.md, Shapes added). */
export function tenantRoutes(app: FastifyInstance, deps: Pick<ApiDeps, 'db' | 'catchUpUsage' | 'quotas'>): void {
  const { db, quotas } = deps;
  mount(app, OPERATIONS.getLimits).answer(async (_body, { caller: { tenant_id } }) => ({
    ok: true,
    ...(await getLimits(deps, tenant_id)),
  }));

  mount(app, OPERATIONS.setLimits).answer(async (body, { author }) => {
    const { tenant_id } = author;
    await setLimits(db, author, body);
    quotas.changed(tenant_id);
    return { ok: true, ...(await getLimits(deps, tenant_id)) };
  });

  mount(app, OPERATIONS.getPrices).answer(async (_body, { caller: { tenant_id } }) => ({
    ok: true,
    prices: await getPrices(db, tenant_id),
  }));

  mount(app, OPERATIONS.setPrices).answer(async (body, { author }) => ({
    ok: true,
    prices: await setPrice(db, author, body),
  }));
}
