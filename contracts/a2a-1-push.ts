import { z } from 'zod';
import type { TaskPushNotificationConfig } from './a2a.js';
import { LIMITS } from './limits.js';
import { given, OptionalText, proto } from './proto-json.js';
import { PushNotificationConfig } from './push.js';

/** Push-notification configs as A2A 1.0 spells them: flat, with the task's id, and one scheme (a2a.md). */

const TaskId = z.string().min(1);
const { id, url, token, authentication } = PushNotificationConfig.shape;
const { schemes, credentials } = authentication.unwrap().shape;

const fields = {
  id,
  url,
  token,
  authentication: proto({ scheme: schemes.element, credentials })
    .transform(({ scheme, ...secret }) => given({ schemes: [scheme], ...secret }))
    .optional(),
};

/** `configuration.taskPushNotificationConfig` of `SendMessage`: its task is the message's. */
export const InlinePushConfig = proto(fields).transform((config): PushNotificationConfig => given(config));

/** `params` of `CreateTaskPushNotificationConfig`. */
export const CreatePushConfigRequest = proto({ taskId: TaskId, ...fields }).transform(
  ({ taskId, ...config }): TaskPushNotificationConfig => ({ taskId, pushNotificationConfig: given(config) }),
);

/** `params` of `GetTaskPushNotificationConfig` and `DeleteTaskPushNotificationConfig`. */
export const PushConfigRequest = proto({ taskId: TaskId, id: z.string().min(1) }).transform((named) => ({
  id: named.taskId,
  pushNotificationConfigId: named.id,
}));

/** `params` of `ListTaskPushNotificationConfigs`. */
export const ListPushConfigsRequest = proto({
  taskId: TaskId,
  pageSize: z.int().min(0).max(LIMITS.pageSizeMax).optional(),
  pageToken: OptionalText,
}).transform(({ taskId, ...page }) => ({ id: taskId, ...given(page) }));

/** A config of a task. */
export function pushConfigTo1({ taskId, pushNotificationConfig }: TaskPushNotificationConfig): Record<string, unknown> {
  const { authentication: auth, ...config } = pushNotificationConfig;
  const [scheme] = auth?.schemes ?? [];
  return { ...config, taskId, ...(auth && { authentication: given({ scheme, credentials: auth.credentials }) }) };
}
