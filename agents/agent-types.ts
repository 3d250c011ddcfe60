import type { Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import type { AgentRow } from './agent-row.js';
import { lockAgentsOfType } from './agents.js';
import { type Deregistration, deregisterAgents } from './registration.js';

const DISALLOWED: Deregistration = { cause: 'explicit', reason: 'the agent type was disallowed' };

/** The name of the advisory lock on a tenant's decisions about agent types. */
function lockName(tenantId: string): string {
  return `agent_types:${tenantId}`;
}

/**
 * Checks that agents of a type may join the tenant, and blocks a change of that decision until the transaction ends (decisions.md,
 * Agents). A tenant without a list admits every type.
 * @throws PlatformError `forbidden`
 */
export async function requireMayJoin(tx: Tx, tenantId: string, agentType: string): Promise<void> {
  await tx.query('SELECT pg_advisory_xact_lock_shared(hashtextextended($1, 0))', [lockName(tenantId)]);
  const allowed = await tx.query('SELECT 1 WHERE type_may_join($1, $2)', [tenantId, agentType]);
  if (allowed.length === 0)
    throw new PlatformError('forbidden', `Agents of the type ${agentType} may not join this tenant.`);
}

/** A decision of `decided_by` about an agent type. */
export interface TypeDecision {
  tenant_id: string;
  agent_type: string;
  decided_by: string;
}

/** Stores a decision. @returns the previous decision about the type; null if there was none */
async function decide(tx: Tx, decision: TypeDecision, allowed: boolean): Promise<boolean | null> {
  const { tenant_id, agent_type, decided_by } = decision;
  await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [lockName(tenant_id)]);
  const [before] = await tx.query<{ allowed: boolean | null }>(
    `INSERT INTO agent_types (tenant_id, agent_type, allowed, decided_by) VALUES ($1, $2, $3, $4)
     ON CONFLICT (tenant_id, agent_type) DO UPDATE SET allowed = $3, decided_by = $4, decided_at = now()
     RETURNING (SELECT b.allowed FROM agent_types b WHERE b.tenant_id = $1 AND b.agent_type = $2) AS allowed`,
    [tenant_id, agent_type, allowed, decided_by],
  );
  return before?.allowed ?? null;
}

/** Adds a type to the tenant's list; the first type creates the list. @returns whether the type was not on the list before */
export async function allowType(tx: Tx, decision: TypeDecision): Promise<{ was_new: boolean }> {
  return { was_new: (await decide(tx, decision, true)) !== true };
}

/**
 * Bars a type and deregisters its instances. Removing the last type from the list removes the list: all other types may join.
 * @returns whether the type was on the list, and the rows of the deregistered instances as they were before
 */
export async function disallowType(
  tx: Tx,
  decision: TypeDecision,
): Promise<{ removed_from_policy: boolean; deregistered: AgentRow[] }> {
  const { tenant_id, agent_type } = decision;
  const before = await decide(tx, decision, false);
  const deregistered = await lockAgentsOfType(tx, tenant_id, agent_type);
  await deregisterAgents(tx, tenant_id, deregistered, DISALLOWED);
  return { removed_from_policy: before === true, deregistered };
}
