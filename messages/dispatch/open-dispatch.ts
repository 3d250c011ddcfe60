import { SendMetadata } from '../../contracts/a2a/a2a.js';
import type { Artifact } from '../../contracts/a2a/parts.js';
import type { MessageState, MessageUsage, Usage } from '../../contracts/api/messages.js';
import type { DispatchPayload } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import { traceIdOf, traceparentOf, uuidOf } from '../../runtime/ids.js';
import type { AcceptRow, DispatchedRow, NewMessage } from '../accept/accept-transaction.js';
import type { DispatchDetails, MessageRow } from '../read/rows.js';
import { userMessage } from '../read/task.js';
import type { AnswerOrFailure, OpenDispatch, Produced } from './dispatches.js';

const Args = SendMetadata.shape.args.unwrap();

type OfModel = NonNullable<MessageUsage['by_model']>[number];

function payloadOf(details: DispatchDetails): DispatchPayload {
  const uuid = uuidOf(details.dispatch_id);
  const { deadline_at, read_at } = details;
  const leftMs = deadline_at ? deadline_at.getTime() - read_at.getTime() : details.deadline_ms;
  // A caller may have put `resolution` or `resolutions` into its metadata: these are no human's answers, and are dropped.
  const { accepted_output_modes: acceptedOutputModes, resolution: _, resolutions: __, ...sent } = details.metadata;
  const args = Args.safeParse(sent.args);
  const { resolution, resolutions } = details;
  const { tracestate, baggage } = details.propagation ?? {};
  const metadata = { ...sent, ...(resolution && { resolution }), ...(resolutions && { resolutions }) };
  return {
    jsonrpc: '2.0',
    id: uuid,
    method: details.method,
    params: {
      message: { ...userMessage(details), messageId: details.message_id },
      ...(Array.isArray(acceptedOutputModes) && { configuration: { acceptedOutputModes } }),
      ...(Object.keys(metadata).length > 0 && { metadata }),
    },
    dispatch_id: details.dispatch_id,
    ...(details.skill_id !== null && { skill_id: details.skill_id }),
    ...(args.success && { args: args.data }),
    deadline_ms: Math.min(LIMITS.deadlineMsMax, Math.max(1, leftMs)),
    attempt: details.attempt,
    idempotency_key: attemptKey(details),
    session_context: {
      session_id: details.session_id,
      tenant_id: details.tenant_id,
      ...(details.user_id !== null && { user_id: details.user_id }),
      message_id: details.message_id,
      client_message_id: details.client_message_id,
      propagation_headers: {
        traceparent: traceparentOf(details.trace_id, uuid, details.propagation?.sampled),
        ...(tracestate !== undefined && { tracestate }),
        ...(baggage !== undefined && { baggage }),
      },
    },
  };
}

/** The idempotency key: the same for all dispatches of a message until a human answers, because with an answer the agent does something else. */
function attemptKey({ message_id, resolutions }: DispatchDetails): string {
  return Array.isArray(resolutions) ? `${message_id}:${resolutions.length}` : message_id;
}

/** An open dispatch from its row. */
export function openDispatchFrom(details: DispatchDetails): OpenDispatch {
  return {
    tenant_id: details.tenant_id,
    message_id: details.message_id,
    dispatch_id: details.dispatch_id,
    session_id: details.session_id,
    instance_id: details.instance_id,
    agent_type: details.agent_type,
    skill_id: details.skill_id,
    deployment_mode: details.deployment_mode,
    public_url: details.public_url,
    agent_card: details.agent_card ?? {},
    dispatch_auth: details.dispatch_auth,
    epoch: details.epoch,
    attempt: details.attempt,
    mesh_id: details.mesh_id,
    sent_at: details.sent_at,
    deadline_at: details.deadline_at,
    remote_task_id: details.remote_task_id,
    remote_context_id: details.remote_context_id,
    produced: { artifacts: details.artifacts, usage: details.usage },
    is_first: details.attempt === 1 && !details.resolutions,
    payload: payloadOf(details),
  };
}

/** The bytes of a column that JSON carries in hexadecimal. */
export const bytesOf = (hex: string | null): Buffer | null => (hex === null ? null : Buffer.from(hex, 'hex'));

/** The row of a message that the accept transaction has just dispatched or queued, without a query. */
export function acceptedRow(draft: NewMessage, accepted: AcceptRow): MessageRow {
  const { session_id } = accepted;
  const at = new Date(accepted.accepted_at);
  const state = accepted.state as MessageState; // it was written
  const isSent = state === 'working';
  // `...draft` comes late, because an object literal that begins with a large spread is slow.
  return {
    state,
    turns: [],
    artifacts: [],
    status_message: null,
    usage: null,
    error_code: null,
    error_message: null,
    created_at: at,
    updated_at: at,
    started_at: isSent ? at : null,
    completed_at: null,
    retry_of: null,
    first_credential_id: null,
    retried_as: null,
    ...draft,
    session_id,
    user_id: accepted.user_id,
    instance_id: isSent ? accepted.instance_id : null,
    agent_type: isSent ? accepted.agent_type : null,
  };
}

/** The dispatch that the accept transaction has just written as sent, without a query. */
export function dispatchedNow(draft: NewMessage, accepted: DispatchedRow, dispatch_id: string): OpenDispatch {
  const at = new Date(accepted.accepted_at);
  const details: DispatchDetails = {
    attempt: 1,
    epoch: accepted.connection_epoch,
    skill_id: draft.want_skill_id,
    sent_at: at,
    deadline_at: new Date(at.getTime() + draft.deadline_ms),
    read_at: at,
    artifacts: [],
    usage: null,
    resolution: null,
    resolutions: null,
    remote_task_id: null,
    remote_context_id: null,
    ...draft,
    ...accepted,
    dispatch_auth: bytesOf(accepted.dispatch_auth),
    dispatch_id,
    trace_id: traceIdOf(draft),
  };
  return openDispatchFrom(details);
}

/** Adds tokens. The sum stays a safe integer, whatever agents report. */
function addTokens(before: number, more: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, before + more);
}

function sumOf(before: OfModel, more: OfModel) {
  const reportsCost = before.cost_usd !== undefined || more.cost_usd !== undefined;
  return {
    input_tokens: addTokens(before.input_tokens, more.input_tokens),
    output_tokens: addTokens(before.output_tokens, more.output_tokens),
    ...(reportsCost && { cost_usd: Math.min(Number.MAX_VALUE, (before.cost_usd ?? 0) + (more.cost_usd ?? 0)) }),
  };
}

/** The usage of each model after one more turn. Beyond `messageModelsMax`, further models count as the last one in the list. */
function addModel(before: readonly OfModel[], more: OfModel): OfModel[] {
  const found = before.findIndex(({ model }) => model === more.model);
  const place = found < 0 && before.length >= LIMITS.messageModelsMax ? before.length - 1 : found;
  const kept = before[place];
  if (!kept) return [...before, more];
  return before.with(place, { ...sumOf(kept, more), ...(kept.model !== undefined && { model: kept.model }) });
}

/**
 * The usage of a message after one more turn: the sums, and the model of the newest turn. A turn that names no model counts as that of the turn
 * before. Once there are several models the usage says what each used, because each has a price of its own.
 */
export function addUsage(before: MessageUsage | null, reported: Usage | undefined): MessageUsage | null {
  if (!before || !reported) return reported ?? before;
  const model = reported.model ?? before.model;
  const more: OfModel = { ...reported, ...(model !== undefined && { model }) };
  const { by_model, ...all } = before;
  const models = by_model || model !== before.model ? addModel(by_model ?? [all], more) : null;
  return { ...sumOf(all, more), ...(model !== undefined && { model }), ...(models && { by_model: models }) };
}

/** The artifacts of earlier dispatches and of this one, which replaces those of the same id. */
function mergeArtifacts(before: Artifact[], more: Artifact[]): Artifact[] {
  const replaced = new Set(more.map((artifact) => artifact.artifactId));
  return [...before.filter((artifact) => !replaced.has(artifact.artifactId)), ...more];
}

/** The output of a message after a result: that of earlier dispatches and its own. Null when the result has no output. */
export function outputAfter(before: Produced, { artifacts, usage, status_message }: AnswerOrFailure) {
  if (!artifacts) return null;
  return {
    artifacts: mergeArtifacts(before.artifacts, artifacts),
    usage: addUsage(before.usage, usage),
    status_message: status_message ?? null,
  };
}
