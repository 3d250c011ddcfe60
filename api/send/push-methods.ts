import type { z } from 'zod';
import type {
  DeletePushConfigParams,
  GetPushConfigParams,
  TaskPushNotificationConfig,
} from '../../contracts/a2a/a2a.js';
import type { PushConfigPage } from '../../deliveries/push-configs.js';
import type { ApiDeps } from '../deps.js';
import type { CallContext } from './rpc.js';

/** The methods for push notification configurations, for all versions. */
export function createPushMethods({ pushConfigs }: Pick<ApiDeps, 'pushConfigs'>) {
  return {
    async set(
      { taskId, pushNotificationConfig }: TaskPushNotificationConfig,
      { caller, version }: CallContext,
    ): Promise<TaskPushNotificationConfig> {
      return {
        taskId,
        pushNotificationConfig: await pushConfigs.set(caller, taskId, pushNotificationConfig, version),
      };
    },

    async get(
      { id: taskId, pushNotificationConfigId }: z.infer<typeof GetPushConfigParams>,
      { caller }: CallContext,
    ): Promise<TaskPushNotificationConfig> {
      return {
        taskId,
        pushNotificationConfig: await pushConfigs.get(caller, taskId, pushNotificationConfigId ?? undefined),
      };
    },

    async list(
      { id: taskId, ...page }: { id: string } & PushConfigPage,
      { caller }: CallContext,
    ): Promise<{ configs: TaskPushNotificationConfig[]; nextPageToken: string }> {
      const { configs, nextPageToken } = await pushConfigs.list(caller, taskId, page);
      return {
        configs: configs.map((pushNotificationConfig) => ({ taskId, pushNotificationConfig })),
        nextPageToken,
      };
    },

    async remove(
      { id: taskId, pushNotificationConfigId }: z.infer<typeof DeletePushConfigParams>,
      { caller }: CallContext,
    ): Promise<void> {
      await pushConfigs.delete(caller, taskId, pushNotificationConfigId);
    },
  };
}
