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

/** Creates a tenant and records `tenant.created`. Names need not be unique. */
export async function createTenant(db: Db, name: string): Promise<{ tenant_id: string; name: string }> {
  const tenant = { tenant_id: newId('ten'), name };
  await db.system(async (tx) => {
    await tx.query('INSERT INTO tenants (tenant_id, name) VALUES ($1, $2)', [tenant.tenant_id, name]);
    await recordEvent(tx, tenant, 'tenant.created', tenant);
  });
  return tenant;
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
export async function setDefaultType(tx: Tx, tenantId: string, agentType: string | null): Promise<void> {
  await tx.query('UPDATE tenants SET default_agent_type = $2 WHERE tenant_id = $1', [tenantId, agentType]);
}

/** Sets the default type of a tenant that has none. */
export async function ensureDefaultType(tx: Tx, tenantId: string, agentType: string): Promise<void> {
  const update = 'UPDATE tenants SET default_agent_type = $2 WHERE tenant_id = $1 AND default_agent_type IS NULL';
  await tx.query(update, [tenantId, agentType]);
}

/**
 * Marks a tenant as deleted and records `tenant.deleted`. Its credentials and tokens end within 5 s; its rows are erased soon after
 * (erasure/tenant/erase-tenant.ts).
 * @throws PlatformError `NOT_FOUND` for an unknown or deleted tenant
 */
export async function deleteTenant(
  db: Db,
  tenantId: string,
  deletedBy: string,
): Promise<{ tenant_id: string; name: string }> {
  return db.system(async (tx) => {
    const [tenant] = await tx.query<{ tenant_id: string; name: string }>(
      'UPDATE tenants SET deleted_at = now(), deleted_by = $2 WHERE tenant_id = $1 AND deleted_at IS NULL RETURNING tenant_id, name',
      [tenantId, deletedBy],
    );
    if (!tenant) throw new PlatformError('NOT_FOUND', `There is no tenant ${tenantId}.`);
    await recordEvent(tx, tenant, 'tenant.deleted', tenant);
    return tenant;
  });
}
