import { type Author, recordAudit } from '../audit/record-audit.js';
import type { Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import type { AgentRow } from './agent-row.js';
import { lockAgentsOfType } from './agents.js';
import { deregisterAgents } from './registration.js';

/** The name of the advisory lock on a tenant's decisions about agent types. */
function lockName(tenantId: string): string {
  return `agent_types:${tenantId}`;
}

/**
 * Checks that agents of a type may join the tenant, and blocks a change of that decision until the transaction ends.
 * A tenant without a list admits every type.
 * @throws PlatformError `forbidden`
 */
export async function requireMayJoin(tx: Tx, tenantId: string, agentType: string): Promise<void> {
  await tx.query('SELECT pg_advisory_xact_lock_shared(hashtextextended($1, 0))', [lockName(tenantId)]);
  const allowed = await tx.query('SELECT 1 WHERE type_may_join($1, $2)', [tenantId, agentType]);
  if (allowed.length === 0)
    throw new PlatformError('forbidden', `Agents of the type ${agentType} may not join this tenant.`);
}

/** Stores a decision. @returns the previous decision about the type; null if there was none */
async function decide(tx: Tx, author: Author, agent_type: string, allowed: boolean): Promise<boolean | null> {
  const { tenant_id, principal } = author;
  await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [lockName(tenant_id)]);
  const [before] = await tx.query<{ allowed: boolean | null }>(
    `INSERT INTO agent_types (tenant_id, agent_type, allowed, decided_by) VALUES ($1, $2, $3, $4)
     ON CONFLICT (tenant_id, agent_type) DO UPDATE SET allowed = $3, decided_by = $4, decided_at = now()
     RETURNING (SELECT b.allowed FROM agent_types b WHERE b.tenant_id = $1 AND b.agent_type = $2) AS allowed`,
    [tenant_id, agent_type, allowed, principal.id],
  );
  const wasAllowed = before?.allowed ?? null;
  await recordAudit(tx, author, {
    action: allowed ? 'agent_type.allow' : 'agent_type.disallow',
    target: { type: 'agent_type', id: agent_type },
    before: wasAllowed === null ? null : { allowed: wasAllowed },
    after: { allowed },
  });
  return wasAllowed;
}

/** Adds a type to the tenant's list; the first type creates the list. @returns whether the type was not on the list before */
export async function allowType(tx: Tx, author: Author, agentType: string): Promise<{ was_new: boolean }> {
  return { was_new: (await decide(tx, author, agentType, true)) !== true };
}

/**
 * Bars a type and deregisters its instances. Removing the last type from the list removes the list: all other types may join.
 * @returns whether the type was on the list, and the rows of the deregistered instances as they were before
 */
export async function disallowType(
  tx: Tx,
  author: Author,
  agentType: string,
): Promise<{ removed_from_policy: boolean; deregistered: AgentRow[] }> {
  const { tenant_id } = author;
  const before = await decide(tx, author, agentType, false);
  const deregistered = await lockAgentsOfType(tx, tenant_id, agentType);
  const why = { cause: 'explicit', reason: 'the agent type was disallowed', author } as const;
  await deregisterAgents(tx, tenant_id, deregistered, why);
  return { removed_from_policy: before === true, deregistered };
}
