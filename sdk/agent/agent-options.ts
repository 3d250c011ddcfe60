import type { z } from 'zod';
import type { Skills, Tools } from '../../contracts/agents.js';
import type { AgentTask, TaskResult } from './agent-task.js';

/** A logger in the manner of pino. */
export interface AgentLog {
  debug(fields: object, text: string): void;
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}

export interface AgentOptions {
  /** Where the platform's API is; the mesh's address is learned at registration. */
  baseUrl: string;
  clientId: string;
  clientSecret: string;
  /** Certificate authority in PEM that the mesh's certificate may come from, beside the usual ones. */
  ca?: string;
  agentType: string;
  /** Unique in the tenant; a second process with the same one takes its place. Chosen by the platform when absent. */
  instanceId?: string;
  agentVersion?: string;
  /** A2A agent card. */
  card?: Record<string, unknown>;
  skills?: z.infer<typeof Skills>;
  tools?: z.infer<typeof Tools>;
  /** 10 by default, 0 is unlimited. */
  maxConcurrentSessions?: number;
  /** Free-form facts about this instance. */
  context?: Record<string, unknown>;
  /** Answers one message. What it throws becomes `HANDLER_ERROR`. */
  onMessage: (task: AgentTask) => Promise<TaskResult>;
  /** Nothing is logged when absent. */
  log?: AgentLog;
}

export const SILENT_LOG: AgentLog = { debug() {}, info() {}, warn() {}, error() {} };

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
