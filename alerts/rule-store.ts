import type { Author } from '../audit/record-audit.js';
import type { AlertRule, Condition } from '../contracts/api/alerts.js';
import type { KeyList } from '../db/pages/page.js';
import type { Tx } from '../db/pool.js';

/** A row of `alert_rules`. */
export interface RuleRow
  extends Pick<
    AlertRule,
    | 'tenant_id'
    | 'rule_id'
    | 'name'
    | 'description'
    | 'severity'
    | 'threshold'
    | 'window_seconds'
    | 'cooldown_seconds'
    | 'approvers'
    | 'writers'
    | 'enabled'
  > {
  event: string;
  filters: NonNullable<Condition['filters']>;
  created_at: Date;
  updated_at: Date;
  updated_by: string | null;
}

const RAISE = `
  INSERT INTO alert_revisions AS r (tenant_id, revision) VALUES ($1, 1)
    ON CONFLICT (tenant_id) DO UPDATE SET revision = r.revision + 1`;

/**
 * Begins a change of a tenant's rules: locks them until the transaction ends, and raises their revision, so that every process compiles them
 * anew.
 */
export async function beginRuleChange(tx: Tx, tenantId: string): Promise<void> {
  await tx.query(RAISE, [tenantId]);
}

/** The revisions of the tenants that have, or had, rules. */
export async function readRevisions(tx: Tx, tenantIds: string[]): Promise<Map<string, number>> {
  const rows = await tx.query<{ tenant_id: string; revision: number }>(
    'SELECT tenant_id, revision FROM alert_revisions WHERE tenant_id = ANY($1)',
    [tenantIds],
    'alert_revisions',
  );
  return new Map(rows.map(({ tenant_id, revision }) => [tenant_id, revision]));
}

const SIZES = `
  SELECT t.tenant_id, (SELECT count(*) FROM alert_rules r WHERE r.tenant_id = t.tenant_id)
                      + (SELECT count(*) FROM alert_channels c WHERE c.tenant_id = t.tenant_id) AS size
    FROM unnest($1::text[]) AS t (tenant_id)`;

/** How many rules and channels tenants have. */
export async function readSizes(tx: Tx, tenantIds: string[]): Promise<Map<string, number>> {
  const rows = await tx.query<{ tenant_id: string; size: number }>(SIZES, [tenantIds]);
  return new Map(rows.map(({ tenant_id, size }) => [tenant_id, size]));
}

/** All rules of a tenant. */
export function readRules(tx: Tx, tenantId: string): Promise<RuleRow[]> {
  return tx.query<RuleRow>('SELECT * FROM alert_rules WHERE tenant_id = $1', [tenantId]);
}

/** How many rules a tenant has. */
export async function countRules(tx: Tx, tenantId: string): Promise<number> {
  const [total] = await tx.query<{ count: number }>('SELECT count(*) AS count FROM alert_rules WHERE tenant_id = $1', [
    tenantId,
  ]);
  return total?.count ?? 0;
}

/** A tenant's rules, the newest first. There are few. */
export function ruleList(tenantId: string): KeyList {
  const from = 'alert_rules WHERE tenant_id = $1';
  return { key: 'rule_id', from, orderBy: 'rule_id DESC', values: [tenantId], bounded: true };
}

/** The rules of these ids, the newest first. */
export function readRulesOf(tx: Tx, tenantId: string, ruleIds: string[]): Promise<RuleRow[]> {
  return tx.query<RuleRow>(
    'SELECT * FROM alert_rules WHERE tenant_id = $1 AND rule_id = ANY ($2) ORDER BY rule_id DESC',
    [tenantId, ruleIds],
  );
}

/** One rule; null when the tenant has none of that id. */
export async function readRule(tx: Tx, tenantId: string, ruleId: string): Promise<RuleRow | null> {
  const one = 'SELECT * FROM alert_rules WHERE tenant_id = $1 AND rule_id = $2';
  const [row] = await tx.query<RuleRow>(one, [tenantId, ruleId]);
  return row ?? null;
}

const SAVE = `
  INSERT INTO alert_rules (tenant_id, rule_id, name, description, event, filters, severity, threshold, window_seconds, cooldown_seconds,
      approvers, writers, enabled, updated_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
    ON CONFLICT (tenant_id, rule_id) DO UPDATE SET name = excluded.name, description = excluded.description, event = excluded.event,
      filters = excluded.filters, severity = excluded.severity, threshold = excluded.threshold, window_seconds = excluded.window_seconds,
      cooldown_seconds = excluded.cooldown_seconds, approvers = excluded.approvers, writers = excluded.writers, enabled = excluded.enabled,
      updated_at = now(), updated_by = excluded.updated_by
    RETURNING *`;

/** Stores a rule. @returns the row as it is stored */
export async function saveRule(
  tx: Tx,
  rule: Omit<RuleRow, 'created_at' | 'updated_at' | 'updated_by'>,
  { principal }: Author,
): Promise<RuleRow> {
  const { tenant_id, rule_id, name, description, event, filters, severity, approvers, writers, enabled } = rule;
  const limits = [rule.threshold, rule.window_seconds, rule.cooldown_seconds];
  const values = [tenant_id, rule_id, name, description, event, JSON.stringify(filters), severity, ...limits];
  const rest = [approvers, writers, enabled, principal.id];
  const [saved] = await tx.query<RuleRow>(SAVE, [...values, ...rest]);
  return saved as RuleRow;
}

/** Deletes a rule with its channels and its counts. */
export async function deleteRule(tx: Tx, tenantId: string, ruleId: string): Promise<void> {
  await tx.query('DELETE FROM alert_states WHERE tenant_id = $1 AND rule_id = $2', [tenantId, ruleId]);
  await tx.query('DELETE FROM alert_rules WHERE tenant_id = $1 AND rule_id = $2', [tenantId, ruleId]);
}
