import { type Author, recordAudit } from '../audit/record-audit.js';
import type { SetLimitsRequest, TenantLimits, TenantLimitsResponse } from '../contracts/api/tenants/tenants.js';
import type { Db, Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import type { UsageDeps } from './usage-report.js';

/** What a tenant's quotas are decided by (`quotas_of` in db/functions/events/usage.sql). */
export interface QuotaRow extends TenantLimits {
  tenant_id: string;
  messages: number;
  tokens: number;
  cost_usd: number;
  day_ends_at: Date;
  month_ends_at: Date;
  day_left_ms: number;
  month_left_ms: number;
}

/** Reads the limits of tenants and what has been used of them. */
export function readQuotas(tx: Tx, tenantIds: readonly string[]): Promise<QuotaRow[]> {
  return tx.query<QuotaRow & Record<string, unknown>>('SELECT * FROM quotas_of($1)', [tenantIds], 'quotas_of');
}

/** The limits of a tenant, and what has been used of them by everything that was committed before the call. */
export async function getLimits(
  { db, catchUpUsage }: UsageDeps,
  tenantId: string,
): Promise<Omit<TenantLimitsResponse, 'ok'>> {
  await catchUpUsage();
  const [row] = await db.tenant(tenantId, (tx) => readQuotas(tx, [tenantId]));
  if (!row) throw new Error('the quotas of a tenant gave no row');
  const { messages_per_day, tokens_per_day, cost_usd_per_month, messages, tokens, cost_usd } = row;
  return {
    limits: { messages_per_day, tokens_per_day, cost_usd_per_month },
    used: { messages, tokens, cost_usd },
    day_ends_at: row.day_ends_at.toISOString(),
    month_ends_at: row.month_ends_at.toISOString(),
  };
}

/** The members of `$2` replace the stored limits; those that it leaves out stay. */
const SET = `
  INSERT INTO tenant_limits AS l (tenant_id, updated_by, messages_per_day, tokens_per_day, cost_usd_per_month)
    SELECT $1, $3, g.* FROM jsonb_to_record($2) AS g (messages_per_day bigint, tokens_per_day bigint, cost_usd_per_month numeric)
  ON CONFLICT (tenant_id) DO UPDATE SET updated_at = now(), updated_by = $3,
    messages_per_day = CASE WHEN $2::jsonb ? 'messages_per_day' THEN excluded.messages_per_day ELSE l.messages_per_day END,
    tokens_per_day = CASE WHEN $2::jsonb ? 'tokens_per_day' THEN excluded.tokens_per_day ELSE l.tokens_per_day END,
    cost_usd_per_month = CASE WHEN $2::jsonb ? 'cost_usd_per_month' THEN excluded.cost_usd_per_month ELSE l.cost_usd_per_month END`;

const READ = `
  SELECT messages_per_day, tokens_per_day, cost_usd_per_month::double precision AS cost_usd_per_month FROM tenant_limits WHERE tenant_id = $1 FOR UPDATE`;

async function readLimits(tx: Tx, tenantId: string): Promise<TenantLimits | null> {
  return (await tx.query<TenantLimits & Record<string, unknown>>(READ, [tenantId]))[0] ?? null;
}

const CEILINGS = `
  SELECT messages_per_day, tokens_per_day, cost_usd_per_month::double precision AS cost_usd_per_month FROM tenant_ceilings WHERE tenant_id = $1`;

/** @throws PlatformError forbidden for a limit above its ceiling */
async function checkCeilings(tx: Tx, tenantId: string, limits: SetLimitsRequest): Promise<void> {
  const [ceilings] = await tx.query<TenantLimits & Record<string, unknown>>(CEILINGS, [tenantId]);
  for (const [name, ceiling] of Object.entries(ceilings ?? {}) as [keyof TenantLimits, number | null][]) {
    if (ceiling !== null && (limits[name] ?? 0) > ceiling)
      throw new PlatformError('forbidden', `${name}: at most ${ceiling}, which the operator of the platform has set.`);
  }
}

/** Sets limits of a tenant. @throws PlatformError forbidden for one above the ceiling that an operator of the platform has set */
export async function setLimits(db: Db, author: Author, limits: SetLimitsRequest): Promise<void> {
  const { tenant_id, principal } = author;
  await db.tenant(tenant_id, async (tx) => {
    await checkCeilings(tx, tenant_id, limits);
    const before = await readLimits(tx, tenant_id);
    await tx.query(SET, [tenant_id, JSON.stringify(limits), principal.id]);
    const after = await readLimits(tx, tenant_id);
    await recordAudit(tx, author, { action: 'limits.set', target: { type: 'tenant', id: tenant_id }, before, after });
  });
}
