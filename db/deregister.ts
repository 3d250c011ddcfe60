import type { AgentRow } from './agents.js';
import { recordEvent } from './events.js';
import type { Tx } from './pool.js';

/** Unbinds the sessions of an instance that leaves, in the transaction in which it does. */
export type ReleaseAgent = (tx: Tx, tenantId: string, instanceId: string) => Promise<void>;

/** The agent that leaves; its row is locked. */
type LeavingAgent = Pick<AgentRow, 'tenant_id' | 'instance_id' | 'agent_type' | 'deregistered_at'>;

/**
 * Takes an agent out: no new work, its sessions unbound, its socket no longer a way to it, `agent.deregistered`. Doing it again changes
 * nothing.
 * @param releaseAgent unbinds its sessions in the same transaction
 */
export async function deregisterAgent(
  tx: Tx,
  row: LeavingAgent,
  reason: string,
  releaseAgent: ReleaseAgent,
): Promise<void> {
  if (row.deregistered_at) return;
  await tx.query(
    `UPDATE agents SET status = 'offline', mesh_id = NULL, connected_at = NULL, deregistered_at = now()
      WHERE tenant_id = $1 AND instance_id = $2`,
    [row.tenant_id, row.instance_id],
  );
  await leaveType(tx, row, reason, releaseAgent);
}

/** Ends what an agent was as one of its type: its sessions are unbound, `agent.deregistered`. Its row and its socket stay. */
export async function leaveType(tx: Tx, row: LeavingAgent, reason: string, releaseAgent: ReleaseAgent): Promise<void> {
  if (row.deregistered_at) return;
  const { tenant_id, instance_id, agent_type } = row;
  await releaseAgent(tx, tenant_id, instance_id);
  await recordEvent(tx, { tenant_id }, 'agent.deregistered', { agent_type, instance_id, reason });
}
