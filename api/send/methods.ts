import {
  type A2aVersion,
  DeletePushConfigParams,
  GetPushConfigParams,
  MessageSendParams,
  TaskIdParams,
  TaskPushNotificationConfig,
  TaskQueryParams,
} from '../../contracts/a2a/a2a.js';
import {
  CreatePushConfigRequest,
  GetTaskRequest,
  ListPushConfigsRequest,
  ListTasksRequest,
  NoParams,
  PushConfigRequest,
  SendMessageRequest,
  TaskIdRequest,
} from '../../contracts/a2a/a2a-1-requests.js';
import { eventTo1, pushConfigTo1, sendResultTo1, taskTo1 } from '../../contracts/a2a/a2a-1-results.js';
import type { Caller } from '../../contracts/api/auth.js';
import type { ApiDeps } from '../deps.js';
import { createPushMethods } from './push-methods.js';
import { answering, type NamedMethod, streaming } from './rpc.js';
import { createSendMethods } from './send-methods.js';
import { createTaskMethods } from './task-methods.js';
import { requireTaskOfType } from './type-address.js';

/** What the methods of `/send` need from the platform. */
export interface MethodDeps extends Pick<ApiDeps, 'messages' | 'config' | 'pushConfigs' | 'secrets'> {
  /** The agent card with the skills of the caller's fleet, or of its agents of one type. */
  extendedCard: (caller: Caller, version: A2aVersion, agentType: string | null) => Promise<unknown>;
}

/** Every method of `/send`, with its name and form in each version of A2A. */
export function methodsOf(deps: MethodDeps): NamedMethod[] {
  const { db } = deps.messages.core;
  const { send, stream } = createSendMethods(deps);
  const { get, list, cancel, subscribe } = createTaskMethods(deps);
  const push = createPushMethods(deps, (taskId, context) => requireTaskOfType(db, taskId, context));
  return [
    ...answering(send, {
      '0.3': { name: 'message/send', params: MessageSendParams },
      '1.0': { name: 'SendMessage', params: SendMessageRequest, result: sendResultTo1 },
    }),
    ...streaming(stream, {
      '0.3': { name: 'message/stream', params: MessageSendParams },
      '1.0': { name: 'SendStreamingMessage', params: SendMessageRequest, result: eventTo1 },
    }),
    ...answering(get, {
      '0.3': { name: 'tasks/get', params: TaskQueryParams },
      '1.0': { name: 'GetTask', params: GetTaskRequest, result: taskTo1 },
    }),
    ...answering(list, {
      '1.0': {
        name: 'ListTasks',
        params: ListTasksRequest,
        result: (page) => ({ ...page, tasks: page.tasks.map(taskTo1) }),
      },
    }),
    ...answering(cancel, {
      '0.3': { name: 'tasks/cancel', params: TaskIdParams },
      '1.0': { name: 'CancelTask', params: TaskIdRequest, result: taskTo1 },
    }),
    ...streaming(subscribe, {
      '0.3': { name: 'tasks/resubscribe', params: TaskIdParams },
      '1.0': { name: 'SubscribeToTask', params: TaskIdRequest, result: eventTo1 },
    }),
    ...answering(push.set, {
      '0.3': { name: 'tasks/pushNotificationConfig/set', params: TaskPushNotificationConfig },
      '1.0': { name: 'CreateTaskPushNotificationConfig', params: CreatePushConfigRequest, result: pushConfigTo1 },
    }),
    ...answering(push.get, {
      '0.3': { name: 'tasks/pushNotificationConfig/get', params: GetPushConfigParams },
      '1.0': { name: 'GetTaskPushNotificationConfig', params: PushConfigRequest, result: pushConfigTo1 },
    }),
    ...answering(push.list, {
      '0.3': {
        name: 'tasks/pushNotificationConfig/list',
        params: TaskIdParams,
        result: ({ configs }) => configs,
      },
      '1.0': {
        name: 'ListTaskPushNotificationConfigs',
        params: ListPushConfigsRequest,
        result: (page) => ({ ...page, configs: page.configs.map(pushConfigTo1) }),
      },
    }),
    ...answering(push.remove, {
      '0.3': { name: 'tasks/pushNotificationConfig/delete', params: DeletePushConfigParams, result: () => null },
      '1.0': { name: 'DeleteTaskPushNotificationConfig', params: PushConfigRequest, result: () => ({}) },
    }),
    ...answering<unknown, unknown>(
      (_params, { caller, version, agentType }) => deps.extendedCard(caller, version, agentType),
      {
        '0.3': { name: 'agent/getAuthenticatedExtendedCard', params: NoParams },
        '1.0': { name: 'GetExtendedAgentCard', params: NoParams },
      },
    ),
  ];
}
