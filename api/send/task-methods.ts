import type { Task } from '../../contracts/a2a.js';
import type { ListTasksRequest } from '../../contracts/a2a-1-requests.js';
import { isTerminal } from '../../contracts/messages.js';
import type { TaskPage } from '../../messages/read/task-list.js';
import type { StreamItem } from '../../messages/stream/stream.js';
import { PlatformError } from '../../runtime/errors.js';
import type { ApiDeps } from '../deps.js';
import { type CallContext, followedBy } from './method.js';
import { RpcError } from './rpc-error.js';

/** What `/messages/cancel` refuses, in A2A's words. */
function asCancelError(error: unknown): unknown {
  if (!(error instanceof PlatformError)) return error;
  if (error.code === 'NOT_FOUND')
    return new RpcError('TASK_NOT_FOUND', 'Task not found: there is none of that id.', error.code);
  if (error.code === 'ALREADY_TERMINAL') return new RpcError('TASK_NOT_CANCELABLE', error.message, error.code);
  return error;
}

/** The methods about tasks that are on the record, in whichever version. */
export function createTaskMethods({ gateway }: Pick<ApiDeps, 'gateway'>) {
  return {
    get: (params: { id: string; historyLength?: number | undefined }, { caller }: CallContext): Promise<Task> =>
      gateway.task(caller, params.id, params),

    list: (params: ListTasksRequest, { caller }: CallContext): Promise<TaskPage> => gateway.tasks(caller, params),

    async cancel({ id }: { id: string }, { caller }: CallContext): Promise<Task> {
      await gateway.cancel(caller, id, 'canceled by the caller').catch((error: unknown) => {
        throw asCancelError(error);
      });
      return gateway.task(caller, id);
    },

    /**
     * Follows a task. One that has ended is told as it is in 0.3 and refused in 1.0, where a task that waits for a human is followed
     * to its end.
     */
    async subscribe({ id }: { id: string }, context: CallContext): Promise<AsyncIterable<StreamItem>> {
      const { status } = await gateway.task(context.caller, id, { historyLength: 0 });
      const untilTerminal = context.version === '1.0';
      // Who goes on after an event has not been told of the end.
      if (untilTerminal && context.lastEventId === undefined && isTerminal(status.state))
        throw new RpcError('UNSUPPORTED_OPERATION', `The task is already ${status.state}.`, 'ALREADY_TERMINAL');
      return gateway.stream(context.caller.tenant_id, id, { ...followedBy(context), untilTerminal });
    },
  };
}
