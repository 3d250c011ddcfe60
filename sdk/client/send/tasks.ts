import type { PushNotificationConfig, TaskPushNotificationConfig } from '../../../contracts/a2a/a2a.js';
import type { CallOptions } from '../api/platform-api.js';
import type { JsonObject } from '../transport/transport.js';
import type { RpcCalls } from './rpc-calls.js';
import type { StreamEvent, Task } from './sent-task.js';

/** A2A's methods for tasks that exist: `tasks/*` of `/send`. */
export class Tasks {
  readonly #rpc: RpcCalls;

  constructor(rpc: RpcCalls) {
    this.#rpc = rpc;
  }

  /** A task in its present state. @param options.historyLength at most this many messages of its history */
  get(taskId: string, options: CallOptions & { historyLength?: number } = {}): Promise<Task> {
    const { historyLength, ...call } = options;
    const params = { id: taskId, ...(historyLength !== undefined && { historyLength }) };
    return this.#rpc.call('tasks/get', params, call, true);
  }

  /** Cancels a task. @throws ApiError when it has ended */
  cancel(taskId: string, options: CallOptions = {}): Promise<Task> {
    return this.#rpc.call('tasks/cancel', { id: taskId }, options);
  }

  /** Streams the updates of a task, and reopens broken connections like `stream`. */
  resubscribe(taskId: string, options: CallOptions & { lastEventId?: string } = {}): AsyncGenerator<StreamEvent> {
    return this.#rpc.stream({ taskId, lastEventId: options.lastEventId ?? '' }, {}, options);
  }

  /** Sets a URL that is notified about a task. */
  setPushConfig(taskId: string, config: PushNotificationConfig, options: CallOptions = {}) {
    const params = { taskId, pushNotificationConfig: config };
    return this.#push<TaskPushNotificationConfig>('set', params, options);
  }

  /** A configuration of push notifications; without an id, the one with the task's id or the oldest. */
  getPushConfig(taskId: string, options: CallOptions & { configId?: string } = {}) {
    const { configId, ...call } = options;
    const params = { id: taskId, ...(configId !== undefined && { pushNotificationConfigId: configId }) };
    return this.#push<TaskPushNotificationConfig>('get', params, call, true);
  }

  listPushConfigs(taskId: string, options: CallOptions = {}) {
    return this.#push<TaskPushNotificationConfig[]>('list', { id: taskId }, options, true);
  }

  async deletePushConfig(taskId: string, configId: string, options: CallOptions = {}): Promise<void> {
    await this.#push('delete', { id: taskId, pushNotificationConfigId: configId }, options, true);
  }

  #push<Result>(method: string, params: JsonObject, options: CallOptions, retry = false): Promise<Result> {
    return this.#rpc.call<Result>(`tasks/pushNotificationConfig/${method}`, params, options, retry);
  }
}
