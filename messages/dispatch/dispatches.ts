import type { AgentWithRoom } from '../../agents/agent-row.js';
import type { A2aMessage } from '../../contracts/a2a.js';
import type { DispatchPayload } from '../../contracts/frames.js';
import type { AgentInputRequest, Usage } from '../../contracts/messages.js';
import type { Artifact } from '../../contracts/parts.js';
import type { MessageRow } from '../read/rows.js';
import type { DispatchRef } from './dispatch-ref.js';
import type { MessageEnd } from './transactions.js';

/** What earlier dispatches of a message brought; nothing changes it while one is open. */
export type Produced = Pick<MessageRow, 'artifacts' | 'usage'>;

/** A dispatch that may go out now. `payload.deadline_ms` is the time left when this was read. */
export interface OpenDispatch extends DispatchRef {
  session_id: string;
  instance_id: string;
  agent_type: string;
  deployment_mode: 'hosted' | 'connected';
  /** Where a hosted agent is; null for a connected one. */
  public_url: string | null;
  agent_card: Record<string, unknown>;
  epoch: number;
  attempt: number;
  /** The node that sent it, or that is to; null for a hosted agent's that no node has taken. */
  mesh_id: string | null;
  sent_at: Date | null;
  /** The mesh's clock decides; null until sent. */
  deadline_at: Date | null;
  /** The agent's own ids when it is an A2A server that was asked before. */
  remote_task_id: string | null;
  remote_context_id: string | null;
  produced: Produced;
  payload: DispatchPayload;
}

/** What an agent answered, in one form for connected and hosted agents. */
export interface AgentResult {
  state: 'completed' | 'input-required' | 'failed';
  artifacts: Artifact[];
  status_message?: A2aMessage;
  usage?: Usage;
  input_request?: AgentInputRequest;
  error?: { code: string; message: string };
  remote_task_id?: string;
  remote_context_id?: string;
}

/** Error code when the outcome of a dispatch is unknown. */
export type LossCode = 'AGENT_DISCONNECTED' | 'DEADLINE_EXCEEDED';

/** How the closing of a dispatch went: `accepted` is false when something else had closed it, or the epoch moved on. */
export interface Closed {
  accepted: boolean;
  /** What that changed in the message's row, when the message ended with it. */
  end: MessageEnd | null;
}

/** The transactions of a dispatch's life. Each is idempotent and publishes `changed` on the bus after its commit. */
export interface Dispatches {
  /** The dispatch while it is open (sent or not); null otherwise. */
  find(ref: DispatchRef): Promise<OpenDispatch | null>;
  /**
   * Marks it sent before the first byte goes out, in one transaction with `dispatch.sent` and the message's `working`.
   * @returns what to send, or null when it is no longer to be sent (closed, sent already, or the epoch moved on)
   */
  markSent(ref: DispatchRef, owner: { mesh_id: string; epoch: number }): Promise<OpenDispatch | null>;
  /** Takes the agent's answer: dispatch, message, request to a human and events in one transaction. */
  accept(open: DispatchRef & { produced: Produced }, epoch: number, outcome: AgentResult): Promise<Closed>;
  /** Ends a dispatch that was sent as failed, and its message with it. */
  fail(ref: DispatchRef, error: { code: string; message: string }, epoch?: number): Promise<Closed>;
  /**
   * Takes back a dispatch that was never sent, so that the message is routed again; `nothingSent`: it was marked as sent, but its
   * owner knows that no byte went out (the connection to a hosted agent never opened).
   * @returns whether it was taken back
   */
  release(ref: DispatchRef, reason: string, options?: { nothingSent?: boolean }): Promise<boolean>;
  /**
   * Ends a dispatch whose owner is gone: never sent, it is taken back; sent, it fails with the given code.
   * `unlessOwnerLives`: nothing happens while the node that sent it renews itself, because it still has it.
   * @returns what that changed in the message's row, when the message ended with it
   */
  failAsLost(ref: DispatchRef, code: LossCode, options?: { unlessOwnerLives?: boolean }): Promise<MessageEnd | null>;
  /** Which of these dispatches are no longer open, with their state (for a node's reconciliation). */
  closedAmong(refs: DispatchRef[]): Promise<{ dispatch_id: string; state: string }[]>;
  /** An agent of the tenant can take work: messages that wait for one like it are called. */
  agentJoined(tenantId: string, agent: AgentWithRoom): Promise<void>;
}
