import { z } from 'zod';
import { isObject } from '../json-guard.js';
import { LIMITS } from '../limits.js';
import { Instant, JsonObject } from '../primitives.js';
import {
  A2aMessage,
  AcceptedOutputModes,
  MessageMetadata,
  MessageSendParams,
  PushNotificationConfig,
  type TaskPushNotificationConfig,
  TaskState,
} from './a2a.js';
import { stateTo1, WRAPPED_VALUE } from './a2a-1-results.js';
import type { Part } from './parts.js';
import { camelNames, defined, OptionalText, proto } from './proto-json.js';

/** Parses requests of A2A 1.0 in ProtoJSON into their 0.3 forms, which the platform stores. `tenant` is ignored; the token determines it. */

const CONTENTS = ['text', 'raw', 'url', 'data'] as const;
const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/;

const PartMembers = z.object({
  text: z.string().nullish(),
  raw: z.string().regex(BASE64, 'must be base64').nullish(),
  url: z.string().min(1).nullish(),
  data: z.unknown().optional(),
  metadata: JsonObject.nullish(),
  filename: z.string().nullish(),
  mediaType: z.string().nullish(),
});

const Part1 = z.preprocess(camelNames, PartMembers).transform((part, context): Part => {
  // `null` counts as a value for `data` only.
  const [content, ...others] = CONTENTS.filter((name) =>
    name === 'data' ? part.data !== undefined : part[name] != null,
  );
  if (content !== undefined && others.length === 0) return partFrom1(content, part);
  context.addIssue(`needs exactly one of ${CONTENTS.join(', ')}`);
  return z.NEVER;
});

function partFrom1(content: (typeof CONTENTS)[number], part: z.infer<typeof PartMembers>): Part {
  const { filename, mediaType } = part;
  if (content === 'raw' || content === 'url') {
    const bytes = part.raw?.replaceAll('-', '+').replaceAll('_', '/');
    return {
      kind: 'file',
      file: {
        ...(content === 'raw' ? { bytes } : { uri: part.url ?? '' }),
        ...(filename && { name: filename }),
        ...(mediaType && { mimeType: mediaType }),
      },
      ...(part.metadata && { metadata: part.metadata }),
    };
  }
  const metadata = {
    ...part.metadata,
    ...(filename && { filename }),
    ...(mediaType && { mediaType }),
    ...(content === 'data' && !isObject(part.data) && { [WRAPPED_VALUE]: true }),
  };
  const withMetadata = Object.keys(metadata).length > 0 && { metadata };
  if (content === 'text') return { kind: 'text', text: part.text ?? '', ...withMetadata };
  return { kind: 'data', data: isObject(part.data) ? part.data : { value: part.data }, ...withMetadata };
}

const Message1 = proto({
  messageId: A2aMessage.shape.messageId,
  role: z.enum(['ROLE_USER', 'ROLE_AGENT']).transform((role) => (role === 'ROLE_USER' ? 'user' : 'agent')),
  parts: z.array(Part1),
  contextId: OptionalText,
  taskId: OptionalText,
  referenceTaskIds: A2aMessage.shape.referenceTaskIds,
  extensions: A2aMessage.shape.extensions,
  metadata: MessageMetadata.optional(),
}).transform((message): A2aMessage => defined({ kind: 'message' as const, ...message }));

const HistoryLength = z.int().min(0).optional();
const TaskId = z.string().min(1);

// A push-notification config in 1.0 is flat and has one scheme.
const { id, url, token, authentication } = PushNotificationConfig.shape;
const { schemes, credentials } = authentication.unwrap().shape;

const pushConfigFields = {
  id,
  url,
  token,
  authentication: proto({ scheme: schemes.element, credentials })
    .transform(({ scheme, ...secret }) => defined({ schemes: [scheme], ...secret }))
    .optional(),
};

/** `params` of `SendMessage` and `SendStreamingMessage`. */
export const SendMessageRequest = proto({
  message: Message1,
  configuration: proto({
    acceptedOutputModes: AcceptedOutputModes.optional(),
    taskPushNotificationConfig: proto(pushConfigFields)
      .transform((config): PushNotificationConfig => defined(config))
      .optional(),
    historyLength: HistoryLength,
    returnImmediately: z.boolean().default(false),
  }).optional(),
  metadata: MessageSendParams.shape.metadata,
}).transform(({ message, configuration, metadata }): MessageSendParams => {
  const { returnImmediately, taskPushNotificationConfig: pushNotificationConfig, ...rest } = configuration ?? {};
  const settings = configuration && defined({ ...rest, blocking: !returnImmediately, pushNotificationConfig });
  return defined({ message, configuration: settings, metadata });
});

/** `params` of `GetTask`. */
export const GetTaskRequest = proto({ id: TaskId, historyLength: HistoryLength });
/** `params` of `CancelTask` and `SubscribeToTask`. */
export const TaskIdRequest = proto({ id: TaskId });
/** `params` of `GetExtendedAgentCard`. */
export const NoParams = proto({}).optional();

/** `params` of `CreateTaskPushNotificationConfig`. */
export const CreatePushConfigRequest = proto({ taskId: TaskId, ...pushConfigFields }).transform(
  ({ taskId, ...config }): TaskPushNotificationConfig => ({ taskId, pushNotificationConfig: defined(config) }),
);

/** `params` of `GetTaskPushNotificationConfig` and `DeleteTaskPushNotificationConfig`. */
export const PushConfigRequest = proto({ taskId: TaskId, id: z.string().min(1) }).transform(
  ({ taskId, id: pushNotificationConfigId }) => ({ id: taskId, pushNotificationConfigId }),
);

/** `params` of `ListTaskPushNotificationConfigs`. */
export const ListPushConfigsRequest = proto({
  taskId: TaskId,
  pageSize: z.int().min(0).max(LIMITS.pageSizeMax).optional(),
  pageToken: OptionalText,
}).transform(({ taskId, ...page }) => ({ id: taskId, ...defined(page) }));

const STATES = new Map<string, TaskState>(TaskState.options.map((state) => [stateTo1(state), state]));

/** `params` of `ListTasks`. */
export const ListTasksRequest = proto({
  contextId: OptionalText,
  status: z
    .string()
    .refine((state) => STATES.has(state), 'must be a TASK_STATE_*')
    .transform((state) => (state === 'TASK_STATE_UNSPECIFIED' ? undefined : STATES.get(state)))
    .optional(),
  pageSize: z.int().min(1).max(LIMITS.pageSizeMax).default(LIMITS.taskPageSizeDefault),
  pageToken: OptionalText,
  historyLength: HistoryLength,
  statusTimestampAfter: Instant.optional(),
  includeArtifacts: z.boolean().default(false),
}).prefault({});
export type ListTasksRequest = z.infer<typeof ListTasksRequest>;
