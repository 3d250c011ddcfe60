import type { AgentRow } from './agents.js';
import { recordEvent } from './events.js';
import type { Tx } from './pool.js';

/** Unbinds the sessions of an instance that leaves, in the transaction in which it does. */
export type ReleaseAgent = (tx: Tx, tenantId: string, instanceId: string) => Promise<void>;

/**
 * Takes an agent out: no new work, its sessions unbound, `agent.deregistered`. Doing it again changes nothing.
 * @param releaseAgent unbinds its sessions in the same transaction
 * @throws PlatformError NOT_FOUND
 */
export async function deregisterAgent(
  tx: Tx,
  row: Pick<AgentRow, 'tenant_id' | 'instance_id' | 'agent_type' | 'deregistered_at'>,
  reason: string,
  releaseAgent: ReleaseAgent,
): Promise<void> {
  if (row.deregistered_at) return;
  const { tenant_id, instance_id, agent_type } = row;
  await tx.query(
    `UPDATE agents SET status = 'offline', deregistered_at = now() WHERE tenant_id = $1 AND instance_id = $2`,
    [tenant_id, instance_id],
  );
  await releaseAgent(tx, tenant_id, instance_id);
  await recordEvent(tx, { tenant_id }, 'agent.deregistered', { agent_type, instance_id, reason });
}
