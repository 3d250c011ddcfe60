import type { MessageSendParams, Task } from '../contracts/a2a.js';
import type { Caller } from '../contracts/auth.js';
import type { MessageRecord, MessagesGetRequest, ResolveRequest } from '../contracts/messages.js';
import type { Reader } from '../contracts/permissions.js';
import type { Accepted } from './accept/accept.js';
import { withDestination } from './accept/destination.js';
import type { AcceptContext } from './accept/draft.js';
import { InFlightLimit } from './accept/in-flight-limit.js';
import { acceptInContext } from './accept/named-context.js';
import { WaitingBound } from './accept/waiting-limit.js';
import { cancelMessage } from './cancel.js';
import type { MessageCore } from './core.js';
import type { FastPath, LiveMessage } from './dispatch/fast-path.js';
import { answerFollowUp } from './input/follow-up.js';
import { type Resolved, resolveMessage } from './input/resolve.js';
import { requireOwnContext, requireOwnRepeat } from './read/own.js';
import { createMessageReads } from './read/read.js';
import { findTask, listTasks, type TaskPage, type TaskQuery } from './read/task-list.js';
import { type StreamItem, type StreamOptions, streamTask } from './stream/stream.js';
import { type JustAccepted, type TaskWait, waitForTask } from './stream/watch.js';

/** What the API does with messages. Errors: PlatformError. */
export interface Gateway {
  accept(caller: Caller, params: MessageSendParams, context: AcceptContext): Promise<Accepted>;
  /** A message that names a `taskId`: answers what its agent asked. */
  followUp(caller: Caller, params: MessageSendParams): Promise<{ message_id: string }>;
  /** @param accepted given for a message that was put on the record just now, so that the database need not be asked at once */
  waitForTask(tenantId: string, messageId: string, options: TaskWait, accepted?: JustAccepted | null): Promise<Task>;
  stream(
    tenantId: string,
    messageId: string,
    options: StreamOptions,
    live?: LiveMessage | null,
  ): AsyncIterable<StreamItem>;
  /** The task of a message. @throws PlatformError TASK_NOT_FOUND */
  task(reader: Reader, taskId: string, options?: { historyLength?: number | undefined }): Promise<Task>;
  /** @throws PlatformError INVALID_PARAMS for a page token that is none */
  tasks(reader: Reader, query: TaskQuery): Promise<TaskPage>;
  cancel(caller: Caller, messageId: string, reason: string): Promise<void>;
  resolve(caller: Caller | null, messageId: string, body: ResolveRequest): Promise<Resolved>;
  list(reader: Reader, query: MessagesGetRequest): Promise<{ count: number; messages: MessageRecord[] }>;
  get(reader: Reader, messageId: string): Promise<MessageRecord>;
  pending(
    tenantId: string,
    query: { session_id?: string; limit: number; offset: number },
  ): Promise<{ total: number; messages: MessageRecord[] }>;
}

/**
 * Binds the functions of `messages/` to their database, bus and workflow starter.
 * @param fastPath asked for at every message: the mesh role comes up after this, or not at all
 */
export function createGateway(core: MessageCore, fastPath: () => FastPath | null = () => null): Gateway {
  const reads = createMessageReads(core.db);
  const inFlight = new InFlightLimit(core.limits.tenantMaxInFlight);
  const waiting = new WaitingBound(core.limits.tenantMaxWaiting);
  return {
    accept: async (caller, params, context) => {
      await requireOwnContext(core.db, caller, params.message.contextId);
      const placed = await withDestination(core.db, caller, params, context);
      const acceptance = { core, fastPath: fastPath(), inFlight, waiting };
      const accepted = await acceptInContext(acceptance, caller, params, placed);
      if (accepted.duplicate) await requireOwnRepeat(core.db, caller, accepted.message_id);
      return accepted;
    },
    followUp: (caller, params) => answerFollowUp(core, caller, params),
    waitForTask: (tenant_id, message_id, options, accepted = null) =>
      waitForTask(core, { tenant_id, message_id }, options, accepted),
    stream: (tenant_id, message_id, options, live = null) => streamTask(core, { tenant_id, message_id }, options, live),
    task: (reader, taskId, options) => findTask(core.db, reader, taskId, options),
    tasks: (reader, query) => listTasks(core.db, reader, query),
    cancel: (caller, message_id, reason) =>
      cancelMessage(core, { tenant_id: caller.tenant_id, message_id }, reason, caller),
    resolve: (caller, messageId, body) => resolveMessage(core, caller, messageId, body),
    list: (reader, query) => reads.list(reader, query),
    get: (reader, messageId) => reads.get(reader, messageId),
    pending: (tenantId, query) => reads.pending(tenantId, query),
  };
}
