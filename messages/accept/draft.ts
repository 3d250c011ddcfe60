import { type MessageSendParams, SendMetadata } from '../../contracts/a2a/a2a.js';
import type { Caller } from '../../contracts/api/auth.js';
import { LIMITS } from '../../contracts/limits.js';
import { actsAs, isLimited } from '../../contracts/permissions.js';
import type { Db } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';
import { newId, type TraceContext, traceFrom, uuidOf } from '../../runtime/ids.js';
import { digestOf } from '../digest.js';
import type { NewInputRequest } from '../input/ask.js';
import type { Propagation } from '../read/rows.js';
import type { AcceptHook, NewMessage } from './accept-transaction.js';
import { sessionNotFound } from './verdicts.js';

/** The agent that a `target_agent` names. */
export type Target = { instance_id: string } | { agent_type: string };

/** How a message came in. */
export interface AcceptContext {
  method: 'message/send' | 'message/stream';
  traceparent?: string;
  tracestate?: string;
  baggage?: string;
  /** Writes rows that belong to the message. Not called for a repeat. */
  hook?: AcceptHook;
  /** A request to a human that the message waits for before anything is sent. */
  ask?: NewInputRequest;
  /** The message's own `instance_id` and `agent_type` have precedence. */
  target?: Target;
  /** The user of the original message, if this one is a retry. */
  userId?: string;
}

/** Whether the destination has to be looked up (destination.ts): the message names a `target_agent`, or media types. */
export function needsDestination({ message, metadata, configuration }: MessageSendParams): boolean {
  const target = metadata?.target_agent ?? message.metadata?.target_agent;
  const modes = configuration?.acceptedOutputModes ?? [];
  return target !== undefined || modes.length > 0 || message.parts.some((part) => part.kind === 'file');
}

/** The metadata of the message and of the call, merged; the call has precedence. */
function metadataOf({ message, metadata, configuration }: MessageSendParams): SendMetadata {
  const modes = configuration?.acceptedOutputModes ?? [];
  if (!message.metadata && modes.length === 0) return metadata ?? {}; // already parsed with the call
  const merged = {
    ...message.metadata,
    ...metadata,
    ...(modes.length > 0 && { accepted_output_modes: modes }),
  };
  const checked = SendMetadata.safeParse(merged);
  if (checked.success) return checked.data;
  const issue = checked.error.issues[0];
  throw new PlatformError(
    'INVALID_PARAMS',
    `metadata.${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'does not fit'}`,
  );
}

/** The metadata of a message, and the agent that it names or comes in for. @throws PlatformError INVALID_PARAMS when the metadata is not valid */
function routingOf(params: MessageSendParams, { target }: Pick<AcceptContext, 'target'>) {
  const metadata = metadataOf(params);
  const { instance_id, agent_type }: SendMetadata = target ? { ...target, ...metadata } : metadata;
  return { metadata, want_instance_id: instance_id ?? null, want_agent_type: agent_type ?? null };
}

/** The agent type of an instance, and of a session. */
const INSTANCE = 'SELECT agent_type FROM agents WHERE tenant_id = $1 AND instance_id = $2';
const SESSION = 'SELECT agent_type FROM sessions WHERE tenant_id = $1 AND session_id = $2';

/** @throws PlatformError forbidden for another user; SESSION_NOT_FOUND for another session */
function inSession(caller: Caller, params: MessageSendParams): MessageSendParams {
  const { message, metadata } = params;
  const named = { ...message.metadata, ...metadata }.user_id;
  if (named !== undefined && named !== caller.user_id)
    throw new PlatformError('forbidden', 'metadata.user_id: a token with limits sends for its own user only.');
  if (caller.session_id === undefined) return params;
  const { contextId = caller.session_id } = message;
  if (contextId !== caller.session_id) throw sessionNotFound();
  return { ...params, message: { ...message, contextId } };
}

/**
 * Puts a message of a limited token within its limits: for its user, in its session, to an agent of its types. If the message names no type, it gets the
 * session's, or the only one that is allowed.
 * @throws PlatformError forbidden for another user or type; SESSION_NOT_FOUND for another session; TARGET_REQUIRED where several types are left
 */
export async function withinLimits(
  db: Db,
  caller: Caller,
  given: MessageSendParams,
  context: AcceptContext,
): Promise<{ params: MessageSendParams; context: AcceptContext }> {
  if (!isLimited(caller)) return { params: given, context };
  const params = inSession(caller, given);
  const { agent_types_allowed: types, tenant_id } = caller;
  if (types === undefined) return { params, context };
  const { want_agent_type, want_instance_id } = routingOf(params, context);
  const { contextId } = params.message;
  const typeOf = async (select: string, id: string): Promise<string | null> => {
    const [row] = await db.tenant(tenant_id, (tx) => tx.query<{ agent_type: string | null }>(select, [tenant_id, id]));
    return row?.agent_type ?? null;
  };
  const named = [want_agent_type, want_instance_id && ((await typeOf(INSTANCE, want_instance_id)) ?? '')];
  if (named.some((type) => type !== null && !types.includes(type)))
    throw new PlatformError('forbidden', `The token is limited to agents of the types ${types.join(', ')}.`);
  if (named.some((type) => type !== null)) return { params, context };
  const ofSession = contextId ? await typeOf(SESSION, contextId) : null;
  const agent_type = ofSession ?? (types.length === 1 ? types[0] : undefined);
  if (agent_type === undefined)
    throw new PlatformError('TARGET_REQUIRED', `metadata.agent_type: name one of ${types.join(', ')}.`);
  return { params, context: { ...context, target: { agent_type } } };
}

/** A row keeps half of the 64 digits of the digest. */
const CONTENT_HASH_DIGITS = 32;

/** A `tracestate` is kept only if the caller's trace is continued. */
function propagationOf(
  { parent_span_id, sampled }: TraceContext,
  { baggage, tracestate }: AcceptContext,
): Propagation | null {
  const propagation: Propagation = {
    ...(baggage !== undefined && { baggage }),
    ...(tracestate !== undefined && parent_span_id !== null && { tracestate }),
    ...(!sampled && { sampled: false }),
  };
  return Object.keys(propagation).length > 0 ? propagation : null;
}

/** A new message with fresh ids, not yet written. @throws PlatformError INVALID_PARAMS when its metadata is not valid */
export function draftOf(caller: Caller, params: MessageSendParams, context: AcceptContext): NewMessage {
  const { message } = params;
  const { metadata, ...wanted } = routingOf(params, context);
  const { skill_id, deadline_ms } = metadata;
  const message_id = newId('msg');
  const trace = traceFrom(context.traceparent, uuidOf(message_id));
  const { trace_id, parent_span_id } = trace;
  const requested = message.contextId ?? '';
  return {
    tenant_id: caller.tenant_id,
    message_id,
    session_id: requested || newId('ses'),
    credential_id: caller.credential_id,
    user_id: caller.user_id ?? metadata.user_id ?? context.userId ?? null,
    sender_agent_type: actsAs(caller),
    requested_context: requested,
    client_message_id: message.messageId,
    content_hash: digestOf({ parts: message.parts, metadata }).slice(0, CONTENT_HASH_DIGITS),
    method: context.method,
    parts: message.parts,
    metadata,
    ...wanted,
    want_skill_id: skill_id ?? null,
    trace_id: parent_span_id === null ? null : trace_id,
    parent_span_id,
    propagation: propagationOf(trace, context),
    deadline_ms: deadline_ms ?? LIMITS.deadlineMsDefault,
    created_by: caller.sub,
    idle_timeout_seconds: LIMITS.idleTimeoutSecondsDefault,
    ...(caller.user_id !== undefined && { user_from: 'token' }),
    ...(context.userId !== undefined && { user_from: 'record' }),
    ...(context.hook && { hook: context.hook }),
  };
}
