import type { A2aMessage, Task } from '../contracts/a2a.js';
import type { DispatchResultPayload } from '../contracts/frames.js';
import { AgentInputRequest } from '../contracts/messages.js';
import { type Artifact, type Part, textOf } from '../contracts/parts.js';
import type { DispatchOutcome } from '../messages/dispatches.js';
import { uuidOf } from '../runtime/ids.js';

type OutcomeState = DispatchOutcome['state'];

/** What the states of an agent's own task mean here (decisions.md, Messages). Unfinished states are failures of the agent. */
const STATE_OF_TASK: Record<Task['status']['state'], OutcomeState> = {
  completed: 'completed',
  'input-required': 'input-required',
  'auth-required': 'input-required',
  failed: 'failed',
  rejected: 'failed',
  canceled: 'failed',
  submitted: 'failed',
  working: 'failed',
  unknown: 'failed',
};

/**
 * Reads an agent's answer, connected or hosted, into the one form that the messages know. `status.state` overrides the state
 * of a task. The streamed artifacts are kept unless a task brings its own, which then are the whole answer.
 * @param streamed what came in chunks before the result; bare parts are in the artifact named by the dispatch's UUID
 * @param dispatchId names the artifacts that the agent left unnamed
 */
export function toOutcome(payload: DispatchResultPayload, streamed: Artifact[], dispatchId: string): DispatchOutcome {
  const { result, status, usage } = payload;
  const task = isTask(result) ? result : undefined;
  const message = isMessage(result) ? result : task?.status.message;
  const state = status?.state ?? (task ? STATE_OF_TASK[task.status.state] : 'completed');
  const inputRequest = state === 'input-required' ? (status?.input_request ?? inputRequestIn(message)) : undefined;
  return {
    state,
    artifacts: artifactsOf(result, streamed, uuidOf(dispatchId)),
    ...(message && { status_message: { ...message, role: 'agent' as const } }),
    ...(usage && { usage }),
    ...(inputRequest && { input_request: inputRequest }),
    ...(state === 'failed' && { error: { code: 'HANDLER_ERROR', message: failureText(result, task, message) } }),
    ...(task && { remote_task_id: task.id, remote_context_id: task.contextId }),
  };
}

type Result = DispatchResultPayload['result'];

function isTask(result: Result): result is Task {
  return typeof result === 'object' && result.kind === 'task' && 'status' in result;
}

function isMessage(result: Result): result is A2aMessage {
  return typeof result === 'object' && result.kind === 'message' && Array.isArray(result.parts);
}

function artifactsOf(result: Result, streamed: Artifact[], ownId: string): Artifact[] {
  if (isTask(result)) return result.artifacts?.length ? result.artifacts : streamed;
  if (isMessage(result)) {
    return streamed.length > 0 || result.parts.length === 0 ? streamed : [{ artifactId: ownId, parts: result.parts }];
  }
  const parts = partsOf(result);
  if (parts.length === 0 || repeats(parts, streamed)) return streamed;
  return [...streamed, { artifactId: streamed.length === 0 ? ownId : `${ownId}:result`, parts }];
}

function partsOf(result: string | Record<string, unknown>): Part[] {
  if (typeof result === 'string') return result === '' ? [] : [{ kind: 'text', text: result }];
  return Object.keys(result).length === 0 ? [] : [{ kind: 'data', data: result }];
}

/** Whether the final text is what was already streamed. */
function repeats(parts: Part[], streamed: Artifact[]): boolean {
  const text = textOf(parts);
  return text !== '' && streamed.some((artifact) => textOf(artifact.parts) === text);
}

/** The question in a status message's data part `{input_request: …}`. One that does not fit the schema is no question. */
function inputRequestIn(message: A2aMessage | undefined): AgentInputRequest | undefined {
  for (const part of message?.parts ?? []) {
    if (part.kind !== 'data' || part.data.input_request === undefined) continue;
    const parsed = AgentInputRequest.safeParse(part.data.input_request);
    if (parsed.success) return parsed.data;
  }
  return undefined;
}

function failureText(result: Result, task: Task | undefined, message: A2aMessage | undefined): string {
  const text = typeof result === 'string' ? result : textOf(message?.parts ?? []);
  if (text !== '') return text.slice(0, 4096);
  return task ? `The agent ended its task in the state ${task.status.state}.` : 'The agent reported a failure.';
}
