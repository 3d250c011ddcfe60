import type { AgentWithRoom } from '../../agents/agent-row.js';
import type { A2aMessage } from '../../contracts/a2a.js';
import type { DispatchPayload } from '../../contracts/frames.js';
import type { AgentInputRequest, Usage } from '../../contracts/messages.js';
import type { Artifact } from '../../contracts/parts.js';
import type { MessageRow } from '../read/rows.js';
import type { DispatchRef } from './dispatch-ref.js';

/** The output of a message's earlier dispatches. It does not change while a dispatch is open. */
export type Produced = Pick<MessageRow, 'artifacts' | 'usage'>;

/** An open dispatch with what is to be sent. `payload.deadline_ms` is the time that was left when it was read. */
export interface OpenDispatch extends DispatchRef {
  session_id: string;
  instance_id: string;
  agent_type: string;
  deployment_mode: 'hosted' | 'connected';
  /** Address of a hosted agent; null for a connected one. */
  public_url: string | null;
  agent_card: Record<string, unknown>;
  epoch: number;
  attempt: number;
  /** The node that sent it or that will; null for a hosted agent's dispatch that no node has taken. */
  mesh_id: string | null;
  sent_at: Date | null;
  /** Null until sent. The clock of the sending node decides. */
  deadline_at: Date | null;
  /** The agent's own ids when it is an A2A server that asked a question before. */
  remote_task_id: string | null;
  remote_context_id: string | null;
  produced: Produced;
  payload: DispatchPayload;
}

/** An agent's answer, or why there is none. One form for connected and hosted agents. */
export interface AnswerOrFailure {
  state: 'completed' | 'input-required' | 'failed';
  /** Absent when the agent gave no answer: the output of the message then stays as it is. */
  artifacts?: Artifact[];
  status_message?: A2aMessage;
  usage?: Usage;
  input_request?: AgentInputRequest;
  error?: { code: string; message: string };
  remote_task_id?: string;
  remote_context_id?: string;
  /** What the result says about the agent's health; absent when it says nothing. */
  health?: 'well' | 'failing';
}

/** What a transport reports about a dispatch. */
export type AgentResult =
  | AnswerOrFailure
  /** The agent may have acted, and its answer is not coming (AGENT_DISCONNECTED). */
  | { state: 'lost' }
  /** Nothing went out. */
  | { state: 'not_sent'; reason: string; health?: 'failing' /** For the log. */; cause?: string };

/** How a dispatch ended, as the record says. */
export interface DispatchEnd {
  /**
   * `not_sent`: nothing went out and nothing will, so the message can be routed again. `closed`: something other than this result closed
   * the dispatch. `unrecorded`: it was sent, and its end could not be written.
   */
  state: 'completed' | 'failed' | 'input_required' | 'lost' | 'not_sent' | 'closed' | 'unrecorded';
  /** The fields that the end changed in the message's row; null when the message did not end with it. */
  message:
    | (Pick<MessageRow, 'state' | 'error_code' | 'error_message' | 'updated_at' | 'completed_at'> &
        Partial<Pick<MessageRow, 'artifacts' | 'usage' | 'status_message'>>)
    | null;
  /** Why nothing was sent. */
  reason?: string;
}

/** Error code when the outcome of a dispatch is unknown. */
export type LossCode = 'AGENT_DISCONNECTED' | 'DEADLINE_EXCEEDED';

/** The transactions of a dispatch's life. Each is idempotent and publishes `changed` on the bus after its commit. */
export interface Dispatches {
  /** The dispatch while it is open or sent; null otherwise. */
  find(ref: DispatchRef): Promise<OpenDispatch | null>;
  /**
   * Marks it as sent before the first byte goes out, in one transaction with `dispatch.sent` and the message's `working`.
   * @returns what to send; null when it is no longer to be sent (closed, sent already, or the agent's epoch is another)
   */
  markSent(ref: DispatchRef, owner: { mesh_id: string; epoch: number }): Promise<OpenDispatch | null>;
  /**
   * Records the result of a dispatch that was sent: dispatch, message, request to a human and events in one transaction.
   * @param epoch of the connection that the result came by; null for any
   * @returns null when it was not taken: the dispatch is closed, or belongs to another epoch
   */
  end(
    dispatch: DispatchRef & Pick<OpenDispatch, 'session_id' | 'produced'>,
    result: AnswerOrFailure,
    epoch: number | null,
  ): Promise<DispatchEnd | null>;
  /**
   * Releases a dispatch that was never sent, so that its message is routed again.
   * @param options.nothingSent it is marked as sent, but its owner knows that no byte went out
   * @returns whether it was released
   */
  release(ref: DispatchRef, reason: string, options?: { nothingSent?: boolean }): Promise<boolean>;
  /**
   * Ends a dispatch whose owner is gone: one that was sent fails with the given code, one that was not is released.
   * @param options.unlessOwnerLives change nothing while the node that sent it renews itself, because that node still has it
   * @returns null when it did not fail
   */
  failAsLost(ref: DispatchRef, code: LossCode, options?: { unlessOwnerLives?: boolean }): Promise<DispatchEnd | null>;
  /** Which of these dispatches are closed, with their state (for a node's reconciliation). */
  closedAmong(refs: DispatchRef[]): Promise<{ dispatch_id: string; state: string }[]>;
  /** An agent of the tenant can take work: wakes messages that wait for one like it. */
  agentJoined(tenantId: string, agent: AgentWithRoom): Promise<void>;
}
