import { SendMetadata } from '../../contracts/a2a.js';
import type { DispatchPayload } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import { uuidOf } from '../../runtime/ids.js';
import { traceparentOf } from '../../runtime/trace-context.js';
import type { DispatchDetails } from '../read/rows.js';
import { userMessage } from '../read/task.js';
import type { OpenDispatch } from './dispatches.js';

const Args = SendMetadata.shape.args.unwrap();

function payloadOf(details: DispatchDetails, now: Date): DispatchPayload {
  const uuid = uuidOf(details.dispatch_id);
  const leftMs = details.deadline_at ? details.deadline_at.getTime() - now.getTime() : details.deadline_ms;
  const { accepted_output_modes: acceptedOutputModes, ...sent } = details.metadata;
  const args = Args.safeParse(sent.args);
  const metadata = { ...sent, ...(details.resolution && { resolution: details.resolution }) };
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
    idempotency_key: details.dispatch_id,
    session_context: {
      session_id: details.session_id,
      tenant_id: details.tenant_id,
      ...(details.user_id !== null && { user_id: details.user_id }),
      message_id: details.message_id,
      client_message_id: details.client_message_id,
      propagation_headers: {
        traceparent: traceparentOf(details.trace_id, uuid),
        ...(details.baggage !== null && { baggage: details.baggage }),
      },
    },
  };
}

/** A dispatch ready to be sent. @param now on the clock of `details.deadline_at` */
export function openDispatchFrom(details: DispatchDetails, now: Date = new Date()): OpenDispatch {
  return {
    tenant_id: details.tenant_id,
    message_id: details.message_id,
    dispatch_id: details.dispatch_id,
    session_id: details.session_id,
    instance_id: details.instance_id,
    agent_type: details.agent_type,
    deployment_mode: details.deployment_mode,
    public_url: details.public_url,
    agent_card: details.agent_card ?? {},
    epoch: details.epoch,
    attempt: details.attempt,
    mesh_id: details.mesh_id,
    sent_at: details.sent_at,
    deadline_at: details.deadline_at,
    remote_task_id: details.remote_task_id,
    remote_context_id: details.remote_context_id,
    produced: { artifacts: details.artifacts, usage: details.usage },
    payload: payloadOf(details, now),
  };
}
