import type { z } from 'zod';
import type {
  DeletePushConfigParams,
  GetPushConfigParams,
  TaskPushNotificationConfig,
} from '../../contracts/a2a/a2a.js';
import type { PushConfigPage } from '../../deliveries/push/push-configs.js';
import type { ApiDeps } from '../deps.js';
import type { CallContext } from './rpc.js';

/** The methods for push notification configurations, for all versions. */
export function createPushMethods(
  { pushConfigs }: Pick<ApiDeps, 'pushConfigs'>,
  requireTask: (taskId: string, context: CallContext) => Promise<void>,
) {
  return {
    set: async ({ taskId, pushNotificationConfig }: TaskPushNotificationConfig, context: CallContext) => {
      await requireTask(taskId, context);
      const { caller, version } = context;
      return {
        taskId,
        pushNotificationConfig: await pushConfigs.set(caller, taskId, pushNotificationConfig, version),
      };
    },

    get: async (params: z.infer<typeof GetPushConfigParams>, context: CallContext) => {
      const { id: taskId, pushNotificationConfigId } = params;
      await requireTask(taskId, context);
      const pushNotificationConfig = await pushConfigs.get(
        context.caller,
        taskId,
        pushNotificationConfigId ?? undefined,
      );
      return { taskId, pushNotificationConfig };
    },

    list: async ({ id: taskId, ...page }: { id: string } & PushConfigPage, context: CallContext) => {
      await requireTask(taskId, context);
      const { configs, nextPageToken } = await pushConfigs.list(context.caller, taskId, page);
      return { configs: configs.map((pushNotificationConfig) => ({ taskId, pushNotificationConfig })), nextPageToken };
    },

    remove: async (params: z.infer<typeof DeletePushConfigParams>, context: CallContext) => {
      await requireTask(params.id, context);
      await pushConfigs.delete(context.caller, params.id, params.pushNotificationConfigId);
    },
  };
}
