import type { AgentLog } from '../log.js';
import type { ConnectionEvents } from './connection-events.js';
import type { Registration } from './registration.js';
import type { RunTask } from './run-dispatch.js';
import type { ToolTraffic } from './tool-traffic.js';
import type { TroubleReporter } from './trouble-reporter.js';

/** What a connected agent is made of. */
export interface ConnectedAgentParts {
  registration: Registration;
  runTask: RunTask;
  tools: ToolTraffic;
  maxConcurrentSessions: number;
  handshakeTimeoutMs: number | undefined;
  log: AgentLog;
  troubles: TroubleReporter;
  emit<Name extends keyof ConnectionEvents>(name: Name, detail: ConnectionEvents[Name]): void;
}
