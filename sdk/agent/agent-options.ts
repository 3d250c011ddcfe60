import type { AccessOptions } from '../access.js';
import type { AgentLog } from '../log.js';

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
  /** Nothing is logged when absent. */
  log?: AgentLog;
}

/** The agent stopped for good: refused by the platform, or replaced by another process with its `instance_id`. */
export class AgentStoppedError extends Error {
  /** The platform's code, for example `REPLACED`, `forbidden` or `DEPLOYMENT_MODE_MISMATCH`. */
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.name = 'AgentStoppedError';
    this.code = code;
  }
}
