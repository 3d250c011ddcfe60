import type { AgentLog } from '../log.js';
import type { ConnectionEvents } from './connection-events.js';
import type { Registration } from './registration.js';
import type { RunTask } from './run-dispatch.js';
import type { ToolTraffic } from './tool-traffic.js';

/** What a connected agent is made of. */
export interface ConnectedAgentParts {
  registration: Registration;
  runTask: RunTask;
  tools: ToolTraffic;
  maxConcurrentSessions: number;
  log: AgentLog;
  emit<Name extends keyof ConnectionEvents>(name: Name, detail: ConnectionEvents[Name]): void;
}
