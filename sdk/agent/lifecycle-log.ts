import type { AgentLog } from '../log.js';
import type { AgentError } from './agent-error.js';
import type { ErrorReporter } from './error-reporter.js';

interface LifecycleLogDeps {
  log: AgentLog;
  errorReporter: ErrorReporter;
}

/** Says where an agent stands: that it has joined, has no connection and has one again, and drains. */
export class LifecycleLog {
  readonly #deps: LifecycleLogDeps;
  #hasJoined = false;
  /** Whether the log says that there is no connection, so that it is to say when there is one. */
  #isLossLogged = false;

  constructor(deps: LifecycleLogDeps) {
    this.#deps = deps;
  }

  /** @param where the instance, the address of the platform, and of a hosted agent its own. @param resumed whether its work goes on */
  connected(where: { instance_id: string; url: string; public_url?: string }, resumed?: boolean): void {
    if (!this.#hasJoined) this.#deps.log.info(where, 'joined the platform');
    else if (this.#isLossLogged) this.#deps.log.info({ ...where, resumed }, 'connected again');
    this.#hasJoined = true;
    this.#isLossLogged = false;
  }

  /** There is no connection, and the agent tries again. @param wasConnected whether it has lost one. @param scope as of `ErrorReporter.warn` */
  retries(error: AgentError, scope: string, wasConnected: boolean): void {
    const text = `${wasConnected ? 'connection lost' : 'not connected'}, trying again`;
    if (this.#deps.errorReporter.warn(error, scope, text)) this.#isLossLogged = true;
  }

  /** The mesh node stops, and the agent moves to another. */
  meshDrains(graceSeconds: number): void {
    this.#deps.log.info({ grace_seconds: graceSeconds }, 'the mesh is shutting down');
    this.#isLossLogged = true;
  }

  /** The agent stops with so many dispatches that have not ended. */
  cutOff(dispatches: number): void {
    this.#deps.log.warn({ dispatches }, 'stopped before its work was done: what was running is given up');
  }

  draining(graceSeconds: number): void {
    this.#deps.log.info({ grace_seconds: graceSeconds }, 'draining: takes no new work and finishes what runs');
  }
}
