import type { MessageSendParams, Task } from '../contracts/a2a/a2a.js';
import type { Caller } from '../contracts/api/auth.js';
import type { MessageRecord, MessagesGetRequest, ResolveRequest } from '../contracts/api/messages.js';
import type { Reader } from '../contracts/permissions.js';
import { type Accepted, acceptMessage } from './accept/accept.js';
import type { AcceptContext } from './accept/draft.js';
import { TenantLimits } from './accept/tenant-limits.js';
import { cancelMessage } from './cancel.js';
import type { MessageCore } from './core.js';
import type { FastPath, LiveMessage } from './dispatch/fast-path.js';
import { answerFollowUp } from './input/follow-up.js';
import { type Resolved, resolveMessage } from './input/resolve.js';
import { getMessage, listMessages, pendingMessages } from './read/read.js';
import { findTask, listTasks, type TaskPage, type TaskQuery } from './read/task-list.js';
import { type StreamItem, type StreamOptions, streamTask } from './stream/stream.js';
import { type JustAccepted, type TaskWait, waitForTask } from './stream/watch.js';

/** The operations on messages that the API offers. They reject with PlatformError. */
export interface Gateway {
  accept(caller: Caller, params: MessageSendParams, context: AcceptContext): Promise<Accepted>;
  /** Answers the question of an agent with a message that names its `taskId`. */
  followUp(caller: Caller, params: MessageSendParams): Promise<{ message_id: string }>;
  /** @param accepted given for a message that was accepted just now, which saves a query */
  waitForTask(tenantId: string, messageId: string, options: TaskWait, accepted?: JustAccepted | null): Promise<Task>;
  stream(
    tenantId: string,
    messageId: string,
    options: StreamOptions,
    live?: LiveMessage | null,
  ): AsyncIterable<StreamItem>;
  /** The task of a message. @throws PlatformError TASK_NOT_FOUND */
  task(reader: Reader, taskId: string, options?: { historyLength?: number | undefined }): Promise<Task>;
  /** @throws PlatformError INVALID_PARAMS for a page token that is not valid */
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
 * Binds the functions of `messages/` to their dependencies.
 * @param fastPath called for every message, because the mesh role starts after the gateway, or not at all
 */
export function createGateway(core: MessageCore, fastPath: () => FastPath | null = () => null): Gateway {
  const limits = new TenantLimits(core.limits);
  return {
    accept: (caller, params, context) => acceptMessage({ core, fastPath: fastPath(), limits }, caller, params, context),
    followUp: (caller, params) => answerFollowUp(core, caller, params),
    waitForTask: (tenant_id, message_id, options, accepted = null) =>
      waitForTask(core, { tenant_id, message_id }, options, accepted),
    stream: (tenant_id, message_id, options, live = null) => streamTask(core, { tenant_id, message_id }, options, live),
    task: (reader, taskId, options) => findTask(core.db, reader, taskId, options),
    tasks: (reader, query) => listTasks(core.db, reader, query),
    cancel: (caller, message_id, reason) =>
      cancelMessage(core, { tenant_id: caller.tenant_id, message_id }, reason, caller),
    resolve: (caller, messageId, body) => resolveMessage(core, caller, messageId, body),
    list: (reader, query) => listMessages(core.db, reader, query),
    get: (reader, messageId) => getMessage(core.db, reader, messageId),
    pending: (tenantId, query) => pendingMessages(core.db, tenantId, query),
  };
}
