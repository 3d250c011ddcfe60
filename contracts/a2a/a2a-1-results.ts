import type { A2aMessage, StreamEvent, Task, TaskPushNotificationConfig, TaskState, TaskStatus } from './a2a.js';
import type { Artifact, Part } from './parts.js';
import { camelCase, defined } from './proto-json.js';

/** Converts the 0.3 forms that the platform stores into A2A 1.0 in ProtoJSON. `a2a-1-requests.ts` converts the other way. */

type Json = Record<string, unknown>;

/** The metadata key that marks a data part whose value is not an object; 0.3 wraps it as `{value}`. The A2A SDKs use the same key. */
export const WRAPPED_VALUE = 'data_part_compat';

/** `TASK_STATE_INPUT_REQUIRED` for `input-required`. */
export function stateTo1(state: TaskState): string {
  return state === 'unknown' ? 'TASK_STATE_UNSPECIFIED' : `TASK_STATE_${state.toUpperCase().replaceAll('-', '_')}`;
}

/** The members of a text or data part beside its content: 1.0 has them on the part, the 0.3 form stores them in its metadata. */
function otherMembers(metadata: Json | undefined): Json {
  const { mediaType, filename, [WRAPPED_VALUE]: _wrapped, ...rest } = metadata ?? {};
  return defined({ filename, mediaType, metadata: Object.keys(rest).length > 0 ? rest : undefined });
}

function partTo1(part: Part): Json {
  if (part.kind === 'text') return { text: part.text, ...otherMembers(part.metadata) };
  if (part.kind === 'data') {
    const data = part.metadata?.[WRAPPED_VALUE] === true && 'value' in part.data ? part.data.value : part.data;
    return { data, ...otherMembers(part.metadata) };
  }
  const { bytes, uri, name, mimeType } = part.file;
  return defined({ url: uri, raw: bytes, filename: name, mediaType: mimeType, metadata: part.metadata });
}

/** A message without `kind`, with `ROLE_*` and 1.0 parts. */
export function messageTo1({ kind: _kind, role, parts, ...rest }: A2aMessage): Json {
  return { ...rest, role: role === 'user' ? 'ROLE_USER' : 'ROLE_AGENT', parts: parts.map(partTo1) };
}

function artifactTo1(artifact: Artifact): Json {
  return { ...artifact, parts: artifact.parts.map(partTo1) };
}

function statusTo1({ state, message, ...rest }: TaskStatus): Json {
  return { state: stateTo1(state), ...rest, ...(message && { message: messageTo1(message) }) };
}

/** Converts all keys to camel case; for the metadata of tasks, which the platform writes. */
function inCamelCase(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(inCamelCase);
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [camelCase(key), inCamelCase(member)]));
}

/** A task, without an empty history. */
export function taskTo1({ kind: _kind, status, artifacts, history, metadata, ...rest }: Task): Json {
  return defined({
    ...rest,
    status: statusTo1(status),
    artifacts: artifacts?.map(artifactTo1),
    history: history?.length ? history.map(messageTo1) : undefined,
    metadata: inCamelCase(metadata),
  });
}

/** A stream event in its envelope: `{task}`, `{statusUpdate}` or `{artifactUpdate}`. */
export function eventTo1(event: StreamEvent): Json {
  switch (event.kind) {
    case 'task':
      return { task: taskTo1(event) };
    case 'status-update': {
      const { kind: _kind, final: _final, status, metadata, ...rest } = event;
      return { statusUpdate: defined({ ...rest, status: statusTo1(status), metadata: inCamelCase(metadata) }) };
    }
    case 'artifact-update': {
      const { kind: _kind, artifact, ...rest } = event;
      return { artifactUpdate: { ...rest, artifact: artifactTo1(artifact) } };
    }
    default:
      return event satisfies never;
  }
}

/** The id of an artifact that the platform created: a UUID of version 7. */
const PLATFORM_ARTIFACT_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Whether the agent replied with a single message. The status then has that message, and the only artifact has its parts and an id of the platform. */
function isMessageReply({ status: { state, message }, artifacts = [] }: Task): boolean {
  const [artifact, ...others] = artifacts;
  if (state !== 'completed' || !message || !artifact || others.length > 0) return false;
  return (
    PLATFORM_ARTIFACT_ID.test(artifact.artifactId) && JSON.stringify(artifact.parts) === JSON.stringify(message.parts)
  );
}

/** The result of `SendMessage`: `{message}`, with the id of the platform's task, when the agent replied with a message and no task; else `{task}`. */
export function sendResultTo1(task: Task): Json {
  const { message } = task.status;
  if (!message || !isMessageReply(task)) return eventTo1(task);
  return { message: messageTo1({ ...message, taskId: task.id, contextId: task.contextId }) };
}

/** A push-notification config of a task. */
export function pushConfigTo1({ taskId, pushNotificationConfig }: TaskPushNotificationConfig): Json {
  const { authentication: auth, ...config } = pushNotificationConfig;
  const [scheme] = auth?.schemes ?? [];
  return { ...config, taskId, ...(auth && { authentication: defined({ scheme, credentials: auth.credentials }) }) };
}
