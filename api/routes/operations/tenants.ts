import type { FastifyInstance } from 'fastify';
import { createCredential } from '../../../auth/credentials.js';
import { deleteTenant, insertTenant, listTenants, readTenant, updateTenant } from '../../../auth/tenants.js';
import { OPERATIONS } from '../../../contracts/api/operations.js';
import { getPrices, setPrice } from '../../../usage/model-prices.js';
import { getLimits, setLimits } from '../../../usage/tenant-limits.js';
import type { ApiDeps } from '../../deps.js';
import { mount, pageFields } from '../../mount.js';

/** Tenants, for operators of the platform; quotas and prices of a tenant, scope `full`. */
export function tenantRoutes(
  app: FastifyInstance,
  deps: Pick<ApiDeps, 'db' | 'secrets' | 'catchUpUsage' | 'quotas'>,
): void {
  const { db, quotas, secrets } = deps;
  mount(app, OPERATIONS.createTenant).answer(({ credential, ...fields }, { author }) =>
    db.system(async (tx) => {
      const tenant = await insertTenant(tx, author, fields);
      const first = { ...author, tenant_id: tenant.tenant_id };
      return { ok: true, tenant, ...(credential && (await createCredential(tx, secrets, first, credential))) };
    }),
  );

  mount(app, OPERATIONS.getTenants).answer(async (body) => {
    const { tenants, count } = await listTenants(db, body);
    return { ...pageFields(body, { count }), tenants };
  });

  mount(app, OPERATIONS.getTenant).answer(async ({ tenant_id }) => ({
    ok: true,
    tenant: await db.system((tx) => readTenant(tx, tenant_id)),
  }));

  mount(app, OPERATIONS.updateTenant).answer(async ({ tenant_id, ...change }, { author }) => {
    const tenant = await db.system((tx) => updateTenant(tx, { ...author, tenant_id }, change));
    quotas.changed(tenant_id);
    return { ok: true, tenant };
  });

  mount(app, OPERATIONS.deleteTenant).answer(async ({ tenant_id }, { author }) => {
    await deleteTenant(db, { ...author, tenant_id });
    return { ok: true, tenant_id };
  });

  mount(app, OPERATIONS.getLimits).answer(async (_body, { caller: { tenant_id } }) => ({
    ok: true,
    ...(await getLimits(deps, tenant_id)),
  }));

  mount(app, OPERATIONS.setLimits).answer(async (body, { author }) => {
    const { tenant_id } = author;
    quotas.changed(tenant_id, await setLimits(db, author, body));
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
