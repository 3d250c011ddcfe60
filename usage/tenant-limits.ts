import { type Author, recordAudit } from '../audit/record-audit.js';
import type {
  SetLimitsRequest,
  SomeLimits,
  TenantLimits,
  TenantLimitsResponse,
} from '../contracts/api/tenants/tenants.js';
import type { Db, Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import type { UsageDeps } from './usage-report.js';

/** What may have limits of its own beside the tenant. */
export const KEY_KINDS = ['user', 'credential', 'agent_type'] as const;
export type KeyKind = (typeof KEY_KINDS)[number];

/** Whose quotas: those of the tenant (`kind` and `key` are ''), or of one of its keys. */
export interface QuotaSubject {
  tenant_id: string;
  kind: KeyKind | '';
  key: string;
}

/** What quotas are decided by (`quotas_of` and `key_quotas_of` in db/functions/events/usage.sql). */
export interface QuotaRow extends TenantLimits, QuotaSubject {
  messages: number;
  tokens: number;
  cost_usd: number;
  day_ends_at: Date;
  month_ends_at: Date;
  day_left_ms: number;
  month_left_ms: number;
}

const QUOTAS = `
  SELECT '' AS kind, '' AS key, q.* FROM quotas_of($1) q UNION ALL SELECT * FROM key_quotas_of($2, $3, $4)`;

/** Reads the limits of tenants and of their keys, and what has been used of them. */
export function readQuotas(tx: Tx, subjects: readonly QuotaSubject[]): Promise<QuotaRow[]> {
  const tenants = subjects.filter(({ kind }) => kind === '').map(({ tenant_id }) => tenant_id);
  const keys = subjects.filter(({ kind }) => kind !== '');
  const of = (member: keyof QuotaSubject) => keys.map((subject) => subject[member]);
  const values = [tenants, of('tenant_id'), of('kind'), of('key')];
  return tx.query<QuotaRow>(QUOTAS, values, 'quotas_of');
}

/** The limits of a tenant, and what has been used of them by everything that was committed before the call. */
export async function getLimits(
  { db, catchUpUsage }: UsageDeps,
  tenantId: string,
): Promise<Omit<TenantLimitsResponse, 'ok'>> {
  await catchUpUsage();
  const { row, per_key } = await db.tenant(tenantId, async (tx) => {
    const [row] = await readQuotas(tx, [{ tenant_id: tenantId, kind: '', key: '' }]);
    return { row, per_key: (await readLimits(tx, tenantId))?.per_key };
  });
  if (!row) throw new Error('the quotas of a tenant gave no row');
  const { messages_per_day, tokens_per_day, cost_usd_per_month, messages, tokens, cost_usd } = row;
  return {
    limits: { messages_per_day, tokens_per_day, cost_usd_per_month, ...per_key },
    used: { messages, tokens, cost_usd },
    day_ends_at: row.day_ends_at.toISOString(),
    month_ends_at: row.month_ends_at.toISOString(),
  };
}

/** The members of `$2` replace the stored limits; those that it leaves out stay. */
const SET = `
  INSERT INTO tenant_limits AS l (tenant_id, updated_by, per_key, messages_per_day, tokens_per_day, cost_usd_per_month)
    SELECT $1, $3, $4, g.* FROM jsonb_to_record($2) AS g (messages_per_day bigint, tokens_per_day bigint, cost_usd_per_month numeric)
  ON CONFLICT (tenant_id) DO UPDATE SET updated_at = now(), updated_by = $3, per_key = excluded.per_key,
    messages_per_day = CASE WHEN $2::jsonb ? 'messages_per_day' THEN excluded.messages_per_day ELSE l.messages_per_day END,
    tokens_per_day = CASE WHEN $2::jsonb ? 'tokens_per_day' THEN excluded.tokens_per_day ELSE l.tokens_per_day END,
    cost_usd_per_month = CASE WHEN $2::jsonb ? 'cost_usd_per_month' THEN excluded.cost_usd_per_month ELSE l.cost_usd_per_month END`;

const READ = `
  SELECT messages_per_day, tokens_per_day, cost_usd_per_month::double precision AS cost_usd_per_month, per_key
    FROM tenant_limits WHERE tenant_id = $1 FOR UPDATE`;

type StoredLimits = TenantLimits & { per_key: Partial<Record<`per_${KeyKind}`, SomeLimits>> };

async function readLimits(tx: Tx, tenantId: string): Promise<StoredLimits | null> {
  return (await tx.query<StoredLimits>(READ, [tenantId]))[0] ?? null;
}

/** The limits for each key, with those that are given in place of the stored ones. */
function keyLimits(stored: StoredLimits['per_key'], given: SetLimitsRequest): StoredLimits['per_key'] {
  const next = { ...stored };
  for (const name of KEY_KINDS.map((kind) => `per_${kind}` as const)) {
    const change = given[name];
    if (change === undefined) continue;
    const limits = Object.entries({ ...(change && stored[name]), ...change }).filter(([, limit]) => limit !== null);
    if (limits.length > 0) next[name] = Object.fromEntries(limits);
    else delete next[name];
  }
  return next;
}

const CEILINGS = `
  SELECT messages_per_day, tokens_per_day, cost_usd_per_month::double precision AS cost_usd_per_month FROM tenant_ceilings WHERE tenant_id = $1`;

/** @throws PlatformError forbidden for a limit above its ceiling */
async function checkCeilings(tx: Tx, tenantId: string, limits: SetLimitsRequest): Promise<void> {
  const [ceilings] = await tx.query<TenantLimits>(CEILINGS, [tenantId]);
  for (const [name, ceiling] of Object.entries(ceilings ?? {}) as [keyof TenantLimits, number | null][]) {
    if (ceiling !== null && (limits[name] ?? 0) > ceiling)
      throw new PlatformError('forbidden', `${name}: at most ${ceiling}, which the operator of the platform has set.`);
  }
}

/** Sets limits of a tenant. @returns the kinds of keys that have limits now @throws PlatformError forbidden for one above the ceiling that an operator of the platform has set */
export async function setLimits(db: Db, author: Author, limits: SetLimitsRequest): Promise<KeyKind[]> {
  const { tenant_id, principal } = author;
  return db.tenant(tenant_id, async (tx) => {
    await checkCeilings(tx, tenant_id, limits);
    const before = await readLimits(tx, tenant_id);
    const perKey = keyLimits(before?.per_key ?? {}, limits);
    await tx.query(SET, [tenant_id, JSON.stringify(limits), principal.id, JSON.stringify(perKey)]);
    const after = await readLimits(tx, tenant_id);
    await recordAudit(tx, author, { action: 'limits.set', target: { type: 'tenant', id: tenant_id }, before, after });
    return KEY_KINDS.filter((kind) => perKey[`per_${kind}`] !== undefined);
  });
}
