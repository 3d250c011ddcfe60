import { isObject } from '../../contracts/json-guard.js';

/** From the wire forms of A2A 1.0 to the 0.3 forms that the platform keeps. */

type Json = Record<string, unknown>;

/** An object without the members that are null, which some servers write for absent ones. */
function present<T>(value: T): T {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null)) as T;
}

function partFrom(value: unknown): unknown {
  if (!isObject(value)) return value;
  const part = present(value);
  if ('kind' in part) return 'file' in part ? { ...part, file: present(part.file) } : part;
  const { metadata } = part;
  if ('text' in part) return { kind: 'text', text: part.text, metadata };
  if ('file' in part) return { kind: 'file', file: present(part.file), metadata };
  const isFile = 'raw' in part || 'url' in part;
  if ('data' in part || ('data' in value && !isFile)) {
    return { kind: 'data', data: isObject(part.data) ? part.data : { value: value.data }, metadata };
  }
  const content = 'raw' in part ? { bytes: part.raw } : { uri: part.url };
  const file = { ...content, name: part.filename || undefined, mimeType: part.mediaType || undefined };
  return { kind: 'file', file, metadata };
}

function partsFrom(value: unknown): unknown {
  return Array.isArray(value) ? value.map(partFrom) : value;
}

function roleFrom(role: unknown): unknown {
  return role === 'ROLE_USER' ? 'user' : role === 'ROLE_AGENT' ? 'agent' : role;
}

function stateFrom(state: unknown): unknown {
  if (typeof state !== 'string' || !state.startsWith('TASK_STATE_')) return state;
  const name = state.slice('TASK_STATE_'.length).toLowerCase().replaceAll('_', '-');
  return name === 'unspecified' ? 'unknown' : name;
}

function messageFrom(value: unknown): unknown {
  if (!isObject(value)) return value;
  return { ...present(value), kind: 'message', role: roleFrom(value.role), parts: partsFrom(value.parts) };
}

function artifactFrom(value: unknown): unknown {
  return isObject(value) ? { ...present(value), parts: partsFrom(value.parts) } : value;
}

function statusFrom(value: unknown): unknown {
  if (!isObject(value)) return value;
  const message = value.message ?? undefined;
  return { ...present(value), state: stateFrom(value.state), message: message && messageFrom(message) };
}

/** Drops the history, which repeats what the platform sent and what the status says. */
function taskFrom({ history: _history, ...given }: Json): Json {
  const task: Json = { contextId: '', ...present(given) };
  const artifacts = Array.isArray(task.artifacts) ? task.artifacts.map(artifactFrom) : undefined;
  return { ...task, kind: 'task', status: statusFrom(task.status), artifacts };
}

function updateFrom(given: Json): Json {
  const update: Json = { contextId: '', ...present(given) };
  if ('artifact' in update) return { ...update, kind: 'artifact-update', artifact: artifactFrom(update.artifact) };
  return { ...update, kind: 'status-update', status: statusFrom(update.status), final: update.final === true };
}

const ENVELOPES = ['task', 'message', 'statusUpdate', 'artifactUpdate'] as const;

/**
 * An answer of either version in 0.3 spelling: it translates 1.0's envelopes, enum names and parts, and derives a missing `kind` from the
 * members. It validates nothing; a value that is not an A2A object is returned as it is.
 */
export function fromEitherVersion(value: unknown): unknown {
  if (!isObject(value)) return value;
  const envelope =
    'kind' in value
      ? undefined
      : ENVELOPES.find((name) => isObject(value[name]) && Object.keys(present(value)).length === 1);
  const inner = envelope ? (value[envelope] as Json) : value;
  if (inner.kind === 'task' || (!('kind' in inner) && 'id' in inner && isObject(inner.status))) return taskFrom(inner);
  if (inner.kind === 'message' || (!('kind' in inner) && 'messageId' in inner)) return messageFrom(inner);
  const isUpdate = 'taskId' in inner && ('status' in inner || 'artifact' in inner);
  return isUpdate ? updateFrom(inner) : inner;
}
