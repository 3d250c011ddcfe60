import type { A2aMessage } from '../../contracts/a2a.js';
import type { MessageState, Usage } from '../../contracts/messages.js';
import type { Artifact, Part } from '../../contracts/parts.js';

/** A row of `messages`. */
export interface MessageRow {
  tenant_id: string;
  message_id: string;
  session_id: string;
  credential_id: string;
  /** The type of the agent that sent it; null: a credential that stands for no agent. */
  sender_agent_type: string | null;
  requested_context: string;
  client_message_id: string;
  content_hash: Buffer;
  state: MessageState;
  method: 'message/send' | 'message/stream';
  parts: Part[];
  metadata: Record<string, unknown>;
  turns: A2aMessage[];
  user_input: string;
  want_instance_id: string | null;
  want_agent_type: string | null;
  want_skill_id: string | null;
  instance_id: string | null;
  agent_type: string | null;
  artifacts: Artifact[];
  status_message: A2aMessage | null;
  assistant_output: string;
  trace_id: string;
  parent_span_id: string | null;
  baggage: string | null;
  usage: Usage | null;
  error_code: string | null;
  error_message: string | null;
  deadline_ms: number;
  attempts: number;
  current_dispatch_id: string | null;
  resolution: Resolution | null;
  remote_task_id: string | null;
  remote_context_id: string | null;
  holds_slot: boolean;
  suspends_session: boolean;
  unrouted_since: Date | null;
  created_at: Date;
  updated_at: Date;
  started_at: Date | null;
  completed_at: Date | null;
}

/** The answer of a human, as the next dispatch carries it in `params.metadata.resolution`. */
export interface Resolution {
  request_id: string;
  resolution: string;
  data?: Record<string, unknown>;
  comment?: string;
}

/** A row of `input_requests`. */
export interface InputRequestRow {
  tenant_id: string;
  request_id: string;
  message_id: string;
  session_id: string;
  kind: 'approval' | 'form' | 'confirmation';
  source: 'policy' | 'guard' | 'agent' | 'plan';
  title: string;
  prompt: string;
  schema: Record<string, unknown> | null;
  fields: { id: string; type: string; label?: string; options?: unknown[] }[] | null;
  tool: string | null;
  arguments: Record<string, unknown> | null;
  state: 'pending' | 'resolved' | 'expired' | 'withdrawn';
  requested_at: Date;
  expires_at: Date;
  ended_at: Date | null;
}

/** A row of `dispatches`. */
export interface DispatchRow {
  tenant_id: string;
  dispatch_id: string;
  message_id: string;
  session_id: string;
  instance_id: string;
  agent_type: string;
  deployment_mode: 'hosted' | 'connected';
  mesh_id: string | null;
  epoch: number;
  attempt: number;
  state: 'open' | 'completed' | 'input-required' | 'failed' | 'canceled' | 'void';
  skill_id: string | null;
  created_at: Date;
  sent_at: Date | null;
  deadline_at: Date | null;
  ended_at: Date | null;
  error_code: string | null;
}
