import type { AccessOptions } from '../access.js';
import type { AgentLog } from '../log.js';
import type { AgentError } from './agent-error.js';

export interface AgentOptions extends AccessOptions {
  /** What the agent is; several instances of a type share the work. */
  type: string;
  /** Unique in the tenant; a second process with the same one takes its place. Chosen by the platform when absent. */
  instanceId?: string;
  /** For people; the type by default. */
  name?: string;
  description?: string;
  /** The agent's own version. */
  version?: string;
  /** Members for its A2A agent card, beside those that are known: name, description, version, skills. With `defaultInputModes` the
   * platform sends it files of these media types only; it gets all kinds otherwise. */
  card?: Record<string, unknown>;
  /** 10 by default, 0 is unlimited. */
  maxConcurrentSessions?: number;
  /** Free-form facts about this instance. */
  context?: Record<string, unknown>;
  /** On SIGTERM and SIGINT: takes no new work, finishes what runs, leaves, and lets the process end. On by default. */
  drainOnSignals?: boolean;
  /** Warnings and errors on standard error by default; `SILENT_LOG` says nothing. */
  log?: AgentLog;
  /**
   * Learns what the log says of the connection: each new kind of trouble once, with what to do about it, and as `AgentStoppedError`
   * what ends the agent after it has joined.
   */
  onError?(error: AgentError): unknown;
  /** How long the mesh may take for the handshake, and again for its `welcome`, before the connection is tried again; 15,000 by default. */
  handshakeTimeoutMs?: number;
}

export interface ConnectOptions {
  /** Gives up; `connect()` rejects with the signal's reason. Without effect once the agent is connected. */
  signal?: AbortSignal;
  /** Gives up after this long; `connect()` rejects with code `CONNECT_TIMEOUT` and the last trouble. Tries for ever by default. */
  timeoutMs?: number;
}
