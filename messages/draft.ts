import { type MessageSendParams, SendMetadata } from '../contracts/a2a.js';
import type { Caller } from '../contracts/auth.js';
import { LIMITS } from '../contracts/limits.js';
import { textOf } from '../contracts/parts.js';
import { newId } from '../runtime/ids.js';
import { fingerprint } from './fingerprint.js';
import type { PreparedPush } from './push-configs.js';
import type { MessageRow } from './rows.js';
import { RpcError } from './rpc-error.js';
import type { Target } from './target-agent.js';
import { traceFrom } from './trace.js';
import type { NewMessage } from './transactions.js';

/** How the message came in. */
export interface AcceptContext {
  method: 'message/send' | 'message/stream';
  traceparent?: string;
  baggage?: string;
  /** Who is told of the task's changes, set before the first of them. A repeat of a message sets nothing. */
  push?: PreparedPush;
  /** What the message's `target_agent` names; its own `instance_id` and `agent_type` go first. */
  target?: Target;
}

/**
 * A message as it would be put on the record, its identifiers new.
 * @throws RpcError INVALID_PARAMS when its metadata does not say properly where it is to go
 */
export function draftOf(caller: Caller, params: MessageSendParams, context: AcceptContext): NewMessage {
  const { message } = params;
  const modes = params.configuration?.acceptedOutputModes;
  const metadata = {
    ...message.metadata,
    ...params.metadata,
    ...(modes && modes.length > 0 && { accepted_output_modes: modes }),
  };
  const routing = SendMetadata.safeParse(metadata);
  if (!routing.success) {
    const issue = routing.error.issues[0];
    throw new RpcError(
      'INVALID_PARAMS',
      `metadata.${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'does not fit'}`,
    );
  }
  const { instance_id, agent_type, skill_id, deadline_ms } = { ...context.target, ...routing.data };
  const requested = message.contextId ?? '';
  return {
    tenant_id: caller.tenant_id,
    message_id: newId('msg'),
    session_id: requested || newId('ses'),
    credential_id: caller.credential_id,
    requested_context: requested,
    client_message_id: message.messageId,
    content_hash: fingerprint({ parts: message.parts, metadata }),
    method: context.method,
    parts: message.parts,
    metadata,
    user_input: textOf(message.parts),
    want_instance_id: instance_id ?? null,
    want_agent_type: agent_type ?? null,
    want_skill_id: skill_id ?? null,
    ...traceFrom(context.traceparent),
    baggage: context.baggage ?? null,
    deadline_ms: deadline_ms ?? LIMITS.deadlineMsDefault,
    created_by: caller.sub,
    idle_timeout_seconds: LIMITS.idleTimeoutSecondsDefault,
    ...(context.push && { push: context.push }),
  };
}

/** The row of a message that T1 has just written, without reading it. */
export function writtenRow(draft: NewMessage, at: Date, dispatch: DispatchedTo): MessageRow {
  const { created_by: _creator, idle_timeout_seconds: _idle, push: _push, ...facts } = draft;
  return {
    ...facts,
    ...dispatch,
    state: 'working',
    turns: [],
    artifacts: [],
    status_message: null,
    assistant_output: '',
    usage: null,
    error_code: null,
    error_message: null,
    attempts: 1,
    resolution: null,
    remote_task_id: null,
    remote_context_id: null,
    holds_slot: true,
    suspends_session: false,
    unrouted_since: null,
    created_at: at,
    updated_at: at,
    started_at: at,
    completed_at: null,
  };
}

type DispatchedTo = Pick<MessageRow, 'session_id' | 'instance_id' | 'agent_type' | 'current_dispatch_id'>;
