import { type RpcId, RpcRequest } from '../../contracts/a2a/a2a.js';
import { DISPATCH_URI } from '../../contracts/a2a/extensions.js';
import { RPC_ERRORS } from '../../contracts/errors.js';
import type { DispatchPayload } from '../../contracts/frames.js';
import { readDispatch } from '../connected/frames.js';
import type { ResultFrame } from '../handlers/result-frame.js';
import type { ChunkContent } from '../handlers/task-output.js';
import type { EventWriter } from './event-writer.js';
import { taskIn, taskOfResult } from './hosted-task.js';
import type { HostedTasks } from './hosted-tasks.js';

/** The response to one request: a JSON body, or a stream of events. */
export interface Reply {
  json(body: object): void;
  /** Starts a stream. */
  stream(): EventWriter;
  /** Aborted when the caller disconnects before the answer is complete. */
  readonly disconnected: AbortSignal;
  /** Resolves when the answer was sent, or the caller has disconnected. */
  readonly closed: Promise<void>;
}

/** The platform sends dispatches to agents whose registered card names the extension, which the card of this server does. */
const NO_DISPATCH = `not a dispatch of the platform: does the card that this agent is registered with name ${DISPATCH_URI}?`;

/** Answers one JSON-RPC request of A2A 0.3; JSON-RPC errors are sent with HTTP 200. */
export async function answerRpc(tasks: HostedTasks, text: string, reply: Reply): Promise<void> {
  const parsed = parseJson(text);
  const request = RpcRequest.safeParse(parsed);
  const { id = null, method = '', params } = request.data ?? {};
  const isMessage = method === 'message/send' || method === 'message/stream';
  const dispatch = isMessage ? readDispatch(parsed as Record<string, unknown>) : null;
  if (parsed === undefined) reply.json(failure(null, 'PARSE_ERROR', 'not JSON'));
  else if (!request.success) reply.json(failure(null, 'INVALID_REQUEST', 'not a JSON-RPC 2.0 request'));
  else if (!isMessage) reply.json(answerAbout(tasks, method, id, params));
  else if (!dispatch) reply.json(failure(id, 'INVALID_PARAMS', NO_DISPATCH));
  else if (tasks.isFull) reply.json(failure(id, 'INTERNAL', 'too many dispatches at once'));
  else if (method === 'message/send') await sendOnce(tasks, dispatch, id, reply);
  else await sendStreamed(tasks, dispatch, id, reply);
}

/** Answers with one body. A disconnected caller cannot poll for the task, because it has not received the task id; so the task is canceled. */
async function sendOnce(tasks: HostedTasks, dispatch: DispatchPayload, id: RpcId, reply: Reply): Promise<void> {
  const task = tasks.get(dispatch.dispatch_id) ?? tasks.start(dispatch, null);
  const onDisconnect = () => task.abort('CANCELED');
  reply.disconnected.addEventListener('abort', onDisconnect, { once: true });
  const resultFrame = await task.done;
  reply.disconnected.removeEventListener('abort', onDisconnect);
  reply.json(finalAnswer(resultFrame, dispatch, id));
}

/** Streams the task, its chunks and its end. After a disconnect the task continues, and the caller may poll for it. */
async function sendStreamed(tasks: HostedTasks, dispatch: DispatchPayload, id: RpcId, reply: Reply): Promise<void> {
  const events = reply.stream();
  const result = (value: object) => events.write({ jsonrpc: '2.0', id, result: value });
  await result(taskIn('working', dispatch));
  const existing = tasks.get(dispatch.dispatch_id);
  const task = existing ?? tasks.start(dispatch, (content) => result(updateOf(content, dispatch)));
  reply.disconnected.addEventListener('abort', () => task.detach(), { once: true });
  const resultFrame = await task.done;
  await events.write(finalAnswer(resultFrame, dispatch, id));
  if (!isQuestion(resultFrame)) await result(finalUpdate(resultFrame, dispatch));
  events.end();
}

/** Answers `tasks/get` and `tasks/cancel`. */
function answerAbout(tasks: HostedTasks, method: string, id: RpcId, params: unknown): object {
  if (method !== 'tasks/get' && method !== 'tasks/cancel') {
    return failure(id, 'METHOD_NOT_FOUND', `there is no method ${method.slice(0, 64)}`);
  }
  const { id: taskId } = (params ?? {}) as { id?: unknown };
  const task = typeof taskId === 'string' ? tasks.get(taskId) : undefined;
  if (!task) return failure(id, 'TASK_NOT_FOUND', 'there is no such task');
  if (method === 'tasks/get') return { jsonrpc: '2.0', id, result: task.snapshot() };
  if (task.isOver) return failure(id, 'TASK_NOT_CANCELABLE', 'the task has ended');
  task.abort('CANCELED');
  return { jsonrpc: '2.0', id, result: taskIn('canceled', task.dispatch) };
}

/**
 * The final answer. A question is an empty result with `status` next to it, as in a `dispatch_result`: the platform then sends the
 * original message again with the human's answer in its metadata, so the agent keeps no state.
 */
function finalAnswer(resultFrame: ResultFrame, dispatch: DispatchPayload, id: RpcId): object {
  if (!isQuestion(resultFrame)) return { jsonrpc: '2.0', id, result: taskOfResult(resultFrame, dispatch) };
  const { status, usage } = resultFrame.payload;
  return { jsonrpc: '2.0', id, result: '', status, ...(usage && { usage }) };
}

function isQuestion(resultFrame: ResultFrame): resultFrame is Extract<ResultFrame, { type: 'dispatch_result' }> {
  return resultFrame.type === 'dispatch_result' && resultFrame.payload.status?.state === 'input-required';
}

function updateOf({ artifact, append, status_text }: ChunkContent, dispatch: DispatchPayload): object {
  const ids = { taskId: dispatch.dispatch_id, contextId: dispatch.session_context.session_id };
  if (artifact) return { kind: 'artifact-update', ...ids, artifact, append: append === true };
  const { status } = taskIn('working', dispatch, status_text ?? '');
  return { kind: 'status-update', ...ids, status, final: false };
}

function finalUpdate(resultFrame: ResultFrame, dispatch: DispatchPayload): object {
  const { id: taskId, contextId, status } = taskOfResult(resultFrame, dispatch);
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
