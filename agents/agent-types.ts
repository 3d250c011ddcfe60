import type { Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import type { AgentRow } from './agent-row.js';
import { lockAgent } from './agents.js';
import { type Deregistration, deregisterAgent, type ReleaseAgent } from './deregister.js';

const DISALLOWED: Deregistration = { cause: 'explicit', reason: 'the agent type was disallowed' };

/** Names the tenant's decisions about types, for a lock that lasts until the transaction ends. */
function lockName(tenantId: string): string {
  return `agent_types:${tenantId}`;
}

/**
 * Checks that an agent of this type may join, and keeps that decision until the transaction ends (decisions.md, Agents: no list, every
 * type may join).
 * @throws PlatformError `forbidden`
 */
export async function requireMayJoin(tx: Tx, tenantId: string, agentType: string): Promise<void> {
  await tx.query('SELECT pg_advisory_xact_lock_shared(hashtextextended($1, 0))', [lockName(tenantId)]);
  const [row] = await tx.query<{ may_join: boolean }>('SELECT type_may_join($1, $2) AS may_join', [
    tenantId,
    agentType,
  ]);
  if (row?.may_join !== true)
    throw new PlatformError('forbidden', `Agents of the type ${agentType} may not join this tenant.`);
}

/** Whose decision about which type. */
export interface TypeDecision {
  tenant_id: string;
  agent_type: string;
  decided_by: string;
}

/** Writes a decision down. @returns what held for the type before; null for nothing */
async function decide(tx: Tx, decision: TypeDecision, allowed: boolean): Promise<boolean | null> {
  const { tenant_id, agent_type, decided_by } = decision;
  await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [lockName(tenant_id)]);
  const [before] = await tx.query<{ allowed: boolean }>(
    'SELECT allowed FROM agent_types WHERE tenant_id = $1 AND agent_type = $2',
    [tenant_id, agent_type],
  );
  await tx.query(
    `INSERT INTO agent_types (tenant_id, agent_type, allowed, decided_by) VALUES ($1, $2, $3, $4)
     ON CONFLICT (tenant_id, agent_type) DO UPDATE SET allowed = $3, decided_by = $4, decided_at = now()`,
    [tenant_id, agent_type, allowed, decided_by],
  );
  return before?.allowed ?? null;
}

/** Puts a type on the tenant's list; the first one makes the list. @returns whether it was not on it before */
export async function allowType(tx: Tx, decision: TypeDecision): Promise<{ was_new: boolean }> {
  return { was_new: (await decide(tx, decision, true)) !== true };
}

/**
 * Keeps a type out from now on and deregisters its instances. Taking the last type off the list leaves no list: the others may join.
 * @param releaseAgent unbinds an instance's sessions in the same transaction
 * @returns whether the type was on the list, and the instances that were deregistered, as they were before
 */
export async function disallowType(
  tx: Tx,
  decision: TypeDecision,
  releaseAgent: ReleaseAgent,
): Promise<{ removed_from_policy: boolean; deregistered: AgentRow[] }> {
  const { tenant_id, agent_type } = decision;
  const before = await decide(tx, decision, false);
  const instances = await tx.query<{ instance_id: string }>(
    `SELECT instance_id FROM agents WHERE tenant_id = $1 AND agent_type = $2 AND deregistered_at IS NULL ORDER BY instance_id`,
    [tenant_id, agent_type],
  );
  const deregistered: AgentRow[] = [];
  for (const { instance_id } of instances) {
    const row = await lockAgent(tx, tenant_id, instance_id);
    // It may have left, or become of another type, while its row was waited for.
    if (!row || row.deregistered_at || row.agent_type !== agent_type) continue;
    await deregisterAgent(tx, row, DISALLOWED, releaseAgent);
    deregistered.push(row);
  }
  return { removed_from_policy: before === true, deregistered };
}
