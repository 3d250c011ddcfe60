import { type MessageSendParams, SendMetadata } from '../../contracts/a2a.js';
import type { Caller } from '../../contracts/auth.js';
import { LIMITS } from '../../contracts/limits.js';
import { actsAs } from '../../contracts/permissions.js';
import { PlatformError } from '../../runtime/errors.js';
import { newId } from '../../runtime/ids.js';
import { traceFrom } from '../../runtime/trace-context.js';
import type { DispatchDetails, MessageRow } from '../read/rows.js';
import type { AcceptHook, AcceptRow, NewMessage, Offer } from './accept-transaction.js';
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

/** The row of a message that the accept transaction has just dispatched, without reading it. */
export function dispatchedRow(draft: NewMessage, accepted: AcceptRow): MessageRow {
  const { session_id, instance_id, agent_type, accepted_at: at } = accepted;
  // Written out: copying so many members costs ten times as much.
  return {
    tenant_id: draft.tenant_id,
    message_id: draft.message_id,
    session_id,
    credential_id: draft.credential_id,
    sender_agent_type: draft.sender_agent_type,
    client_message_id: draft.client_message_id,
    method: draft.method,
    parts: draft.parts,
    metadata: draft.metadata,
    want_agent_type: draft.want_agent_type,
    trace_id: draft.trace_id,
    parent_span_id: draft.parent_span_id,
    baggage: draft.baggage,
    deadline_ms: draft.deadline_ms,
    created_at: at,
    state: 'working',
    instance_id,
    agent_type,
    turns: [],
    artifacts: [],
    status_message: null,
    usage: null,
    error_code: null,
    error_message: null,
    updated_at: at,
    started_at: at,
    completed_at: null,
  };
}

/** The same for its dispatch, which the accept transaction wrote as sent by this node. */
export function dispatchedDetails(
  draft: NewMessage,
  accepted: AcceptRow,
  { dispatch_id, mesh_id }: Offer,
): DispatchDetails {
  const { session_id, accepted_at: at } = accepted;
  return {
    tenant_id: draft.tenant_id,
    dispatch_id,
    message_id: draft.message_id,
    session_id,
    instance_id: accepted.instance_id,
    agent_type: accepted.agent_type,
    deployment_mode: accepted.deployment_mode,
    mesh_id,
    epoch: accepted.connection_epoch,
    attempt: 1,
    skill_id: draft.want_skill_id,
    sent_at: at,
    deadline_at: new Date(at.getTime() + draft.deadline_ms),
    method: draft.method,
    parts: draft.parts,
    metadata: draft.metadata,
    client_message_id: draft.client_message_id,
    trace_id: draft.trace_id,
    baggage: draft.baggage,
    deadline_ms: draft.deadline_ms,
    artifacts: [],
    usage: null,
    resolution: null,
    remote_task_id: null,
    remote_context_id: null,
    user_id: accepted.user_id,
    public_url: accepted.public_url,
    agent_card: accepted.agent_card,
  };
}
