import type { FastifyInstance } from 'fastify';
import { createCredential, listCredentials, revokeCredential, rotateCredential } from '../../auth/credentials.js';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { PlatformError } from '../../runtime/errors.js';
import type { ApiDeps } from '../deps.js';
import { mount, pageFields } from '../mount.js';
import { callerOf } from '../plugins/authentication.js';

/** A tenant's own credentials, scope `full` (decisions.md, Auth). */
export function credentialRoutes(app: FastifyInstance, deps: Pick<ApiDeps, 'db' | 'secrets'>): void {
  const { db, secrets } = deps;

  mount(app, OPERATIONS.createCredential).answer(async (body, { request }) => {
    const { tenant_id } = callerOf(request);
    if (body.expires_at !== undefined && Date.parse(body.expires_at) <= Date.now()) {
      throw new PlatformError('BAD_REQUEST', 'expires_at: must be in the future.');
    }
    const issued = await db.tenant(tenant_id, (tx) => createCredential(tx, secrets, tenant_id, body));
    return { ok: true, ...issued };
  });

  mount(app, OPERATIONS.getCredentials).answer(async (body, { request }) => {
    const { tenant_id } = callerOf(request);
    const { count, credentials } = await db.tenant(tenant_id, (tx) => listCredentials(tx, tenant_id, body));
    return { ...pageFields(body, count), credentials };
  });

  mount(app, OPERATIONS.rotateCredential).answer(async ({ credential_id, overlap_seconds }, { request }) => {
    const { tenant_id } = callerOf(request);
    const issued = await db.tenant(tenant_id, (tx) =>
      rotateCredential(tx, secrets, tenant_id, credential_id, overlap_seconds),
    );
    return { ok: true, ...issued };
  });

  mount(app, OPERATIONS.revokeCredential).answer(async ({ credential_id }, { request }) => {
    const { tenant_id } = callerOf(request);
    await db.tenant(tenant_id, (tx) => revokeCredential(tx, tenant_id, credential_id));
    return { ok: true, credential_id };
  });
}
