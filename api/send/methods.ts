import {
  A2A_VERSIONS,
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
import { answering, type Method, type NamedMethod, streaming } from './method.js';
import { createPushMethods } from './push-methods.js';
import { RpcError } from './rpc-error.js';
import { createSendMethods } from './send-methods.js';
import { createTaskMethods } from './task-methods.js';

/** What the methods of `/send` need from the platform. */
export interface MethodDeps extends Pick<ApiDeps, 'gateway' | 'config' | 'pushConfigs'> {
  /** The agent card with the skills of the caller's fleet. */
  extendedCard: (caller: Caller, version: A2aVersion) => Promise<unknown>;
}

/** For 0.3, whose form the platform stores. */
const identity = <T>(value: T): T => value;

/** Every method, with its name and form in each version of A2A (a2a.md). */
function table(deps: MethodDeps): NamedMethod[] {
  const { send, stream } = createSendMethods(deps);
  const { get, list, cancel, subscribe } = createTaskMethods(deps);
  const push = createPushMethods(deps);
  return [
    ...answering(send, {
      '0.3': { name: 'message/send', params: MessageSendParams, result: identity },
      '1.0': { name: 'SendMessage', params: SendMessageRequest, result: sendResultTo1 },
    }),
    ...streaming(stream, {
      '0.3': { name: 'message/stream', params: MessageSendParams, result: identity },
      '1.0': { name: 'SendStreamingMessage', params: SendMessageRequest, result: eventTo1 },
    }),
    ...answering(get, {
      '0.3': { name: 'tasks/get', params: TaskQueryParams, result: identity },
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
      '0.3': { name: 'tasks/cancel', params: TaskIdParams, result: identity },
      '1.0': { name: 'CancelTask', params: TaskIdRequest, result: taskTo1 },
    }),
    ...streaming(subscribe, {
      '0.3': { name: 'tasks/resubscribe', params: TaskIdParams, result: identity },
      '1.0': { name: 'SubscribeToTask', params: TaskIdRequest, result: eventTo1 },
    }),
    ...answering(push.set, {
      '0.3': { name: 'tasks/pushNotificationConfig/set', params: TaskPushNotificationConfig, result: identity },
      '1.0': { name: 'CreateTaskPushNotificationConfig', params: CreatePushConfigRequest, result: pushConfigTo1 },
    }),
    ...answering(push.get, {
      '0.3': { name: 'tasks/pushNotificationConfig/get', params: GetPushConfigParams, result: identity },
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
    ...answering<unknown, unknown>((_params, { caller, version }) => deps.extendedCard(caller, version), {
      '0.3': { name: 'agent/getAuthenticatedExtendedCard', params: NoParams, result: identity },
      '1.0': { name: 'GetExtendedAgentCard', params: NoParams, result: identity },
    }),
  ];
}

/**
 * The methods of `/send` by version and name.
 * @returns a lookup; throws RpcError `METHOD_NOT_FOUND`, also for a name of the other version
 */
export function createMethods(deps: MethodDeps): (version: A2aVersion, name: string) => Method {
  const entries = table(deps);
  const methods = Object.fromEntries(
    A2A_VERSIONS.map((version) => [
      version,
      new Map(entries.filter((entry) => entry.version === version).map(({ name, method }) => [name, method])),
    ]),
  ) as Record<A2aVersion, Map<string, Method>>;
  return (version, name) => {
    const method = methods[version].get(name);
    if (!method) throw new RpcError('METHOD_NOT_FOUND', `There is no such method in A2A ${version}.`);
    return method;
  };
}
