import type { AgentLog } from '../log.js';
import type { ConnectionEvents } from '../agent/connection-events.js';
import type { Registration } from './registration.js';
import type { RunTask } from '../handlers/run-handler.js';
import type { ToolTraffic } from './connected-tool-calls.js';
import type { TroubleReporter } from '../agent/error-reporter.js';

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
