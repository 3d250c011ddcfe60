import type { SendMetadata } from '../../../contracts/a2a/a2a.js';
import type { Part } from '../../../contracts/a2a/parts.js';
import { requireKnownOptions } from '../../known-options.js';
import { toWire, wireName } from '../../wire/names.js';
import type { CallOptions } from '../api/platform-api.js';
import type { JsonObject } from '../transport/transport.js';

/** Where a message goes, and how long it may take. */
export interface RoutingOptions {
  /** Any agent of this type. */
  agentType?: string;
  /** This agent. */
  instanceId?: string;
  /** An instance; if there is none of that id, an agent type. */
  targetAgent?: string;
  /** The skill that is asked for. */
  skillId?: string;
  /** The end user that the message is sent for. */
  userId?: string;
  /** The arguments of the skill. */
  args?: Record<string, unknown>;
  /** Time limit for the answer in milliseconds. */
  deadlineMs?: number;
  /** How long the message waits for an agent, in milliseconds; by default as long as `deadlineMs` while one is online, else 30,000. */
  queueWaitMs?: number;
  /** How many agents it came through: `task.client` counts them. */
  hops?: number;
  /** Media types that the caller accepts. */
  acceptedOutputModes?: string[];
}

const ROUTING = {
  agentType: true,
  instanceId: true,
  targetAgent: true,
  skillId: true,
  userId: true,
  args: true,
  deadlineMs: true,
  queueWaitMs: true,
  hops: true,
  acceptedOutputModes: true,
} as const satisfies Record<keyof RoutingOptions, true>;

/** What the platform itself reads from a message's metadata. */
type WireName = keyof { [Name in keyof SendMetadata as string extends Name ? never : Name]: true };
type Reserved = keyof RoutingOptions | WireName | keyof OwnOptions | keyof CallOptions;

/** The caller's own data about a message, which the agent gets. An option of `send` that is put here by mistake does not compile. */
export type MessageMetadata = { readonly [name: string]: unknown } & { readonly [Name in Reserved]?: never };

interface OwnOptions {
  /** The session; a new one is opened by default. */
  contextId?: string;
  /** The `input-required` task that this message answers. */
  taskId?: string;
  /** Idempotency key: the same key returns the same task. A random one by default. */
  messageId?: string;
  /** `false` returns the task at once, in its current state. */
  blocking?: boolean;
  /**
   * Goes on through questions: waits until the task has ended, while humans answer what it asks, for days if need be. `signal` bounds that.
   */
  throughQuestions?: boolean;
  /** W3C trace context of the caller; on Node the current span of OpenTelemetry by default, where the program has that. */
  traceparent?: string;
}

/** Options of `send` and `stream`. */
export interface SendOptions extends OwnOptions, RoutingOptions, CallOptions {
  metadata?: MessageMetadata;
}

const OWN = [
  'contextId',
  'taskId',
  'messageId',
  'blocking',
  'throughQuestions',
  'traceparent',
  'signal',
] as const satisfies (keyof OwnOptions | keyof CallOptions)[];
const OPTIONS = [...Object.keys(ROUTING), ...OWN];
const KNOWN: readonly string[] = [...OPTIONS, 'metadata'];

/**
 * `params` of `message/send` and `message/stream`.
 * @throws TypeError for an unknown option, and for one in `metadata`, where it would have no effect or another name
 */
export function messageParams(input: string | Part[], messageId: string, options: SendOptions): JsonObject {
  requireKnownOptions('a message', options, KNOWN, ' Members of your own go into metadata.');
  const { contextId, taskId, blocking } = options;
  const metadata = metadataOf(options);
  const message = {
    kind: 'message',
    messageId,
    role: 'user',
    parts: typeof input === 'string' ? [{ kind: 'text', text: input }] : input,
    ...(contextId && { contextId }),
    ...(taskId && { taskId }),
  };
  return {
    message,
    ...(blocking !== undefined && { configuration: { blocking } }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
  };
}

function metadataOf({ metadata = {}, ...options }: SendOptions): JsonObject {
  const names = Object.keys(ROUTING) as (keyof RoutingOptions)[];
  const routing = Object.fromEntries(names.map((name) => [name, options[name]]));
  for (const name of OPTIONS) {
    const found = [name, wireName(name)].find((one) => Object.hasOwn(metadata, one));
    if (found)
      throw new TypeError(`metadata.${found} is the option \`${name}\` of the message: give it beside metadata`);
  }
  return { ...metadata, ...(toWire(routing, { args: true }) as JsonObject) };
}
