import { recordEvent } from '../db/events.js';
import type { Tx } from '../db/pool.js';
import type { AgentRow, DeregistrationCause } from './agent-row.js';

/** Unbinds the sessions of an instance that leaves, in the transaction in which it does. */
export type ReleaseAgent = (tx: Tx, tenantId: string, instanceId: string) => Promise<void>;

/** Why an agent is deregistered. */
export interface Deregistration {
  cause: DeregistrationCause;
  /** For `agent.deregistered`. */
  reason: string;
}

/** The agent that leaves; its row is locked. */
type LeavingAgent = Pick<AgentRow, 'tenant_id' | 'instance_id' | 'agent_type' | 'deregistered_at'>;

/**
 * Takes an agent out: no new work, its sessions unbound, its socket no longer a way to it, `agent.deregistered`. Doing it again changes
 * nothing, but that one that was silent is to stay away when somebody asks for it.
 * @param releaseAgent unbinds its sessions in the same transaction
 */
export async function deregisterAgent(
  tx: Tx,
  row: LeavingAgent,
  { cause, reason }: Deregistration,
  releaseAgent: ReleaseAgent,
): Promise<void> {
  if (row.deregistered_at && cause === 'inactivity') return;
  await tx.query(
    `UPDATE agents SET status = 'offline', mesh_id = NULL, connected_at = NULL, deregistration_cause = $3,
       deregistered_at = coalesce(deregistered_at, now())
      WHERE tenant_id = $1 AND instance_id = $2`,
    [row.tenant_id, row.instance_id, cause],
  );
  await leaveType(tx, row, reason, releaseAgent);
}

/** Whether somebody deregistered it, so that it is to stay away until it is started again. */
export function isUnwanted(row: Pick<AgentRow, 'deregistered_at' | 'deregistration_cause'>): boolean {
  return row.deregistered_at !== null && row.deregistration_cause === 'explicit';
}

/** Ends what an agent was as one of its type: its sessions are unbound, `agent.deregistered`. Its row and its socket stay. */
export async function leaveType(tx: Tx, row: LeavingAgent, reason: string, releaseAgent: ReleaseAgent): Promise<void> {
  if (row.deregistered_at) return;
  const { tenant_id, instance_id, agent_type } = row;
  await releaseAgent(tx, tenant_id, instance_id);
  await recordEvent(tx, { tenant_id }, 'agent.deregistered', { agent_type, instance_id, reason });
}
