import type { A2aMessage } from '../../contracts/a2a/a2a.js';
import type { Part } from '../../contracts/a2a/parts.js';
import { textOf } from '../../contracts/a2a/text.js';
import { ToolResult } from '../../contracts/api/tools.js';
import type { Db } from '../../db/pool.js';
import type { AgentResult, AnswerOrFailure } from '../../messages/dispatch/dispatches.js';
import { uuidOf } from '../../runtime/ids.js';
import type { Logger } from '../../runtime/logger.js';
import { type Deliver, hostedCallId, type RoutedCall } from '../../tools/tool-link.js';
import { boundedResult, failureOf, type Outcome, refusal, unsent } from '../../tools/tool-result.js';
import { findHosted, type HostedTarget } from '../../tools/tool-targets.js';
import { awaitResult } from './await-result.js';
import { HostedCall, type HostedClient } from './call.js';
import { HostedProgress } from './progress.js';
import type { HostedRequest } from './request.js';

export interface HostedToolsOptions extends HostedClient {
  db: Db;
  log: Logger;
  /** This node. Call ids that hosted agents see contain it, so that their nested calls are forwarded to this node. */
  meshId: string;
}

/**
 * Sends tool calls to hosted agents in a form that every A2A server understands: a message with one data part `{tool, arguments}` and the
 * call in its metadata (`tool_call`), whose `dispatch_id` is the call's id. The result is a data part of the answer, else its text.
 */
export function createHostedTools(options: HostedToolsOptions): Deliver {
  const { db, log, meshId } = options;
  return async (routed, signal) => {
    const { tenant_id, call_id, target } = routed;
    const agent = await db.tenant(tenant_id, (tx) => findHosted(tx, tenant_id, target.instance_id));
    if (!agent) return unsent('TARGET_UNAVAILABLE', 'The agent is not registered any more.');
    const call = new HostedCall(asDispatch(routed, agent, hostedCallId(call_id, meshId)), options);
    const progress = new HostedProgress(uuidOf(call_id), () => undefined);
    const token = await call.token();
    if (signal.aborted) return unsent('CANCELED', 'The call was withdrawn.');
    try {
      return outcomeOf(await awaitResult(token, { call, progress, signal }));
    } catch (error) {
      if (!signal.aborted) throw error;
      void call.cancel(progress.taskId, log);
      return { sent: true, result: refusal('CANCELED', 'The call was withdrawn.') };
    }
  };
}

function outcomeOf(result: AgentResult): Outcome {
  if (result.state === 'not_sent') return unsent('TARGET_UNAVAILABLE', 'The agent could not be reached.');
  if (result.state === 'lost') return { sent: true, result: refusal('AGENT_DISCONNECTED', 'The agent was lost.') };
  return { sent: true, result: boundedResult(toolResultOf(result)) };
}

/** The tool result in an A2A answer: its one data part (a ToolResult counts as it is), else its text, else its parts. */
function toolResultOf({ state, error, artifacts = [], status_message }: AnswerOrFailure): ToolResult {
  if (state === 'failed') {
    const { code, message } = error ?? { code: 'HANDLER_ERROR', message: 'The agent reported a failure.' };
    return failureOf({ code, message, retryable: false });
  }
  if (state === 'input-required')
    return refusal('HANDLER_ERROR', 'The agent asks for input, which a tool call cannot give.');
  const produced = artifacts.flatMap((artifact) => artifact.parts);
  const parts: Part[] = produced.length > 0 ? produced : (status_message?.parts ?? []);
  const data = parts.flatMap((part) => (part.kind === 'data' ? [part.data] : []));
  const [first] = data;
  if (data.length === 1) return ToolResult.safeParse(first).data ?? { ok: true, result: first };
  if (data.length === 0 && parts.every((part) => part.kind === 'text')) return { ok: true, result: textOf(parts) };
  return { ok: true, result: { parts } };
}

function asDispatch(routed: RoutedCall, agent: HostedTarget, dispatch_id: string): HostedRequest {
  const { call_id, tenant_id, target, tool, arguments: given, caller, deadline_ms, idempotency_key } = routed;
  const session_id = routed.session_id ?? call_id;
  const tool_call = { tool, dispatch_id, caller, deadline_ms, idempotency_key };
  const message: A2aMessage = {
    kind: 'message',
    messageId: call_id,
    role: 'user',
    parts: [{ kind: 'data', data: { tool, arguments: given } }],
    metadata: { tool_call },
  };
  return {
    tenant_id,
    dispatch_id,
    session_id,
    instance_id: target.instance_id,
    ...agent,
    remote_task_id: null,
    remote_context_id: null,
    payload: {
      jsonrpc: '2.0',
      id: uuidOf(call_id),
      method: 'message/send',
      params: { message, metadata: { tool_call } },
      dispatch_id,
      deadline_ms,
      attempt: 1,
      idempotency_key,
      session_context: {
        session_id,
        tenant_id,
        message_id: call_id,
        client_message_id: idempotency_key,
        propagation_headers: { traceparent: routed.traceparent },
      },
    },
  };
}
