import type { Author } from '../../audit/record-audit.js';
import type { GuardDecision, GuardName } from '../../contracts/api/policies/guards.js';
import type { Tx } from '../../db/pool.js';

/** A row of `guards`: what a tenant has changed of a guard. */
export interface GuardRow {
  guard: GuardName;
  enabled: boolean;
  decision: GuardDecision;
  /** Only the members that were given. */
  config: Record<string, unknown>;
  updated_at: Date;
  updated_by: string | null;
}

/** The guards that a tenant has changed. */
export function readGuards(tx: Tx, tenantId: string): Promise<GuardRow[]> {
  return tx.query<GuardRow>(
    'SELECT guard, enabled, decision, config, updated_at, updated_by FROM guards WHERE tenant_id = $1',
    [tenantId],
    'read_guards',
  );
}

const SAVE = `
  INSERT INTO guards (tenant_id, guard, enabled, decision, config, updated_by) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (tenant_id, guard) DO UPDATE SET enabled = excluded.enabled, decision = excluded.decision, config = excluded.config,
      updated_at = now(), updated_by = excluded.updated_by
    RETURNING guard, enabled, decision, config, updated_at, updated_by`;

/** Stores a guard. The caller has begun a change of policies (`beginPolicyChange`). @returns the row as it is stored */
export async function saveGuard(
  tx: Tx,
  row: Omit<GuardRow, 'updated_at' | 'updated_by'>,
  { tenant_id, principal }: Author,
): Promise<GuardRow> {
  const values = [tenant_id, row.guard, row.enabled, row.decision, JSON.stringify(row.config), principal.id];
  const [saved] = await tx.query<GuardRow>(SAVE, values);
  return saved as GuardRow;
}
