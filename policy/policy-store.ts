import type { Author } from '../audit/record-audit.js';
import type {
  CreatePolicyRequest,
  Evaluator,
  PolicyDecision,
  PolicyScope,
} from '../contracts/api/policies/policies.js';
import type { Match } from '../contracts/api/policies/policy-match.js';
import type { KeyList } from '../db/pages/page.js';
import type { Db, Tx } from '../db/pool.js';

/** A row of `policies`. */
export interface PolicyRow
  extends Required<Pick<CreatePolicyRequest, 'name' | 'description' | 'reason' | 'approvers'>> {
  tenant_id: string;
  policy_id: string;
  scope: PolicyScope;
  decision: PolicyDecision;
  match: Match;
  /** Without its secret. */
  evaluator: Evaluator;
  /** Encrypted. */
  evaluator_secret: Buffer | null;
  priority: number;
  enabled: boolean;
  end_at: Date | null;
  /** Null: no bound. */
  max_calls: number | null;
  /** How many calls it has allowed while it had a bound; null where it never had one. */
  calls_allowed: number | null;
  created_at: Date;
  updated_at: Date;
  /** Null in rows from before authors were noted. */
  updated_by: string | null;
}

const COUNTED = `(SELECT c.calls_allowed FROM policy_calls c WHERE c.tenant_id = policies.tenant_id AND c.policy_id = policies.policy_id)`;
const POLICIES = `SELECT *, ${COUNTED} AS calls_allowed FROM policies WHERE tenant_id = $1`;

const RAISE = `
  INSERT INTO policy_revisions AS r (tenant_id, revision) VALUES ($1, 1)
    ON CONFLICT (tenant_id) DO UPDATE SET revision = r.revision + 1, changed_by = pg_current_xact_id()`;

/**
 * Begins a change of a tenant's policies or guards: locks them until the transaction ends, and raises their revision, so that every process
 * reads them anew.
 */
export async function beginPolicyChange(tx: Tx, tenantId: string): Promise<void> {
  await tx.query(RAISE, [tenantId]);
}

/** The revision of a tenant's policies; 0 for a tenant that never had any. Read it before the policies, so that it is never newer than they are. */
export async function readRevision(tx: Tx, tenantId: string): Promise<number> {
  const one = 'SELECT revision FROM policy_revisions WHERE tenant_id = $1';
  const [row] = await tx.query<{ revision: number }>(one, [tenantId], 'policy_revision');
  return row?.revision ?? 0;
}

/** All policies of a tenant. */
export function readPolicies(tx: Tx, tenantId: string): Promise<PolicyRow[]> {
  return tx.query<PolicyRow>(POLICIES, [tenantId]);
}

/** How many policies a tenant has. */
export async function countPolicies(tx: Tx, tenantId: string): Promise<number> {
  const total = 'SELECT count(*) AS count FROM policies WHERE tenant_id = $1';
  const [row] = await tx.query<{ count: number }>(total, [tenantId]);
  return row?.count ?? 0;
}

/** A tenant's policies, the newest first. There are few. */
export function policyList(tenantId: string, scope: PolicyScope | undefined, enabled: boolean | undefined): KeyList {
  const from = `policies WHERE tenant_id = $1 AND ($2::text IS NULL OR scope = $2) AND ($3::boolean IS NULL OR enabled = $3)`;
  return {
    key: 'policy_id',
    from,
    orderBy: 'policy_id DESC',
    values: [tenantId, scope ?? null, enabled ?? null],
    bounded: true,
  };
}

/** The policies of these ids, the newest first. */
export function readPoliciesOf(tx: Tx, tenantId: string, policyIds: string[]): Promise<PolicyRow[]> {
  return tx.query<PolicyRow>(`${POLICIES} AND policy_id = ANY ($2) ORDER BY policy_id DESC`, [tenantId, policyIds]);
}

/**
 * One policy; null when the tenant has none of that id.
 * @param lock until the end of the transaction, to write the row back: a rotation of the secret key must not seal its secret anew in between
 */
export async function readPolicy(tx: Tx, tenantId: string, policyId: string, lock = false): Promise<PolicyRow | null> {
  const one = `${POLICIES} AND policy_id = $2 ${lock ? 'FOR UPDATE' : ''}`;
  const [row] = await tx.query<PolicyRow>(one, [tenantId, policyId]);
  return row ?? null;
}

const SAVE = `
  INSERT INTO policies (tenant_id, policy_id, scope, name, decision, description, match, reason, approvers, evaluator, evaluator_secret,
      priority, enabled, end_at, max_calls, updated_by)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
    ON CONFLICT (tenant_id, policy_id) DO UPDATE SET name = excluded.name, decision = excluded.decision, description = excluded.description,
      match = excluded.match, reason = excluded.reason, approvers = excluded.approvers, evaluator = excluded.evaluator,
      evaluator_secret = excluded.evaluator_secret, priority = excluded.priority, enabled = excluded.enabled,
      end_at = excluded.end_at, max_calls = excluded.max_calls, updated_at = now(), updated_by = excluded.updated_by
    RETURNING *, ${COUNTED} AS calls_allowed`;
const BEGIN_COUNT = 'INSERT INTO policy_calls (tenant_id, policy_id) VALUES ($1, $2) ON CONFLICT DO NOTHING';

/** Stores a policy; its scope stays, and so does the count of its calls. @returns the row as it is stored */
export async function savePolicy(
  tx: Tx,
  policy: Omit<PolicyRow, 'calls_allowed' | 'created_at' | 'updated_at' | 'updated_by'>,
  { principal }: Author,
): Promise<PolicyRow> {
  const { tenant_id, policy_id, scope, name, decision, description, match, reason, approvers, evaluator } = policy;
  const values = [tenant_id, policy_id, scope, name, decision, description, JSON.stringify(match), reason, approvers];
  const { evaluator_secret, priority, enabled, end_at, max_calls } = policy;
  const rest = [JSON.stringify(evaluator), evaluator_secret, priority, enabled, end_at, max_calls, principal.id];
  const [saved] = await tx.query<PolicyRow>(SAVE, [...values, ...rest]);
  if (max_calls !== null) await tx.query(BEGIN_COUNT, [tenant_id, policy_id]);
  return saved as PolicyRow;
}

/** Deletes a policy. */
export async function deletePolicy(tx: Tx, tenantId: string, policyId: string): Promise<void> {
  await tx.query('DELETE FROM policies WHERE tenant_id = $1 AND policy_id = $2', [tenantId, policyId]);
}

/** Counts a call that a policy with a bound would allow. @returns whether it had room for it */
export async function countAllowedCall(db: Pick<Db, 'call'>, tenantId: string, policyId: string): Promise<boolean> {
  const count = 'SELECT count_allowed_call($1, $2) AS counted';
  const [row] = await db.call<{ counted: boolean }>(tenantId, 'count_allowed_call', count, [tenantId, policyId]);
  return row?.counted === true;
}
