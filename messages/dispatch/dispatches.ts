import type { A2aMessage } from '../../contracts/a2a/a2a.js';
import type { Artifact } from '../../contracts/a2a/parts.js';
import type { AgentInputRequest, Usage } from '../../contracts/api/messages.js';
import type { DispatchPayload } from '../../contracts/frames.js';
import type { GuardFinding } from '../../policy/guards/guarded-content.js';
import type { DecisionEvent } from '../../policy/verdict.js';
import type { MessageRef } from '../core.js';
import type { MessageRow } from '../read/rows.js';
import type { DispatchState } from './dispatch-states.js';

/** Identifies a dispatch. */
export interface DispatchRef extends MessageRef {
  dispatch_id: string;
}

/** The output of a message's earlier dispatches. It does not change while a dispatch is open. */
export type Produced = Pick<MessageRow, 'artifacts' | 'usage'>;

/** A dispatch that is open or sent, with its payload. `payload.deadline_ms` is the time that was left when the row was read. */
export interface OpenDispatch extends DispatchRef {
  session_id: string;
  instance_id: string;
  agent_type: string;
  /** The skill that the message is for. */
  skill_id: string | null;
  deployment_mode: 'hosted' | 'connected';
  /** Address of a hosted agent; null for a connected one. */
  public_url: string | null;
  agent_card: Record<string, unknown>;
  /** The credential that the platform sends to a hosted agent, sealed; null: the platform's own token. */
  dispatch_auth: Buffer | null;
  epoch: number;
  attempt: number;
  /** The node that sent it or will send it. Only completed dispatches have none. */
  mesh_id: string;
  sent_at: Date | null;
  /** Null while a tool call of it waits for a human. The clock of the sending node decides. */
  deadline_at: Date | null;
  /** The A2A server's own ids, if the agent is one and has asked a question before. */
  remote_task_id: string | null;
  remote_context_id: string | null;
  produced: Produced;
  /** No agent has had the message before, and nobody was asked about it. */
  is_first: boolean;
  payload: DispatchPayload;
  /** Where the next take for its agent may begin; absent: at the oldest message. */
  queue_start?: QueueStart;
}

/** Where a take may begin in an agent's queues, because a look at all their messages was slow (db/functions/dispatches/take_messages.sql). */
export interface QueueStart {
  /** When the oldest message without a human's answer was accepted, in the database's text, which has microseconds. */
  queue_from: string;
  /** When a take of this agent last looked at all messages, on `performance.now()`. */
  lookedAtAllMs: number;
}

/** The dispatch that may be opened with the agent's next message, in the transaction that ends its last one. */
export interface NextDispatch {
  /** The node that sends it. */
  mesh_id: string;
  dispatch_id: string;
  /** Where the take begins; absent: at the oldest message. */
  queue_start?: QueueStart;
}

/** An agent's answer or failure, in one form for connected and hosted agents. */
export interface AnswerOrFailure {
  state: 'completed' | 'input-required' | 'failed';
  /** Absent when the agent gave no answer: the message then keeps its output. */
  artifacts?: Artifact[];
  status_message?: A2aMessage;
  usage?: Usage;
  input_request?: AgentInputRequest;
  /** The plan that the agent proposes, as it sent it. */
  plan_proposal?: unknown;
  error?: { code: string; message: string };
  /**
   * There will be no answer, and the agent may have acted: its connection broke, or it says that it stops unfinished. The message fails with `error`, unless it
   * may be done again (`detach_dispatch`). Absent for other failures.
   */
  is_loss?: true;
  remote_task_id?: string;
  remote_context_id?: string;
  /** Absent when the result says nothing about the agent's health. */
  health?: 'well' | 'failing';
  /** What guards decided about it: the events are written with the end. */
  decisions?: DecisionEvent[];
  /** The guard that wants a human to approve the answer before it is delivered. Never set for a failure. */
  held?: GuardFinding;
}

/** The result of a dispatch, as its transport reports it. */
export type AgentResult =
  | AnswerOrFailure
  /** The agent may have acted, and there will be no answer. The record is asked whose the dispatch is by now; if it is still ours, it fails with AGENT_DISCONNECTED (`failAsLost`). */
  | { state: 'lost' }
  /** Nothing went out, or the agent says that it has begun nothing. */
  | { state: 'not_sent'; reason: string; health?: 'failing' /** For the log. */; cause?: string };

/** The end of a dispatch on the record. */
export interface DispatchEnd {
  /**
   * `not_sent`: nothing went out and nothing will, so the message is queued again. `closed`: something other than this result ended
   * the dispatch. `unrecorded`: it was sent, and its end could not be written.
   */
  state: 'completed' | 'failed' | 'input_required' | 'lost' | 'not_sent' | 'closed' | 'unrecorded';
  /** The changed fields of the message's row; null when the message did not end with the dispatch. */
  message:
    | (Pick<MessageRow, 'state' | 'error_code' | 'error_message' | 'updated_at' | 'completed_at'> &
        Partial<Pick<MessageRow, 'artifacts' | 'usage' | 'status_message'>>)
    | null;
  /** Why nothing was sent. */
  reason?: string;
  /** The agent's next dispatch, already on the record as sent; `again`: the taker has to try in a transaction of its own. */
  next?: OpenDispatch | 'again';
}

/** A message whose dispatch this process has sent as it accepted it. */
export interface LiveMessage {
  /** The row that the accept transaction wrote. */
  row: MessageRow;
  dispatch_id: string;
  /** The end of the dispatch. If its `message` is null, the message's row must be read. Never rejects. */
  ended: Promise<DispatchEnd>;
}

/** When a dispatch counts as lost. Without conditions each sent dispatch does. */
export interface LossConditions {
  /** The node that is gone: a dispatch that belongs to another node by now is not lost. */
  mesh_id?: string;
  /** It is not lost while its agent may still continue it at another node. */
  unlessOffered?: boolean;
}

/** The members of a dispatch that its end needs. */
export type EndingDispatch = DispatchRef &
  Pick<OpenDispatch, 'session_id' | 'produced'> &
  Partial<Pick<OpenDispatch, 'is_first'>>;

/** The transactions of a dispatch. Each is idempotent. Those that change the message's state publish `changed` after the commit. */
export interface Dispatches {
  /** The dispatch while it is open or sent; null otherwise. */
  find(ref: Pick<DispatchRef, 'tenant_id' | 'dispatch_id'>): Promise<OpenDispatch | null>;
  /**
   * Records the result of a sent dispatch: dispatch, message, input request and events in one transaction.
   * @param epoch of the connection that brought the result; null for any
   * @param next the dispatch of the agent's next message, which may be opened in the same transaction
   * @returns null when nothing was written: the dispatch has ended, or belongs to another epoch
   */
  end(
    dispatch: EndingDispatch,
    result: AnswerOrFailure,
    epoch: number | null,
    next?: NextDispatch,
  ): Promise<DispatchEnd | null>;
  /**
   * Releases a dispatch of which nothing was sent, and has its message queued again.
   * @param options.nothingSent releases it also when it is marked as sent: its owner knows that nothing went out
   * @param options.restsFirst the caller takes the message's next step later; if the process dies, a sweeper does
   */
  release(ref: DispatchRef, reason: string, options?: { nothingSent?: boolean; restsFirst?: boolean }): Promise<void>;
  /**
   * Ends a dispatch whose owner is gone. If it was sent, its message fails with AGENT_DISCONNECTED; else it is released. A message whose skill is idempotent,
   * or whose tool call waits for a human, does not fail: it gets another dispatch.
   * @returns null when it was not ended as lost
   */
  failAsLost(ref: DispatchRef, conditions?: LossConditions): Promise<DispatchEnd | null>;
  /**
   * Milliseconds until the deadline of a sent dispatch, by the record; 0 or less when it has passed or the dispatch has ended.
   * `stands_still`: a tool call of it waits for a human.
   */
  deadlineLeft(ref: DispatchRef): Promise<number | 'stands_still'>;
  /** Those of these dispatches that are open or sent. */
  openAmong(ids: Pick<DispatchRef, 'tenant_id' | 'dispatch_id'>[]): Promise<{ dispatch_id: string }[]>;
  /** Those of these dispatches that have ended. */
  closedAmong(
    ids: Pick<DispatchRef, 'tenant_id' | 'dispatch_id'>[],
  ): Promise<{ dispatch_id: string; state: DispatchState }[]>;
}
