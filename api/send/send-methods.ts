import type { MessageSendParams, Task } from '../../contracts/a2a.js';
import type { AcceptContext } from '../../messages/draft.js';
import { RpcError } from '../../messages/rpc-error.js';
import type { LiveMessage } from '../../messages/short-way.js';
import type { StreamItem } from '../../messages/stream.js';
import type { ApiDeps } from '../deps.js';
import { type CallContext, followedBy } from './method.js';
import { checkSendParams } from './send-params.js';

interface Taken {
  message_id: string;
  /** It was on the record before. */
  duplicate: boolean;
  live: LiveMessage | null;
}

/** `message/send` and `message/stream`, in whichever version. */
export function createSendMethods({ gateway, config }: Pick<ApiDeps, 'gateway' | 'config'>) {
  /** Puts the message on the record, or takes it as the answer to what an agent asked. */
  async function take(
    params: MessageSendParams,
    { caller, trace, bodyBytes }: CallContext,
    method: AcceptContext['method'],
  ): Promise<Taken> {
    checkSendParams(params, bodyBytes);
    if (params.configuration?.pushNotificationConfig !== undefined) {
      throw new RpcError('PUSH_NOTIFICATION_NOT_SUPPORTED', 'Push notifications are not supported.');
    }
    if (params.message.taskId !== undefined)
      return { ...(await gateway.followUp(caller, params)), duplicate: true, live: null };
    return gateway.accept(caller, params, { method, ...trace });
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
      const accepted = taken.duplicate ? null : taken;
      return gateway.waitForTask(context.caller.tenant_id, taken.message_id, wait, accepted);
    },

    async stream(params: MessageSendParams, context: CallContext): Promise<AsyncIterable<StreamItem>> {
      const { message_id, live } = await take(params, context, 'message/stream');
      return gateway.stream(context.caller.tenant_id, message_id, followedBy(context), live);
    },
  };
}
