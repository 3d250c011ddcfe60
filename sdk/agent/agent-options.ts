import { ACCESS_OPTIONS, type AccessOptions } from '../access.js';
import { namesOf } from '../known-options.js';
import type { AgentLog } from '../log.js';
import type { AgentError } from './agent-error.js';

export interface AgentOptions extends AccessOptions {
  /** The agent type. Instances of the same type share its messages. */
  type: string;
  /** Unique in the tenant; a second process with the same id replaces the first. The platform chooses one by default. */
  instanceId?: string;
  /** Display name; the type by default. */
  name?: string;
  description?: string;
  /** The agent's version. */
  version?: string;
  /**
   * Members of the A2A agent card in addition to name, description, version and skills. With `defaultInputModes` the platform sends only
   * files of these media types; it sends every type by default.
   */
  card?: Record<string, unknown>;
  /** How many sessions the agent serves at the same time; 10 by default, 0 is unlimited. */
  maxConcurrentSessions?: number;
  /** How many messages the agent has at the same time, over all its sessions; 0, the default, is unlimited. */
  maxConcurrentTasks?: number;
  /** All its handlers may run twice for one message, as `idempotent` of a skill says. */
  idempotent?: boolean;
  /** Free-form metadata about this instance. */
  context?: Record<string, unknown>;
  /** Drains the agent on SIGTERM and SIGINT: it accepts no new work, finishes running work, disconnects and lets the process exit. `true` by default. */
  drainOnSignals?: boolean;
  /** How long running work may take then, and at `close()`: 30 by default, at most 3,600. As long as your longest task. */
  drainGraceSeconds?: number;
  /**
   * By default one line on standard error when the agent joins, loses its connection and has it again, and drains, and for each warning and error;
   * `SILENT_LOG` discards everything.
   */
  log?: AgentLog;
  /**
   * Called with each connection problem that is logged, once for each kind, and with the `AgentStoppedError` that stops the agent after it
   * has connected.
   */
  onError?(error: AgentError): unknown;
  /** Time limit for the handshake, and again for the `welcome` frame; then the agent reconnects. 15,000 by default. */
  handshakeTimeoutMs?: number;
  /** The wait before the first new attempt after a failure; then 2, 4, 8, 16 and 30 times as long. 1,000 by default. */
  retryPauseMs?: number;
}

export const AGENT_OPTIONS = namesOf<AgentOptions>({
  ...ACCESS_OPTIONS,
  type: true,
  instanceId: true,
  name: true,
  description: true,
  version: true,
  card: true,
  maxConcurrentSessions: true,
  maxConcurrentTasks: true,
  idempotent: true,
  context: true,
  drainOnSignals: true,
  drainGraceSeconds: true,
  log: true,
  onError: true,
  handshakeTimeoutMs: true,
  retryPauseMs: true,
});

export interface ConnectOptions {
  /** Stops connecting; `connect()` rejects with the signal's reason. Has no effect once the agent is connected. */
  signal?: AbortSignal;
  /** Stops connecting after this time; `connect()` rejects with code `CONNECT_TIMEOUT` and the last problem. No limit by default. */
  timeoutMs?: number;
}

/** Events of an agent's connection, for `agent.on(…)`. */
export interface ConnectionEvents {
  connected: { instanceId: string; meshId: string; resumed: boolean };
  /** The connection was lost, or could not be made. `code` is the platform's; empty when it gave none. */
  disconnected: { code: string; message: string; retryInMs: number };
}
