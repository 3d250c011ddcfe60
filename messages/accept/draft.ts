import { type MessageSendParams, SendMetadata } from '../../contracts/a2a.js';
import type { Caller } from '../../contracts/auth.js';
import { LIMITS } from '../../contracts/limits.js';
import { textOf } from '../../contracts/parts.js';
import { actsAs } from '../../contracts/permissions.js';
import { PlatformError } from '../../runtime/errors.js';
import { newId } from '../../runtime/ids.js';
import { traceFrom } from '../../runtime/trace-context.js';
import type { MessageRow } from '../read/rows.js';
import type { AcceptHook, NewMessage } from './accept-transaction.js';
import { fingerprint } from './fingerprint.js';
import type { Target } from './target-agent.js';

/** How the message came in. */
export interface AcceptContext {
  method: 'message/send' | 'message/stream';
  traceparent?: string;
  baggage?: string;
  /** Writes who is told of the task's changes, before the first of them. A repeat of a message writes nothing. */
  push?: AcceptHook;
  /** What the message's `target_agent` names; its own `instance_id` and `agent_type` go first. */
  target?: Target;
}

/** What the message says and what the call says of it, together; the call's word goes first. */
function metadataOf({ message, metadata, configuration }: MessageSendParams): SendMetadata {
  const modes = configuration?.acceptedOutputModes ?? [];
  if (!message.metadata && modes.length === 0) return metadata ?? {}; // checked with the call
  const together = {
    ...message.metadata,
    ...metadata,
    ...(modes.length > 0 && { accepted_output_modes: modes }),
  };
  const checked = SendMetadata.safeParse(together);
  if (checked.success) return checked.data;
  const issue = checked.error.issues[0];
  throw new PlatformError(
    'INVALID_PARAMS',
    `metadata.${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'does not fit'}`,
  );
}

/**
 * A message as it would be put on the record, its identifiers new.
 * @throws PlatformError INVALID_PARAMS when its metadata does not say properly where it is to go
 */
export function draftOf(caller: Caller, params: MessageSendParams, context: AcceptContext): NewMessage {
  const { message } = params;
  const metadata = metadataOf(params);
  const routing = context.target ? { ...context.target, ...metadata } : metadata;
  const { instance_id, agent_type, skill_id, deadline_ms } = routing;
  const { trace_id, parent_span_id } = traceFrom(context.traceparent);
  const requested = message.contextId ?? '';
  return {
    tenant_id: caller.tenant_id,
    message_id: newId('msg'),
    session_id: requested || newId('ses'),
    credential_id: caller.credential_id,
    sender_agent_type: actsAs(caller),
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
    trace_id,
    parent_span_id,
    baggage: context.baggage ?? null,
    deadline_ms: deadline_ms ?? LIMITS.deadlineMsDefault,
    created_by: caller.sub,
    idle_timeout_seconds: LIMITS.idleTimeoutSecondsDefault,
    ...(context.push && { push: context.push }),
  };
}

/** The row of a message that T1 has just written, without reading it. */
export function writtenRow(draft: NewMessage, at: Date, dispatch: DispatchedTo): MessageRow {
  // Written out: copying so many members costs ten times as much.
  return {
    tenant_id: draft.tenant_id,
    message_id: draft.message_id,
    session_id: dispatch.session_id,
    credential_id: draft.credential_id,
    sender_agent_type: draft.sender_agent_type,
    requested_context: draft.requested_context,
    client_message_id: draft.client_message_id,
    content_hash: draft.content_hash,
    method: draft.method,
    parts: draft.parts,
    metadata: draft.metadata,
    user_input: draft.user_input,
    want_instance_id: draft.want_instance_id,
    want_agent_type: draft.want_agent_type,
    want_skill_id: draft.want_skill_id,
    instance_id: dispatch.instance_id,
    agent_type: dispatch.agent_type,
    current_dispatch_id: dispatch.current_dispatch_id,
    trace_id: draft.trace_id,
    parent_span_id: draft.parent_span_id,
    baggage: draft.baggage,
    deadline_ms: draft.deadline_ms,
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
