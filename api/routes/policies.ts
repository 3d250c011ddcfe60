import type { FastifyInstance } from 'fastify';
import type { Caller } from '../../contracts/api/auth.js';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { PlatformError } from '../../runtime/errors.js';
import type { ApiDeps } from '../deps.js';
import { mount, pageFields } from '../mount.js';

/** The caller's tenant, which a request may name. @throws PlatformError forbidden where it names another */
function ownTenant({ tenant_id }: Caller, body: { tenant_id?: string | undefined }): string {
  if (body.tenant_id === undefined || body.tenant_id === tenant_id) return tenant_id;
  throw new PlatformError('forbidden', 'tenant_id: must be the tenant of the token.');
}

/** Policies, scope `admin` (specification section 4; decisions.md, Policies). */
export function policyRoutes(
  app: FastifyInstance,
  { policyCatalog: catalog, guardCatalog }: Pick<ApiDeps, 'policyCatalog' | 'guardCatalog'>,
): void {
  mount(app, OPERATIONS.createPolicy).answer(async (body, { caller }) => ({
    policy: await catalog.create(ownTenant(caller, body), body),
  }));

  mount(app, OPERATIONS.getPolicies).answer(async (body, { caller }) => {
    const { rows: policies, ...counted } = await catalog.list(ownTenant(caller, body), body);
    return { ...pageFields(body, counted), policies };
  });

  mount(app, OPERATIONS.getPolicy).answer(async (body, { caller }) => ({
    policy: await catalog.get(ownTenant(caller, body), body.policy_id),
  }));

  mount(app, OPERATIONS.updatePolicy).answer(async (body, { caller }) => ({
    policy: await catalog.update(ownTenant(caller, body), body),
  }));

  mount(app, OPERATIONS.deletePolicy).answer(async (body, { caller }) => {
    await catalog.delete(ownTenant(caller, body), body.policy_id);
    return { ok: true, policy_id: body.policy_id };
  });

  mount(app, OPERATIONS.testPolicy).answer((body, { caller }) => {
    ownTenant(caller, body);
    return catalog.test(caller, body);
  });

  mount(app, OPERATIONS.getGuards).answer(async (body, { caller }) => ({
    ok: true,
    guards: await guardCatalog.list(ownTenant(caller, body)),
  }));

  mount(app, OPERATIONS.updateGuard).answer(async (body, { caller }) => ({
    ok: true,
    guard: await guardCatalog.update(ownTenant(caller, body), body),
  }));
}
