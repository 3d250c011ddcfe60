import { SendMetadata } from '../../contracts/a2a.js';
import type { DispatchPayload } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import { uuidOf } from '../../runtime/ids.js';
import { traceparentOf } from '../../runtime/trace-context.js';
import type { DispatchRow, MessageRow } from '../read/rows.js';
import { userMessage } from '../read/task.js';
import type { OpenDispatch } from './dispatches.js';

/** What the agent and session rows add to a dispatch. */
export interface DispatchContext {
  user_id: string | null;
  public_url: string | null;
  agent_card: Record<string, unknown>;
}

/** Rows from before `args` had a meaning may have anything there. */
const Args = SendMetadata.shape.args.unwrap();

function payloadOf(message: MessageRow, dispatch: DispatchRow, around: DispatchContext, now: Date): DispatchPayload {
  const uuid = uuidOf(dispatch.dispatch_id);
  const left = dispatch.deadline_at ? dispatch.deadline_at.getTime() - now.getTime() : message.deadline_ms;
  const { accepted_output_modes: acceptedOutputModes, ...said } = message.metadata;
  const args = Args.safeParse(said.args);
  const metadata = { ...said, ...(message.resolution && { resolution: message.resolution }) };
  return {
    jsonrpc: '2.0',
    id: uuid,
    method: message.method,
    params: {
      message: { ...userMessage(message), messageId: message.message_id },
      ...(Array.isArray(acceptedOutputModes) && { configuration: { acceptedOutputModes } }),
      ...(Object.keys(metadata).length > 0 && { metadata }),
    },
    dispatch_id: dispatch.dispatch_id,
    ...(dispatch.skill_id !== null && { skill_id: dispatch.skill_id }),
    ...(args.success && { args: args.data }),
    deadline_ms: Math.min(LIMITS.deadlineMsMax, Math.max(1, left)),
    attempt: dispatch.attempt,
    idempotency_key: dispatch.dispatch_id,
    session_context: {
      session_id: message.session_id,
      tenant_id: message.tenant_id,
      ...(around.user_id !== null && { user_id: around.user_id }),
      message_id: message.message_id,
      client_message_id: message.client_message_id,
      propagation_headers: {
        traceparent: traceparentOf(message.trace_id, uuid),
        ...(message.baggage !== null && { baggage: message.baggage }),
      },
    },
  };
}

/** A dispatch ready to be sent, from its rows. */
export function openDispatchFrom(
  message: MessageRow,
  dispatch: DispatchRow,
  around: DispatchContext,
  now: Date = new Date(),
): OpenDispatch {
  return {
    tenant_id: dispatch.tenant_id,
    message_id: dispatch.message_id,
    dispatch_id: dispatch.dispatch_id,
    session_id: dispatch.session_id,
    instance_id: dispatch.instance_id,
    agent_type: dispatch.agent_type,
    deployment_mode: dispatch.deployment_mode,
    public_url: around.public_url,
    agent_card: around.agent_card,
    epoch: dispatch.epoch,
    attempt: dispatch.attempt,
    mesh_id: dispatch.mesh_id,
    sent_at: dispatch.sent_at,
    deadline_at: dispatch.deadline_at,
    remote_task_id: message.remote_task_id,
    remote_context_id: message.remote_context_id,
    produced: { artifacts: message.artifacts, usage: message.usage },
    payload: payloadOf(message, dispatch, around, now),
  };
}
