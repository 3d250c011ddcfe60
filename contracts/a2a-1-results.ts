import type { A2aMessage, StreamEvent, Task, TaskState, TaskStatus } from './a2a.js';
import type { Artifact, Part } from './parts.js';
import { camelCase } from './proto-json.js';

/** The 0.3 forms that the platform keeps, as A2A 1.0 spells them in ProtoJSON (a2a.md). Pure; the reverse is `a2a-1-requests.ts`. */

type Json = Record<string, unknown>;

/** Marks a data part whose value is no object: 0.3 wraps it as `{value}`. The mark is the one of the A2A SDKs. */
export const WRAPPED_VALUE = 'data_part_compat';

/** `TASK_STATE_INPUT_REQUIRED` for `input-required`. */
export function stateTo1(state: TaskState): string {
  return state === 'unknown' ? 'TASK_STATE_UNSPECIFIED' : `TASK_STATE_${state.toUpperCase().replaceAll('-', '_')}`;
}

/** What 1.0 says of a text or data part beside its content is kept in the part's metadata, of which it is taken again. */
function besides(metadata: Json | undefined): Json {
  if (!metadata) return {};
  const { mediaType, filename, [WRAPPED_VALUE]: _wrapped, ...rest } = metadata;
  return {
    ...(filename !== undefined && { filename }),
    ...(mediaType !== undefined && { mediaType }),
    ...(Object.keys(rest).length > 0 && { metadata: rest }),
  };
}

function partTo1(part: Part): Json {
  if (part.kind === 'text') return { text: part.text, ...besides(part.metadata) };
  if (part.kind === 'data') {
    const data = part.metadata?.[WRAPPED_VALUE] === true && 'value' in part.data ? part.data.value : part.data;
    return { data, ...besides(part.metadata) };
  }
  const { bytes, uri, name, mimeType } = part.file;
  return {
    ...(bytes === undefined ? { url: uri } : { raw: bytes }),
    ...(name !== undefined && { filename: name }),
    ...(mimeType !== undefined && { mediaType: mimeType }),
    ...(part.metadata && { metadata: part.metadata }),
  };
}

/** A message: no `kind`, `ROLE_*`, parts by their content. */
export function messageTo1({ kind: _kind, role, parts, ...rest }: A2aMessage): Json {
  return { ...rest, role: role === 'user' ? 'ROLE_USER' : 'ROLE_AGENT', parts: parts.map(partTo1) };
}

function artifactTo1(artifact: Artifact): Json {
  return { ...artifact, parts: artifact.parts.map(partTo1) };
}

function statusTo1({ state, message, ...rest }: TaskStatus): Json {
  return { state: stateTo1(state), ...rest, ...(message && { message: messageTo1(message) }) };
}

/** Keys as 1.0 spells every key; of what the platform itself says about a task. */
function inCamelCase(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(inCamelCase);
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [camelCase(key), inCamelCase(member)]));
}

function metadataTo1(metadata: Json | undefined): Json {
  return metadata ? { metadata: inCamelCase(metadata) } : {};
}

/** A task; an empty history is left out. */
export function taskTo1({ kind: _kind, status, artifacts, history, metadata, ...rest }: Task): Json {
  return {
    ...rest,
    status: statusTo1(status),
    ...(artifacts && { artifacts: artifacts.map(artifactTo1) }),
    ...(history && history.length > 0 && { history: history.map(messageTo1) }),
    ...metadataTo1(metadata),
  };
}

/** An event of a stream in its envelope: `{task}`, `{statusUpdate}` or `{artifactUpdate}`. */
export function eventTo1(event: StreamEvent): Json {
  switch (event.kind) {
    case 'task':
      return { task: taskTo1(event) };
    case 'status-update': {
      const { kind: _kind, final: _final, status, metadata, ...rest } = event;
      return { statusUpdate: { ...rest, status: statusTo1(status), ...metadataTo1(metadata) } };
    }
    case 'artifact-update': {
      const { kind: _kind, artifact, ...rest } = event;
      return { artifactUpdate: { ...rest, artifact: artifactTo1(artifact) } };
    }
    default:
      return event satisfies never;
  }
}
