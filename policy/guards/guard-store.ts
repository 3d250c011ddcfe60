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
}

/** The guards that a tenant has changed. */
export function readGuards(tx: Tx, tenantId: string): Promise<GuardRow[]> {
  return tx.query<GuardRow & Record<string, unknown>>(
    'SELECT guard, enabled, decision, config, updated_at FROM guards WHERE tenant_id = $1',
    [tenantId],
    'read_guards',
  );
}

const SAVE = `
  INSERT INTO guards (tenant_id, guard, enabled, decision, config) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (tenant_id, guard) DO UPDATE SET enabled = excluded.enabled, decision = excluded.decision, config = excluded.config,
      updated_at = now()
    RETURNING guard, enabled, decision, config, updated_at`;

/** Stores a guard. The caller has begun a change of policies (`beginPolicyChange`). @returns the row as it is stored */
export async function saveGuard(tx: Tx, tenantId: string, row: Omit<GuardRow, 'updated_at'>): Promise<GuardRow> {
  const values = [tenantId, row.guard, row.enabled, row.decision, JSON.stringify(row.config)];
  const [saved] = await tx.query<GuardRow & Record<string, unknown>>(SAVE, values);
  return saved as GuardRow;
}
