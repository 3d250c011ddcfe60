import { type Author, recordAudit } from '../audit/record-audit.js';
import { recordEvent } from '../db/events.js';
import { queryJson } from '../db/json-rows.js';
import type { Db, Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import { newId } from '../runtime/ids.js';

export interface Tenant {
  tenant_id: string;
  name: string;
  /** Agent type of messages that name no target. */
  default_agent_type: string | null;
  created_at: string;
  deleted_at: string | null;
}

/** Who acts, without the tenant in which. */
export type Actor = Omit<Author, 'tenant_id'>;

/** Creates a tenant and records `tenant.created`. Names need not be unique. */
export function createTenant(db: Db, actor: Actor, name: string): Promise<{ tenant_id: string; name: string }> {
  const tenant = { tenant_id: newId('ten'), name };
  const author = { ...actor, tenant_id: tenant.tenant_id };
  return db.system(async (tx) => {
    const insert = 'INSERT INTO tenants (tenant_id, name, updated_by) VALUES ($1, $2, $3)';
    await tx.query(insert, [tenant.tenant_id, name, actor.principal.id]);
    await recordEvent(tx, tenant, 'tenant.created', tenant);
    await recordAudit(tx, author, { action: 'tenant.create', target: targetOf(tenant), after: tenant });
    return tenant;
  });
}

function targetOf({ tenant_id: id, name }: { tenant_id: string; name: string }) {
  return { type: 'tenant', id, name };
}

/** All tenants, newest first, deleted ones included. */
export function listTenants(db: Db): Promise<Tenant[]> {
  const select = 'SELECT tenant_id, name, default_agent_type, created_at, deleted_at FROM tenants';
  return db.system((tx) => queryJson<Tenant>(tx, `${select} ORDER BY created_at DESC, tenant_id DESC`));
}

/** @throws PlatformError `NOT_FOUND` for an unknown or deleted tenant */
export async function requireTenant(tx: Tx, tenantId: string): Promise<void> {
  const rows = await tx.query('SELECT 1 FROM tenants WHERE tenant_id = $1 AND deleted_at IS NULL', [tenantId]);
  if (rows.length === 0) throw new PlatformError('NOT_FOUND', `There is no tenant ${tenantId}.`);
}

/** Sets the agent type of messages that name no target; null for none. No agent of the type needs to exist. */
export async function setDefaultType(tx: Tx, author: Author, agentType: string | null): Promise<void> {
  const { tenant_id, principal } = author;
  const read = 'SELECT default_agent_type FROM tenants WHERE tenant_id = $1 FOR NO KEY UPDATE';
  const [before = null] = await tx.query(read, [tenant_id]);
  const update = 'UPDATE tenants SET default_agent_type = $2, updated_by = $3 WHERE tenant_id = $1';
  await tx.query(update, [tenant_id, agentType, principal.id]);
  const states = { before, after: { default_agent_type: agentType } };
  await recordAudit(tx, author, { action: 'default_type.set', target: { type: 'tenant', id: tenant_id }, ...states });
}

/** Sets the default type of a tenant that has none. */
export async function ensureDefaultType(tx: Tx, author: Author, agentType: string): Promise<void> {
  const none = 'SELECT 1 FROM tenants WHERE tenant_id = $1 AND default_agent_type IS NULL FOR NO KEY UPDATE';
  if ((await tx.query(none, [author.tenant_id])).length > 0) await setDefaultType(tx, author, agentType);
}

/**
 * Marks a tenant as deleted and records `tenant.deleted`. Its credentials and tokens end within 5 s; its rows are erased soon after
 * (erasure/tenant/erase-tenant.ts).
 * @param author whose tenant is deleted
 * @throws PlatformError `NOT_FOUND` for an unknown or deleted tenant
 */
export async function deleteTenant(db: Db, author: Author): Promise<{ tenant_id: string; name: string }> {
  const { tenant_id: tenantId, principal } = author;
  return db.system(async (tx) => {
    const [tenant] = await tx.query<{ tenant_id: string; name: string }>(
      'UPDATE tenants SET deleted_at = now(), deleted_by = $2 WHERE tenant_id = $1 AND deleted_at IS NULL RETURNING tenant_id, name',
      [tenantId, principal.id],
    );
    if (!tenant) throw new PlatformError('NOT_FOUND', `There is no tenant ${tenantId}.`);
    await recordEvent(tx, tenant, 'tenant.deleted', tenant);
    await recordAudit(tx, author, { action: 'tenant.delete', target: targetOf(tenant), before: tenant });
    return tenant;
  });
}
