import type { MessageSendParams, Task } from '../../contracts/a2a.js';
import type { Caller } from '../../contracts/auth.js';
import { anyAnswerRefusal } from '../../contracts/permissions.js';
import type { AcceptContext } from '../../messages/accept/draft.js';
import type { LiveMessage } from '../../messages/dispatch/fast-path.js';
import { newest } from '../../messages/read/task.js';
import type { StreamItem } from '../../messages/stream/stream.js';
import { PlatformError } from '../../runtime/errors.js';
import type { ApiDeps } from '../deps.js';
import { type CallContext, followedBy } from './method.js';
import { checkSendParams } from './send-params.js';

interface Taken {
  message_id: string;
  /** It was on the record before. */
  duplicate: boolean;
  /** It has ended as it was accepted. */
  ended: boolean;
  live: LiveMessage | null;
}

/** The stream, its task with so many messages of its history at most. */
async function* withHistory(items: AsyncIterable<StreamItem>, length: number): AsyncGenerator<StreamItem> {
  for await (const { cursor, event } of items) {
    yield { cursor, event: event.kind === 'task' ? { ...event, history: newest(event.history ?? [], length) } : event };
  }
}

/** A message to a task answers what a human was asked, which no agent does. @throws PlatformError forbidden */
function checkAnswers(caller: Caller): void {
  const refusal = anyAnswerRefusal(caller);
  if (refusal !== null) throw new PlatformError('forbidden', refusal);
}

/** `message/send` and `message/stream`, in whichever version. */
export function createSendMethods({
  gateway,
  config,
  pushConfigs,
}: Pick<ApiDeps, 'gateway' | 'config' | 'pushConfigs'>) {
  /** Puts the message on the record, or takes it as the answer to what an agent asked. */
  async function take(
    params: MessageSendParams,
    { caller, version, trace, bodyBytes }: CallContext,
    method: AcceptContext['method'],
  ): Promise<Taken> {
    checkSendParams(params, bodyBytes);
    const { taskId } = params.message;
    const wanted = params.configuration?.pushNotificationConfig;
    if (taskId === undefined) {
      const push = wanted && { push: pushConfigs.prepare(wanted, version) };
      return gateway.accept(caller, params, { method, ...trace, ...push });
    }
    checkAnswers(caller);
    if (wanted) await pushConfigs.set(caller, taskId, wanted, version);
    return { ...(await gateway.followUp(caller, params)), duplicate: true, ended: false, live: null };
  }

  return {
    async send(params: MessageSendParams, context: CallContext): Promise<Task> {
      const taken = await take(params, context, 'message/send');
      const { blocking = true, historyLength } = params.configuration ?? {};
      const wait = {
        waitMs: config.SEND_WAIT_MS,
        signal: context.signal,
        blocking,
        ...(historyLength !== undefined && { historyLength }),
      };
      const accepted = taken.duplicate || taken.ended ? null : taken;
      return gateway.waitForTask(context.caller.tenant_id, taken.message_id, wait, accepted);
    },

    async stream(params: MessageSendParams, context: CallContext): Promise<AsyncIterable<StreamItem>> {
      const { message_id, live } = await take(params, context, 'message/stream');
      const items = gateway.stream(context.caller.tenant_id, message_id, followedBy(context), live);
      const historyLength = params.configuration?.historyLength;
      return historyLength === undefined ? items : withHistory(items, historyLength);
    },
  };
}
