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
    set: async ({ taskId, pushNotificationConfig }: TaskPushNotificationConfig, { caller, version }: CallContext) => ({
      taskId,
      pushNotificationConfig: await pushConfigs.set(caller, taskId, pushNotificationConfig, version),
    }),

    get: async (params: z.infer<typeof GetPushConfigParams>, { caller }: CallContext) => {
      const { id: taskId, pushNotificationConfigId } = params;
      const pushNotificationConfig = await pushConfigs.get(caller, taskId, pushNotificationConfigId ?? undefined);
      return { taskId, pushNotificationConfig };
    },

    list: async ({ id: taskId, ...page }: { id: string } & PushConfigPage, { caller }: CallContext) => {
      const { configs, nextPageToken } = await pushConfigs.list(caller, taskId, page);
      return { configs: configs.map((pushNotificationConfig) => ({ taskId, pushNotificationConfig })), nextPageToken };
    },

    remove: (params: z.infer<typeof DeletePushConfigParams>, { caller }: CallContext) =>
      pushConfigs.delete(caller, params.id, params.pushNotificationConfigId),
  };
}
