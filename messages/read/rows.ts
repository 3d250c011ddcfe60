import type { A2aMessage } from '../../contracts/a2a/a2a.js';
import type { Artifact, Part } from '../../contracts/a2a/parts.js';
import type {
  AgentInputRequest,
  Executor,
  InputRequest,
  MessageState,
  MessageUsage,
} from '../../contracts/api/messages.js';
import type { SessionRef } from '../../sessions/session-deps.js';
import type { LockedSession } from '../../sessions/session-end.js';
import type { MessageRef } from '../core.js';
import type { InputStage } from '../input/ask.js';

/** The parts of a caller's trace context that are passed on. `sampled`: false if the trace is not sampled, else absent. */
export interface Propagation {
  baggage?: string;
  tracestate?: string;
  sampled?: false;
}

/** A row of `messages`. */
export interface MessageRow extends MessageRef, SessionRef {
  credential_id: string;
  user_id: string | null;
  /** The type of the agent that sent it; null for a sender that is not an agent. */
  sender_agent_type: string | null;
  client_message_id: string;
  method: 'message/send' | 'message/stream';
  parts: Part[];
  metadata: Record<string, unknown>;
  want_agent_type: string | null;
  /** The caller's trace that the message continues; null: the message began its own (`traceIdOf`). */
  trace_id: string | null;
  parent_span_id: string | null;
  propagation: Propagation | null;
  deadline_ms: number;
  created_at: Date;
  state: MessageState;
  instance_id: string | null;
  agent_type: string | null;
  turns: A2aMessage[];
  artifacts: Artifact[];
  status_message: A2aMessage | null;
  usage: MessageUsage | null;
  error_code: string | null;
  error_message: string | null;
  updated_at: Date;
  started_at: Date | null;
  completed_at: Date | null;
  /** The message that this one repeats. */
  retry_of: string | null;
  /** Of a repeat: the credential that sent the message first. */
  first_credential_id: string | null;
  /** The newest message that repeats this one. */
  retried_as: string | null;
}

/** A row of `running_messages`: where a message stands that has not ended. */
export interface RunningRow
  extends MessageRef,
    SessionRef,
    Pick<MessageRow, 'state' | 'want_agent_type' | 'instance_id' | 'agent_type'> {
  want_instance_id: string | null;
  want_skill_id: string | null;
  current_dispatch_id: string | null;
  /** How often a dispatch of the message could not be opened because of an error. */
  failed_openings: number;
  holds_slot: boolean;
  resolution: Resolution | null;
  /** Null where nothing is held. */
  held_output: HeldOutput | null;
  unrouted_since: Date | null;
  /** When its workflow last looked; null: it has none. */
  supervised_at: Date | null;
  /** Until when it may be dispatched again, after the loss of an agent whose skill is idempotent. */
  repeat_until: Date | null;
  /** Its session's messages are dispatched one after the other. */
  ordered: boolean;
  created_at: Date;
}

/** An agent's answer, or its question, that a guard wants a human to approve before anybody gets it. Its usage is counted already. */
export interface HeldOutput {
  state: 'completed' | 'input-required';
  artifacts: Artifact[];
  status_message?: A2aMessage;
  input_request?: AgentInputRequest;
}

/** The human's answer in the form of `params.metadata.resolution` of the next dispatch. */
export interface Resolution {
  request_id: string;
  resolution: string;
  data?: Record<string, unknown>;
  comment?: string;
  /** Of a tool call, where the approver edited them. */
  arguments?: Record<string, unknown>;
}

/** An answer in the list `params.metadata.resolutions`: with the question that it answers. */
export type ListedResolution = Resolution & Pick<InputRequest, 'source' | 'kind' | 'title'>;

/** A row of the view `request_details`: a request to a human, about a message or a plan, and what was decided about it so far. */
export interface AskedRequest
  extends SessionRef,
    Pick<InputRequest, 'request_id' | 'kind' | 'source' | 'title' | 'prompt' | 'quorum' | 'approvals'> {
  stage: InputStage;
  schema: Record<string, unknown> | null;
  fields: NonNullable<AgentInputRequest['fields']> | null;
  tool: string | null;
  arguments: Record<string, unknown> | null;
  /** Of a tool call: the agent that it names; empty where it names none. */
  target?: InputRequest['target'] | null;
  /** Of a tool call. */
  executor: Executor | null;
  policy_id: string | null;
  guard: string | null;
  digest: string;
  approvers: string[];
  allow_self: boolean;
  requested_at: Date;
  expires_at: Date;
  /** When a human is reminded; null: there is no further reminder. */
  remind_at: Date | null;
}

/** A request about a message. */
export type InputRequestRow = AskedRequest & MessageRef;

/** The columns of a session that routing needs. */
export type SessionBinding = Pick<LockedSession, 'explicit' | 'reserves' | 'instance_id' | 'agent_type'>;

/** A row of the view `dispatch_details` that is open or sent: a dispatch with its message, session and agent. */
export interface DispatchDetails
  extends MessageRef,
    SessionRef,
    Pick<
      MessageRow,
      | 'method'
      | 'parts'
      | 'metadata'
      | 'client_message_id'
      | 'user_id'
      | 'propagation'
      | 'deadline_ms'
      | 'artifacts'
      | 'usage'
    >,
    Pick<RunningRow, 'resolution'> {
  trace_id: string;
  /** Every answer of the message, the oldest first; null where the dispatch carries none. */
  resolutions: ListedResolution[] | null;
  dispatch_id: string;
  instance_id: string;
  agent_type: string;
  deployment_mode: 'hosted' | 'connected';
  mesh_id: string;
  epoch: number;
  attempt: number;
  skill_id: string | null;
  sent_at: Date | null;
  deadline_at: Date | null;
  /** When the row was read, by the database's clock. */
  read_at: Date;
  /** The A2A server's own ids, if the agent is one and has asked a question before. */
  remote_task_id: string | null;
  remote_context_id: string | null;
  public_url: string | null;
  agent_card: Record<string, unknown> | null;
  /** Sealed. */
  dispatch_auth: Buffer | null;
}
