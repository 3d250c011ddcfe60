import type { AgentStatus, DeploymentMode } from '../contracts/agents.js';

/** `explicit`: somebody asked for it, and the agent stays away until it is started again. `inactivity`: it may register anew by itself. */
export type DeregistrationCause = 'explicit' | 'inactivity';

/** A row of `agents`, as far as registration and health look at it. */
export interface AgentRow {
  tenant_id: string;
  instance_id: string;
  agent_type: string;
  deployment_mode: DeploymentMode;
  /** `busy` here is what the agent reported; one that is full reads `busy` as well. */
  status: AgentStatus;
  /** The node that holds its socket; null without one. */
  mesh_id: string | null;
  /** Of its newest connection. */
  connection_epoch: number;
  max_concurrent_sessions: number;
  consecutive_failures: number;
  deregistered_at: Date | null;
  deregistration_cause: DeregistrationCause | null;
}
