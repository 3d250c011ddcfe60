import type { MessageSendParams, Task } from '../../contracts/a2a/a2a.js';
import type { Caller } from '../../contracts/api/auth.js';
import { LIMITS } from '../../contracts/limits.js';
import { anyAnswerRefusal, isLimited, LIMITED_PUSH } from '../../contracts/permissions.js';
import { type Accepted, acceptMessage } from '../../messages/accept/accept.js';
import type { AcceptContext } from '../../messages/accept/draft.js';
import { answerFollowUp } from '../../messages/input/follow-up.js';
import { liveTask, newest, taskOf } from '../../messages/read/task.js';
import { type StreamItem, streamTask } from '../../messages/stream/stream.js';
import { waitForTask } from '../../messages/stream/wait-for-task.js';
import { PlatformError } from '../../runtime/errors.js';
import type { ApiDeps } from '../deps.js';
import { type CallContext, streamOptions } from './rpc.js';
import { RpcError } from './rpc-error.js';
import { requireTaskOfType, toType } from './type-address.js';

/** JSON that is parsed and written again grows by this factor at most: `1e20,` has five bytes and becomes 22. */
const GROWTH_MAX = 5;

/**
 * Checks what the schema does not: the role, and the sizes.
 * @param bodyBytes of the whole request: a part cannot be larger
 * @throws RpcError `INVALID_PARAMS`
 */
export function checkSendParams({ message, metadata }: MessageSendParams, bodyBytes = Number.POSITIVE_INFINITY): void {
  if (message.role !== 'user') throw new RpcError('INVALID_PARAMS', 'params.message.role: must be user');
  if (message.parts.length === 0) throw new RpcError('INVALID_PARAMS', 'params.message.parts: must not be empty');
  const checkBytes = (path: string, value: unknown, limit: number, remedy = ''): void => {
    if (bodyBytes * GROWTH_MAX <= limit || value === undefined) return;
    if (Buffer.byteLength(JSON.stringify(value)) <= limit) return;
    throw new RpcError('INVALID_PARAMS', `${path}: must be at most ${limit} bytes of JSON${remedy}`);
  };
  checkBytes('params.message.parts', message.parts, LIMITS.messagePartsBytes);
  checkBytes('params.message.metadata', message.metadata, LIMITS.metadataBytes);
  const remedy = ', with the args in it: more goes into a data part of the message';
  checkBytes('params.metadata', metadata, LIMITS.metadataBytes, remedy);
}

/** The stream, with at most so many messages in the history of its task. */
async function* withHistory(items: AsyncIterable<StreamItem>, length: number): AsyncGenerator<StreamItem> {
  for await (const { cursor, event } of items) {
    yield { cursor, event: event.kind === 'task' ? { ...event, history: newest(event.history ?? [], length) } : event };
  }
}

/** A message to a task answers a question to a human, which agents may not do. @throws PlatformError forbidden */
function checkAnswers(caller: Caller): void {
  const refusal = anyAnswerRefusal(caller);
  if (refusal !== null) throw new PlatformError('forbidden', refusal);
}

/** The methods that send a message, for all versions. */
export function createSendMethods({
  messages,
  config,
  pushConfigs,
}: Pick<ApiDeps, 'messages' | 'config' | 'pushConfigs'>) {
  const { core } = messages;
  /** Accepts the message, or claims it as the answer to an agent's question. */
  async function accept(
    params: MessageSendParams,
    context: CallContext,
    method: AcceptContext['method'],
  ): Promise<Pick<Accepted, 'message_id' | 'live' | 'writtenRow'>> {
    const { caller, version, agentType, trace, requestId: request_id, ip, bodyBytes } = context;
    checkSendParams(params, bodyBytes);
    const { taskId } = params.message;
    const pushConfig = params.configuration?.pushNotificationConfig;
    if (pushConfig && isLimited(caller)) throw new PlatformError('forbidden', LIMITED_PUSH);
    if (taskId === undefined) {
      const addressed = agentType === null ? params : toType(params, agentType);
      const hook = pushConfig && { hook: pushConfigs.prepare(pushConfig, version) };
      const accepted = await acceptMessage(messages, caller, addressed, { method, ...trace, ...hook });
      const { message_id, session_id, duplicate, live } = accepted;
      const ids = { request_id, tenant_id: caller.tenant_id, message_id, session_id };
      core.log.debug({ ...ids, duplicate, dispatched: live !== null }, 'message accepted');
      return accepted;
    }
    checkAnswers(caller);
    await requireTaskOfType(core.db, taskId, context);
    if (pushConfig) await pushConfigs.set(caller, taskId, pushConfig, version);
    return { ...(await answerFollowUp(core, caller, params, ip)), live: null, writtenRow: null };
  }

  return {
    async send(params: MessageSendParams, context: CallContext): Promise<Task> {
      const { message_id, live, writtenRow } = await accept(params, context, 'message/send');
      const { blocking = true, historyLength } = params.configuration ?? {};
      const wait = {
        blocking,
        until: Date.now() + (blocking ? config.SEND_WAIT_MS : 0),
        signal: context.signal,
        ...(historyLength !== undefined && { historyLength }),
      };
      const task = live && (await liveTask(live, wait, core.local));
      if (task) return task;
      if (writtenRow && !blocking) return taskOf(writtenRow, null, wait);
      return waitForTask(core, { tenant_id: context.caller.tenant_id, message_id }, wait, writtenRow);
    },

    async stream(params: MessageSendParams, context: CallContext): Promise<AsyncIterable<StreamItem>> {
      const { message_id, live } = await accept(params, context, 'message/stream');
      const ref = { tenant_id: context.caller.tenant_id, message_id };
      const items = streamTask(core, ref, streamOptions(context), live);
      const historyLength = params.configuration?.historyLength;
      return historyLength === undefined ? items : withHistory(items, historyLength);
    },
  };
}
