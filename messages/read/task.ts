import type { A2aMessage, Task } from '../../contracts/a2a/a2a.js';
import type { Part } from '../../contracts/a2a/parts.js';
import { textOf } from '../../contracts/a2a/text.js';
import type { InputRequest, MessageRecord } from '../../contracts/api/messages.js';
import { asksPerson, isTerminal } from '../../contracts/message-states.js';
import { senderOf } from '../../contracts/permissions.js';
import { traceIdOf, uuidOf } from '../../runtime/ids.js';
import type { DispatchEnd, LiveMessage } from '../dispatch/dispatches.js';
import type { LocalChanges } from '../stream/local-changes.js';
import type { AskedRequest, InputRequestRow, MessageRow } from './rows.js';

const PREVIEW_CHARS = 200;
/** A call whose message was sent by this process waits this long before it subscribes to the bus. Most messages have ended by then. */
const LIVE_MS = 2_000;

/** The columns of a message that its task needs. */
export type TaskRow = Pick<
  MessageRow,
  | 'message_id'
  | 'session_id'
  | 'client_message_id'
  | 'state'
  | 'parts'
  | 'turns'
  | 'artifacts'
  | 'status_message'
  | 'agent_type'
  | 'want_agent_type'
  | 'instance_id'
  | 'trace_id'
  | 'usage'
  | 'error_code'
  | 'error_message'
  | 'updated_at'
>;

/** The columns of a message that its record needs. */
export type RecordRow = TaskRow &
  Pick<
    MessageRow,
    | 'tenant_id'
    | 'credential_id'
    | 'user_id'
    | 'sender_agent_type'
    | 'created_at'
    | 'started_at'
    | 'completed_at'
    | 'retry_of'
  >;

/** The type of the agent that a message was dispatched to; before that, the type that it asks for. */
function agentTypeOf(row: Pick<MessageRow, 'agent_type' | 'want_agent_type'>): string | null {
  return row.agent_type ?? row.want_agent_type;
}

/** A message of the agent in a task. Its id, with this `suffix`, is the same in every read. */
export function agentMessage(
  row: Pick<MessageRow, 'message_id' | 'session_id'>,
  suffix: string,
  parts: Part[],
): A2aMessage {
  return {
    kind: 'message',
    messageId: `${uuidOf(row.message_id)}:${suffix}`,
    role: 'agent',
    parts,
    taskId: row.message_id,
    contextId: row.session_id,
  };
}

/** The first message of the task, as its sender wrote it. */
export function userMessage(
  row: Pick<TaskRow, 'client_message_id' | 'parts' | 'message_id' | 'session_id'>,
): A2aMessage {
  return {
    kind: 'message',
    messageId: row.client_message_id,
    role: 'user',
    parts: row.parts,
    taskId: row.message_id,
    contextId: row.session_id,
  };
}

/** An input request in its wire form. */
export function inputRequestOf(row: AskedRequest): InputRequest {
  return {
    request_id: row.request_id,
    kind: row.kind,
    source: row.source,
    title: row.title,
    prompt: row.prompt,
    ...(row.schema && { schema: row.schema }),
    ...(row.fields && { fields: row.fields }),
    ...(row.tool !== null && { tool: row.tool }),
    ...(row.arguments && { arguments: row.arguments }),
    ...(row.target && Object.keys(row.target).length > 0 && { target: row.target }),
    ...(row.executor && { executor: row.executor }),
    digest: row.digest,
    ...(row.policy_id !== null && { policy_id: row.policy_id }),
    ...(row.guard !== null && { guard: row.guard }),
    ...(row.approvers.length > 0 && { approvers: row.approvers }),
    quorum: row.quorum,
    approvals: row.approvals,
    requested_at: row.requested_at.toISOString(),
    expires_at: row.expires_at.toISOString(),
  };
}

function statusMessage(row: TaskRow, request: InputRequestRow | null): A2aMessage | undefined {
  if (asksPerson(row.state) && request) {
    const parts = row.status_message?.parts.filter((part) => part.kind !== 'data') ?? [];
    const question: Part[] = parts.length > 0 ? parts : [{ kind: 'text', text: request.prompt || request.title }];
    return agentMessage(row, request.request_id, [
      ...question,
      { kind: 'data', data: { input_request: inputRequestOf(request) } },
    ]);
  }
  if (row.state === 'failed' && !row.status_message) {
    return agentMessage(row, 'error', [{ kind: 'text', text: row.error_message ?? 'The message failed.' }]);
  }
  return row.status_message ?? undefined;
}

/** The newest messages of a history. */
export function newest(history: A2aMessage[], length: number): A2aMessage[] {
  return history.slice(history.length - Math.min(history.length, length));
}

/**
 * The A2A 0.3 task of a message: `id` is the message_id, `contextId` the session_id.
 * @param options.historyLength at most this many messages of `history`, newest kept; all when absent
 */
export function taskOf(
  row: TaskRow,
  request: InputRequestRow | null,
  options: { historyLength?: number | undefined } = {},
): Task {
  const message = statusMessage(row, request);
  const agent_type = agentTypeOf(row);
  const history = [userMessage(row), ...row.turns];
  const kept = options.historyLength === undefined ? history : newest(history, options.historyLength);
  return {
    kind: 'task',
    id: row.message_id,
    contextId: row.session_id,
    status: { state: row.state, timestamp: row.updated_at.toISOString(), ...(message && { message }) },
    artifacts: row.artifacts,
    history: kept,
    metadata: {
      ...(agent_type !== null && { agent_type }),
      ...(row.instance_id !== null && { instance_id: row.instance_id }),
      trace_id: traceIdOf(row),
      ...(row.usage && { usage: row.usage }),
      ...(row.error_code !== null && { error: { code: row.error_code, message: row.error_message ?? '' } }),
    },
  };
}

/** How a caller waits for a task. */
export interface TaskWait {
  /** False: the task is answered as it is. */
  blocking: boolean;
  /** Until when, in milliseconds since 1970. */
  until: number;
  /** Aborts when the caller leaves or the process drains. Called only when the wait lasts. */
  signal: () => AbortSignal;
  historyLength?: number;
}

/**
 * The task of a message that this process has sent, once the message has ended; null when its row must be read: after `LIVE_MS`, or once a human is asked about
 * a tool call. Only then are the signal and the subscription of a longer wait made (messages/stream/wait-for-task.ts), because most messages end at once.
 */
export async function liveTask(
  live: LiveMessage,
  options: TaskWait,
  local: Pick<LocalChanges, 'onToolRequest'>,
): Promise<Task | null> {
  if (!options.blocking) return taskOf(live.row, null, options);
  const ended = await new Promise<DispatchEnd | null>((resolve) => {
    const stop = (end: DispatchEnd | null) => {
      clearTimeout(timer);
      wakeUp[Symbol.dispose]();
      resolve(end);
    };
    const timer = setTimeout(stop, Math.min(options.until - Date.now(), LIVE_MS), null);
    const wakeUp = local.onToolRequest(live.row.message_id, () => stop(null));
    void live.ended.then(stop);
  });
  const end = ended?.message;
  return end && isTerminal(end.state) ? taskOf({ ...live.row, ...end }, null, options) : null;
}

/** The text of the agent's answer: that of its artifacts, else that of its status message. */
export function outputText({ artifacts, status_message }: Pick<MessageRow, 'artifacts' | 'status_message'>): string {
  const texts = artifacts.map(({ parts }) => textOf(parts)).filter((text) => text !== '');
  return texts.join('\n') || textOf(status_message?.parts ?? []);
}

/** The message record of `/messages/*`. */
export function recordOf(row: RecordRow, request: InputRequestRow | null): MessageRecord {
  const times = {
    ...(row.started_at && { started_at: row.started_at.toISOString() }),
    ...(row.completed_at && {
      completed_at: row.completed_at.toISOString(),
      duration_ms: Math.max(0, row.completed_at.getTime() - row.created_at.getTime()),
    }),
  };
  const failure =
    row.error_code === null
      ? {}
      : { error: { code: row.error_code, message: row.error_message ?? '' }, error_message: row.error_message ?? '' };
  const input = textOf(row.parts);
  const output = outputText(row);
  return {
    message_id: row.message_id,
    session_id: row.session_id,
    tenant_id: row.tenant_id,
    role: row.sender_agent_type === null ? 'user' : 'agent',
    state: row.state,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
    ...times,
    user_input: input,
    assistant_output: output,
    preview: (output || input).slice(0, PREVIEW_CHARS).toWellFormed(),
    parts: row.parts,
    artifacts: row.artifacts,
    attachments: row.parts.filter((part) => part.kind === 'file'),
    instance_id: row.instance_id,
    agent_type: agentTypeOf(row),
    root_agent: row.agent_type,
    ...(row.user_id !== null && { user_id: row.user_id }),
    sent_by: senderOf(row),
    client_message_id: row.client_message_id,
    trace_id: traceIdOf(row),
    ...(row.retry_of !== null && { retry_of: row.retry_of }),
    ...(row.usage && { usage: row.usage }),
    ...failure,
    ...(request && asksPerson(row.state) && { input_request: inputRequestOf(request) }),
    task_data: taskOf(row, request),
  };
}
