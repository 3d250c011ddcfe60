import type { A2aMessage, Task } from '../../contracts/a2a/a2a.js';
import type { Artifact, Part } from '../../contracts/a2a/parts.js';
import { textOf } from '../../contracts/a2a/text.js';
import { AgentInputRequest } from '../../contracts/api/messages.js';
import { type DispatchResultPayload, ErrorPayload } from '../../contracts/frames.js';
import type { AnswerOrFailure } from '../../messages/dispatch/dispatches.js';
import { schemaProblem } from '../../messages/input/form.js';
import { uuidOf } from '../../runtime/ids.js';
import { describe, unfitAnswer } from '../frames/frames.js';

/** Length of an agent's own task or context id, beyond which it is not stored. */
const REMOTE_ID_CHARS = 512;

/** The result for each state of an agent's own A2A task. A final answer whose task is unfinished is a failure. */
const STATE_OF_TASK: Record<Task['status']['state'], AnswerOrFailure['state']> = {
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
 * The result of an agent's answer, connected or hosted. `status.state` overrides the state of a task. Streamed artifacts are kept unless a
 * task brings its own, which then replace them.
 * @param streamed artifacts that came in chunks; bare parts are in the artifact whose id is the dispatch's UUID
 * @param dispatchId names artifacts without an id
 */
export function toAgentResult(
  payload: DispatchResultPayload,
  streamed: Artifact[],
  dispatchId: string,
): AnswerOrFailure {
  const { result, status, usage } = payload;
  const task = isTask(result) ? result : undefined;
  const message = isMessage(result) ? result : task?.status.message;
  const stated = status?.state ?? (task ? STATE_OF_TASK[task.status.state] : 'completed');
  const asked = stated === 'input-required' ? questionIn(status, message) : {};
  const state = asked.problem ? 'failed' : stated;
  const failure = asked.problem ?? failureText(result, task, message);
  const artifacts = artifactsOf(result, streamed, uuidOf(dispatchId));
  const plan_proposal = state === 'completed' ? proposalIn(artifacts, message) : undefined;
  return {
    state,
    artifacts,
    ...(plan_proposal !== undefined && { plan_proposal }),
    ...(message && { status_message: { ...message, role: 'agent' as const } }),
    ...(usage && { usage }),
    ...(asked.request && { input_request: asked.request }),
    ...(state === 'failed' && ((!asked.problem && ownFailure(task)) || { error: handlerError(failure) })),
    ...(task && isId(task.id) && { remote_task_id: task.id }),
    ...(task && isId(task.contextId) && { remote_context_id: task.contextId }),
  };
}

/** Whether an agent's own id is stored. */
function isId(id: string): boolean {
  return id !== '' && id.length <= REMOTE_ID_CHARS;
}

type Result = DispatchResultPayload['result'];

/** `DispatchResultPayload` guarantees that only a task has this `kind`. */
function isTask(result: Result): result is Task {
  return typeof result === 'object' && result.kind === 'task';
}

function isMessage(result: Result): result is A2aMessage {
  return typeof result === 'object' && result.kind === 'message';
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

/** Whether the final text repeats what was streamed. */
function repeats(parts: Part[], streamed: Artifact[]): boolean {
  const text = textOf(parts);
  return text !== '' && streamed.some((artifact) => textOf(artifact.parts) === text);
}

/** A question, or why nobody can be asked it. */
interface Asked {
  request?: AgentInputRequest;
  problem?: string;
}

function askedBy(request: AgentInputRequest): Asked {
  const problem = request.schema ? schemaProblem(request.schema) : null;
  return problem === null ? { request } : { problem: `The agent's form schema is not valid: ${problem}` };
}

/** The question in the status, or else in a data part `{input_request: …}` of the message. */
function questionIn(status: DispatchResultPayload['status'], message: A2aMessage | undefined): Asked {
  if (status?.input_request) return askedBy(status.input_request);
  for (const part of message?.parts ?? []) {
    if (part.kind !== 'data' || part.data.input_request === undefined) continue;
    const { data, error } = AgentInputRequest.safeParse(part.data.input_request);
    return data ? askedBy(data) : { problem: unfitAnswer(describe(error, 'input_request.')) };
  }
  return {};
}

/** The plan in a data part `{plan_proposal: …}` of the artifacts or the message. */
function proposalIn(artifacts: Artifact[], message: A2aMessage | undefined): unknown {
  for (const { parts } of message ? [...artifacts, message] : artifacts)
    for (const part of parts) if (part.kind === 'data' && 'plan_proposal' in part.data) return part.data.plan_proposal;
  return undefined;
}

function failureText(result: Result, task: Task | undefined, message: A2aMessage | undefined): string {
  const text = typeof result === 'string' ? result : textOf(message?.parts ?? []);
  if (text !== '') return text.slice(0, 4096);
  return task ? `The agent ended its task in the state ${task.status.state}.` : 'The agent reported a failure.';
}

function handlerError(message: string): NonNullable<AnswerOrFailure['error']> {
  return { code: 'HANDLER_ERROR', message };
}

const OwnFailure = ErrorPayload.pick({ code: true, message: true, unfinished: true });

/** The error that hosted agents of the SDK put into `metadata.error` of a failed task. In other servers' metadata, what does not fit is ignored. */
function ownFailure(task: Task | undefined): Pick<AnswerOrFailure, 'error' | 'is_loss'> | undefined {
  const { data } = OwnFailure.safeParse(task?.metadata?.error);
  return data && failureOf(data);
}

/** The form of an agent's error code. Codes are used in filters, groups and events, so anything else counts as text. */
const OWN_CODE = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;

/** A code of another form becomes HANDLER_ERROR and begins the message. */
function failureOf({ code, message, unfinished }: Omit<ErrorPayload, 'retryable'>) {
  const error = OWN_CODE.test(code)
    ? { code, message: message || code }
    : handlerError([code, message].filter(Boolean).join(': ') || 'The agent reported a failure.');
  return { error, ...(unfinished === true && { is_loss: true as const }) };
}

/** The result of a dispatch whose agent reports that it failed. */
export function reportedFailure(payload: ErrorPayload): AnswerOrFailure {
  return { state: 'failed', ...failureOf(payload), health: 'well' };
}
