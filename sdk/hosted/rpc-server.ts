import { type RpcId, RpcRequest } from '../../contracts/a2a.js';
import { RPC_ERRORS } from '../../contracts/errors.js';
import type { DispatchPayload } from '../../contracts/frames.js';
import { readDispatch } from '../connected/frames.js';
import type { Outcome } from '../handlers/agent-result.js';
import type { ChunkContent } from '../handlers/task-output.js';
import type { EventWriter } from './event-writer.js';
import { taskIn, taskOfOutcome } from './hosted-task.js';
import type { HostedTasks } from './hosted-tasks.js';

/** Where the answer to one request goes: one JSON body, or a stream of events. */
export interface Reply {
  json(body: object): void;
  /** Begins a stream. */
  stream(): EventWriter;
  /** Aborts when the caller is gone before the answer was complete. */
  readonly gone: AbortSignal;
  /** Settles when the answer has left, or the caller is gone. */
  readonly left: Promise<void>;
}

/** Answers one JSON-RPC request of A2A 0.3; errors of the request ride on HTTP 200. */
export async function answerRpc(tasks: HostedTasks, text: string, reply: Reply): Promise<void> {
  const parsed = parseJson(text);
  const request = RpcRequest.safeParse(parsed);
  const { id = null, method = '', params } = request.data ?? {};
  const isMessage = method === 'message/send' || method === 'message/stream';
  const dispatch = isMessage ? readDispatch(parsed as Record<string, unknown>) : null;
  if (parsed === undefined) reply.json(failure(null, 'PARSE_ERROR', 'not JSON'));
  else if (!request.success) reply.json(failure(null, 'INVALID_REQUEST', 'not a JSON-RPC 2.0 request'));
  else if (!isMessage) reply.json(answerAbout(tasks, method, id, params));
  else if (!dispatch) reply.json(failure(id, 'INVALID_PARAMS', 'not a dispatch of the platform'));
  else if (tasks.isFull) reply.json(failure(id, 'INTERNAL', 'too many dispatches at once'));
  else if (method === 'message/send') await sendOnce(tasks, dispatch, id, reply);
  else await sendStreamed(tasks, dispatch, id, reply);
}

/** The answer as one body. Who is gone cannot ask for it later: the task has not been named yet. */
async function sendOnce(tasks: HostedTasks, dispatch: DispatchPayload, id: RpcId, reply: Reply): Promise<void> {
  const task = tasks.get(dispatch.dispatch_id) ?? tasks.start(dispatch, null);
  const onGone = () => task.abort('CANCELED');
  reply.gone.addEventListener('abort', onGone, { once: true });
  const outcome = await task.done;
  reply.gone.removeEventListener('abort', onGone);
  reply.json(finalAnswer(outcome, dispatch, id));
}

/** The task, its chunks as they come, and its end. Who is gone may ask for the task: it goes on. */
async function sendStreamed(tasks: HostedTasks, dispatch: DispatchPayload, id: RpcId, reply: Reply): Promise<void> {
  const events = reply.stream();
  const result = (value: object) => events.write({ jsonrpc: '2.0', id, result: value });
  await result(taskIn('working', dispatch));
  const known = tasks.get(dispatch.dispatch_id);
  const task = known ?? tasks.start(dispatch, (content) => result(updateOf(content, dispatch)));
  reply.gone.addEventListener('abort', () => task.unheard(), { once: true });
  const outcome = await task.done;
  await events.write(finalAnswer(outcome, dispatch, id));
  if (!isQuestion(outcome)) await result(finalUpdate(outcome, dispatch));
  events.end();
}

/** About a task that came before: what it is now, or its end. */
function answerAbout(tasks: HostedTasks, method: string, id: RpcId, params: unknown): object {
  if (method !== 'tasks/get' && method !== 'tasks/cancel') {
    return failure(id, 'METHOD_NOT_FOUND', `there is no method ${method.slice(0, 64)}`);
  }
  const { id: taskId } = (params ?? {}) as { id?: unknown };
  const task = typeof taskId === 'string' ? tasks.get(taskId) : undefined;
  if (!task) return failure(id, 'TASK_NOT_FOUND', 'there is no such task, or no longer');
  if (method === 'tasks/get') return { jsonrpc: '2.0', id, result: task.snapshot() };
  if (task.isOver) return failure(id, 'TASK_NOT_CANCELABLE', 'the task is over');
  task.abort('CANCELED');
  return { jsonrpc: '2.0', id, result: taskIn('canceled', task.dispatch) };
}

/**
 * The whole outcome. A question is an empty result with `status` beside it, as in a `dispatch_result`: the platform then sends the
 * original message again with the human's answer in its metadata, and nothing has to be remembered here.
 */
function finalAnswer(outcome: Outcome, dispatch: DispatchPayload, id: RpcId): object {
  if (!isQuestion(outcome)) return { jsonrpc: '2.0', id, result: taskOfOutcome(outcome, dispatch) };
  const { status, usage } = outcome.payload;
  return { jsonrpc: '2.0', id, result: '', status, ...(usage && { usage }) };
}

function isQuestion(outcome: Outcome): outcome is Extract<Outcome, { type: 'dispatch_result' }> {
  return outcome.type === 'dispatch_result' && outcome.payload.status?.state === 'input-required';
}

function updateOf({ artifact, append, status_text }: ChunkContent, dispatch: DispatchPayload): object {
  const place = { taskId: dispatch.dispatch_id, contextId: dispatch.session_context.session_id };
  if (artifact) return { kind: 'artifact-update', ...place, artifact, append: append === true };
  const { status } = taskIn('working', dispatch, status_text ?? '');
  return { kind: 'status-update', ...place, status, final: false };
}

function finalUpdate(outcome: Outcome, dispatch: DispatchPayload): object {
  const { id: taskId, contextId, status } = taskOfOutcome(outcome, dispatch);
  return { kind: 'status-update', taskId, contextId, status, final: true };
}

function failure(id: RpcId, error: keyof typeof RPC_ERRORS, message: string): object {
  return { jsonrpc: '2.0', id, error: { code: RPC_ERRORS[error], message } };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
