import type { z } from 'zod';
import type { TaskQueryParams } from '../../contracts/a2a/a2a.js';
import type { ListTasksRequest } from '../../contracts/a2a/a2a-1-requests.js';
import { isTerminal } from '../../contracts/message-states.js';
import { cancelMessage } from '../../messages/cancel.js';
import { findTask, listTasks } from '../../messages/read/lists/task-list.js';
import { streamTask } from '../../messages/stream/stream.js';
import { PlatformError } from '../../runtime/errors.js';
import type { ApiDeps } from '../deps.js';
import { type CallContext, streamOptions } from './rpc.js';
import { RpcError } from './rpc-error.js';
import { requireTaskOfType } from './type-address.js';

/** The errors of `/messages/cancel` as errors of A2A. */
function asCancelError(error: unknown): unknown {
  if (!(error instanceof PlatformError)) return error;
  if (error.code === 'NOT_FOUND')
    return new RpcError('TASK_NOT_FOUND', 'Task not found: there is none of that id.', error.code);
  if (error.code === 'ALREADY_TERMINAL') return new RpcError('TASK_NOT_CANCELABLE', error.message, error.code);
  return error;
}

/** The methods for existing tasks, for all versions. */
export function createTaskMethods({ messages: { core }, secrets }: Pick<ApiDeps, 'messages' | 'secrets'>) {
  return {
    async get(params: z.infer<typeof TaskQueryParams>, context: CallContext) {
      await requireTaskOfType(core.db, params.id, context);
      return findTask(core.db, context.caller, params.id, params);
    },

    list: (params: ListTasksRequest, { caller, agentType }: CallContext) =>
      listTasks({ db: core.db, secrets }, caller, { ...params, agentType }),

    async cancel({ id }: { id: string }, context: CallContext) {
      const { caller } = context;
      await requireTaskOfType(core.db, id, context);
      const ref = { tenant_id: caller.tenant_id, message_id: id };
      const canceling = cancelMessage(core, ref, 'canceled by the caller', caller);
      await canceling.catch((error) => Promise.reject(asCancelError(error)));
      return findTask(core.db, caller, id);
    },

    /** Streams a task. 0.3: until it rests; a terminal task is sent as it is. 1.0: until its terminal state; a terminal task is refused. */
    async subscribe({ id }: { id: string }, context: CallContext) {
      await requireTaskOfType(core.db, id, context);
      const { status } = await findTask(core.db, context.caller, id, { historyLength: 0 });
      const untilTerminal = context.version === '1.0';
      // A reader that continues after an event may not have seen the terminal state.
      if (untilTerminal && context.lastEventId === undefined && isTerminal(status.state))
        throw new RpcError('UNSUPPORTED_OPERATION', `The task is already ${status.state}.`, 'ALREADY_TERMINAL');
      const ref = { tenant_id: context.caller.tenant_id, message_id: id };
      return streamTask(core, ref, { ...streamOptions(context), untilTerminal });
    },
  };
}
