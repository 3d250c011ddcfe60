import type { AgentStatus, DeploymentMode } from '../contracts/api/agents.js';

/** Identifies an agent instance across tenants. */
export interface AgentRef {
  tenant_id: string;
  instance_id: string;
}

/** `explicit`: deregistered on request; the agent may not reconnect until it registers again. `inactivity`: it may register again by itself. */
export type DeregistrationCause = 'explicit' | 'inactivity';

/** The columns of `agents` that registration and health use. */
export interface AgentRow extends AgentRef {
  agent_type: string;
  deployment_mode: DeploymentMode;
  /** `busy` in this column is what the agent reported. The API also shows `busy` for an agent at capacity. */
  status: AgentStatus;
  /** The node that holds the agent's socket; null without a socket. */
  mesh_id: string | null;
  /** The epoch of the newest connection. */
  connection_epoch: number;
  max_concurrent_sessions: number;
  /** Messages at once over all sessions; 0 is unlimited. */
  max_concurrent_tasks: number;
  /** An operator drains it: nothing new is sent to it, whatever its status. */
  drained: boolean;
  consecutive_failures: number;
  deregistered_at: Date | null;
  deregistration_cause: DeregistrationCause | null;
}

/** The status that the API shows: a drained agent that would take messages shows `draining`. `INSTANCES` does the same in SQL. */
export function shownStatus({ drained }: Pick<AgentRow, 'drained'>, status: AgentStatus): AgentStatus {
  return drained && (status === 'available' || status === 'busy' || status === 'unknown') ? 'draining' : status;
}

/** Whether an agent was deregistered on request and has not registered since. */
export function isDeregisteredOnRequest(row: Pick<AgentRow, 'deregistered_at' | 'deregistration_cause'>): boolean {
  return row.deregistered_at !== null && row.deregistration_cause === 'explicit';
}

/** The agent that was chosen for a message or a session. */
export interface ChosenAgent {
  agent_type: string;
  instance_id: string;
}

/** The agent on which a message holds a slot; null where it holds none. */
export function slotOf(row: { tenant_id: string; holds_slot: boolean; instance_id: string | null }): AgentRef | null {
  const { tenant_id, holds_slot, instance_id } = row;
  return holds_slot && instance_id !== null ? { tenant_id, instance_id } : null;
}
