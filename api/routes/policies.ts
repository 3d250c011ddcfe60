import type { FastifyInstance } from 'fastify';
import type { Author } from '../../audit/record-audit.js';
import { createBacktests } from '../../backtest/backtest.js';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { PlatformError } from '../../runtime/errors.js';
import type { ApiDeps } from '../deps.js';
import { mount, pageFields } from '../mount.js';

/** Somebody of the tenant that a request may name. @throws PlatformError forbidden where it names another */
function ofOwn<By extends Pick<Author, 'tenant_id'>>(by: By, body: { tenant_id?: string | undefined }): By {
  if (body.tenant_id === undefined || body.tenant_id === by.tenant_id) return by;
  throw new PlatformError('forbidden', 'tenant_id: must be the tenant of the token.');
}

/** Policies, scope `admin`. */
export function policyRoutes(
  app: FastifyInstance,
  deps: Pick<ApiDeps, 'db' | 'policies' | 'policyCatalog' | 'guardCatalog'>,
): void {
  const { policyCatalog: catalog, guardCatalog } = deps;
  const backtest = createBacktests(deps);

  mount(app, OPERATIONS.createPolicy).answer(async (body, { author }) => ({
    policy: await catalog.create(ofOwn(author, body), body),
  }));

  mount(app, OPERATIONS.getPolicies).answer(async (body, { caller }) => {
    const { rows: policies, ...counted } = await catalog.list(ofOwn(caller, body).tenant_id, body);
    return { ...pageFields(body, counted), policies };
  });

  mount(app, OPERATIONS.getPolicy).answer(async (body, { caller }) => ({
    policy: await catalog.get(ofOwn(caller, body).tenant_id, body.policy_id),
  }));

  mount(app, OPERATIONS.updatePolicy).answer(async (body, { author }) => ({
    policy: await catalog.update(ofOwn(author, body), body),
  }));

  mount(app, OPERATIONS.deletePolicy).answer(async (body, { author }) => {
    await catalog.delete(ofOwn(author, body), body.policy_id);
    return { ok: true, policy_id: body.policy_id };
  });

  mount(app, OPERATIONS.testPolicy).answer((body, { caller }) => {
    return catalog.test(ofOwn(caller, body), body);
  });

  mount(app, OPERATIONS.backtestPolicy).answer((body, { caller }) => {
    return backtest(ofOwn(caller, body).tenant_id, body);
  });

  mount(app, OPERATIONS.getGuards).answer(async (body, { caller }) => ({
    ok: true,
    guards: await guardCatalog.list(ofOwn(caller, body).tenant_id),
  }));

  mount(app, OPERATIONS.updateGuard).answer(async (body, { author }) => ({
    ok: true,
    guard: await guardCatalog.update(ofOwn(author, body), body),
  }));
}
