import { type Author, recordAudit } from '../audit/record-audit.js';
import type { SomeLimits, Tenant, UpdateTenantRequest } from '../contracts/api/tenants/tenants.js';
import { recordEvent } from '../db/events.js';
import { queryJson } from '../db/json-rows.js';
import type { PageRequest } from '../db/pages/page.js';
import type { Db, Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import { newId } from '../runtime/ids.js';

/** What an operator changes of a tenant. */
type TenantChange = Omit<UpdateTenantRequest, 'tenant_id'>;

/** Who acts, without the tenant in which. */
export type Actor = Omit<Author, 'tenant_id'>;

/** Creates a tenant and records `tenant.created`. Names need not be unique. */
export async function insertTenant(
  tx: Tx,
  actor: Actor,
  { name, default_agent_type = null, limits }: Pick<Tenant, 'name'> & Omit<TenantChange, 'name'>,
): Promise<Tenant> {
  const tenant_id = newId('ten');
  const insert = 'INSERT INTO tenants (tenant_id, name, default_agent_type, updated_by) VALUES ($1, $2, $3, $4)';
  await tx.query(insert, [tenant_id, name, default_agent_type, actor.principal.id]);
  if (limits) await setCeilings(tx, tenant_id, actor, limits);
  await recordEvent(tx, { tenant_id }, 'tenant.created', { tenant_id, name });
  const tenant = await readTenant(tx, tenant_id);
  await recordAudit(tx, { ...actor, tenant_id }, { action: 'tenant.create', target: targetOf(tenant), after: tenant });
  return tenant;
}

/** The same in a transaction of its own. */
export function createTenant(db: Db, actor: Actor, name: string): Promise<{ tenant_id: string; name: string }> {
  return db.system(async (tx) => {
    const { tenant_id } = await insertTenant(tx, actor, { name });
    return { tenant_id, name };
  });
}

const SET_CEILINGS = `
  INSERT INTO tenant_ceilings AS l (tenant_id, updated_by, messages_per_day, tokens_per_day, cost_usd_per_month)
    SELECT $1, $3, g.* FROM jsonb_to_record($2) AS g (messages_per_day bigint, tokens_per_day bigint, cost_usd_per_month numeric)
  ON CONFLICT (tenant_id) DO UPDATE SET updated_at = now(), updated_by = $3,
    messages_per_day = CASE WHEN $2::jsonb ? 'messages_per_day' THEN excluded.messages_per_day ELSE l.messages_per_day END,
    tokens_per_day = CASE WHEN $2::jsonb ? 'tokens_per_day' THEN excluded.tokens_per_day ELSE l.tokens_per_day END,
    cost_usd_per_month = CASE WHEN $2::jsonb ? 'cost_usd_per_month' THEN excluded.cost_usd_per_month ELSE l.cost_usd_per_month END`;

/** Sets what a tenant may set as its limits at most; members that are not given stay. */
async function setCeilings(tx: Tx, tenantId: string, { principal }: Actor, limits: SomeLimits): Promise<void> {
  await tx.query(SET_CEILINGS, [tenantId, JSON.stringify(limits), principal.id]);
}

/** Changes what is given of a tenant. @throws PlatformError NOT_FOUND for an unknown or deleted tenant */
export async function updateTenant(
  tx: Tx,
  author: Author,
  { name, default_agent_type, limits }: TenantChange,
): Promise<Tenant> {
  const { tenant_id, principal } = author;
  await tx.query('SELECT 1 FROM tenants WHERE tenant_id = $1 FOR NO KEY UPDATE', [tenant_id]);
  await requireTenant(tx, tenant_id);
  const before = await readTenant(tx, tenant_id);
  await tx.query('UPDATE tenants SET name = $2, default_agent_type = $3, updated_by = $4 WHERE tenant_id = $1', [
    ...[tenant_id, name ?? before.name],
    ...[default_agent_type === undefined ? before.default_agent_type : default_agent_type, principal.id],
  ]);
  if (limits) await setCeilings(tx, tenant_id, author, limits);
  const after = await readTenant(tx, tenant_id);
  await recordAudit(tx, author, { action: 'tenant.update', target: targetOf(after), before, after });
  return after;
}

const TENANTS = `
  SELECT t.tenant_id, t.name, t.default_agent_type, t.created_at, t.deleted_at, json_build_object('messages_per_day', c.messages_per_day,
         'tokens_per_day', c.tokens_per_day, 'cost_usd_per_month', c.cost_usd_per_month) AS limits
    FROM tenants t LEFT JOIN tenant_ceilings c USING (tenant_id)`;

/** A tenant, also one that is deleted and not yet erased. @throws PlatformError NOT_FOUND */
export async function readTenant(tx: Tx, tenantId: string): Promise<Tenant> {
  const [tenant] = await queryJson<Tenant>(tx, `${TENANTS} WHERE t.tenant_id = $1`, [tenantId]);
  if (!tenant) throw unknownTenant(tenantId);
  return tenant;
}

function unknownTenant(tenantId: string): PlatformError {
  return new PlatformError('NOT_FOUND', `There is no tenant ${tenantId}.`);
}

function targetOf({ tenant_id: id, name }: { tenant_id: string; name: string }) {
  return { type: 'tenant', id, name };
}

/** A page of all tenants, newest first, deleted ones included, and how many there are. */
export function listTenants(db: Db, { page, page_size }: PageRequest): Promise<{ tenants: Tenant[]; count: number }> {
  return db.system(async (tx) => {
    const [total] = await tx.query<{ count: number }>('SELECT count(*) AS count FROM tenants');
    const select = `${TENANTS} ORDER BY t.created_at DESC, t.tenant_id DESC LIMIT $1 OFFSET $2`;
    const tenants = await queryJson<Tenant>(tx, select, [page_size, (page - 1) * page_size]);
    return { tenants, count: total?.count ?? 0 };
  });
}

/** @throws PlatformError `NOT_FOUND` for an unknown or deleted tenant */
export async function requireTenant(tx: Tx, tenantId: string): Promise<void> {
  const rows = await tx.query('SELECT 1 FROM tenants WHERE tenant_id = $1 AND deleted_at IS NULL', [tenantId]);
  if (rows.length === 0) throw unknownTenant(tenantId);
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
    if (!tenant) throw unknownTenant(tenantId);
    await recordEvent(tx, tenant, 'tenant.deleted', tenant);
    await recordAudit(tx, author, { action: 'tenant.delete', target: targetOf(tenant), before: tenant });
    return tenant;
  });
}
