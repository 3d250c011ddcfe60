import type { HeartbeatPayload } from '../../contracts/api/agents.js';
import { CLOSE_CODES } from '../../contracts/errors.js';
import type { WelcomePayload } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import type { AgentError } from '../agent/agent-error.js';
import type { ConnectionEvents } from '../agent/agent-options.js';
import type { AgentProfile } from '../agent/agent-profile.js';
import { describeConnectionEnd, describeError } from '../agent/describe-error.js';
import type { ErrorReporter } from '../agent/error-reporter.js';
import { LifecycleLog } from '../agent/lifecycle-log.js';
import { stopReason, stopReasonOfError } from '../agent/stop-reason.js';
import { Backoff } from '../backoff.js';
import { pause, settledWithin } from '../bounded-wait.js';
import { retryAfterMs } from '../client/api/errors.js';
import type { RunTask } from '../handlers/run-dispatch.js';
import { type ConnectTarget, ConnectTargets, type ConnectTargetsOptions } from './connect-targets.js';
import type { ConnectedToolCalls } from './connected-tool-calls.js';
import { DispatchRuns } from './dispatch-runs.js';
import { type ConnectionEnd, MeshConnection } from './mesh-connection.js';
import { ReadyConnection } from './ready-connection.js';

interface ConnectedAgentDeps extends ConnectTargetsOptions {
  runTask: RunTask;
  tools: ConnectedToolCalls;
  capacity: AgentProfile['capacity'];
  retryPauseMs: number | undefined;
  errorReporter: ErrorReporter;
  emit<Name extends keyof ConnectionEvents>(name: Name, detail: ConnectionEvents[Name]): void;
}

/** Keeps a WebSocket to the mesh open, and reconnects when it is lost. */
export class ConnectedAgent {
  /** Resolves at the first `welcome`; rejects with `AgentStoppedError` when the platform refuses the agent. */
  readonly ready: Promise<void>;
  /** Resolves after `close()`; rejects with `AgentStoppedError` when the agent was refused, deregistered or replaced. */
  readonly closed: Promise<void>;
  readonly tools: ConnectedToolCalls;
  readonly #deps: ConnectedAgentDeps;
  readonly #lifecycle: LifecycleLog;
  readonly #runs: DispatchRuns;
  readonly #backoff: Backoff;
  /** Aborted by `close()`: no new work. The agent still reconnects for running work and for answers that may not have arrived. */
  readonly #closing = new AbortController();
  /** Aborted when the agent stops: it does not reconnect any more. */
  readonly #stopped = new AbortController();
  #onReady: () => void = () => undefined;
  #ready: ReadyConnection | null = null;
  #resumeToken: string | null = null;
  readonly #targets: ConnectTargets;
  #status: NonNullable<HeartbeatPayload['status']> = 'available';
  /** End of the grace period of `close()`, by `performance.now()`. */
  #graceEndsAtMs = Number.POSITIVE_INFINITY;
  /** Whether the mesh closed the last connection with 1000, and so keeps nothing for a resume. */
  #closedNormally = false;
  #stopReason: { error: unknown } | null = null;

  constructor(deps: ConnectedAgentDeps) {
    this.#deps = deps;
    this.#backoff = new Backoff(deps.retryPauseMs);
    this.#lifecycle = new LifecycleLog(deps);
    this.#targets = new ConnectTargets(deps);
    this.tools = deps.tools;
    this.#runs = new DispatchRuns(deps.runTask, deps.tools, deps.log);
    const welcomed = new Promise<void>((resolve) => {
      this.#onReady = resolve;
    });
    this.closed = this.#stayConnected();
    this.ready = Promise.race([welcomed, this.closed]);
    this.ready.catch(() => undefined); // a program that awaits only `closed` gets the error there
    this.closed.catch(() => undefined);
  }

  /** The configured id, or the one that the platform chose; empty before the first registration. */
  get instanceId(): string {
    return this.#deps.registration.instanceId;
  }

  /** Reports a status at once and with every heartbeat. A closing agent stays `draining`. */
  reportStatus(status: NonNullable<HeartbeatPayload['status']>): void {
    if (this.#closing.signal.aborted) return;
    this.#status = status;
    this.#ready?.heartbeat();
  }

  /**
   * Asks for no new work, finishes running work, and disconnects. The mesh closes the connection once it has every answer: until then a dispatch may
   * have crossed the `close_request`, or an answer may be on a network that stands still.
   * @param graceSeconds time limit for running work; work that takes longer fails with `AGENT_DISCONNECTED`
   */
  async close(graceSeconds: number = LIMITS.closeGraceSecondsDefault): Promise<void> {
    if (!this.#closing.signal.aborted) {
      this.#graceEndsAtMs = performance.now() + graceSeconds * 1000;
      this.#status = 'draining';
      this.#lifecycle.draining(graceSeconds);
      this.#announceClose();
      this.#closing.abort();
      if (this.#ready || this.#needsConnection()) await settledWithin(this.closed, graceSeconds * 1000);
      this.#shutDown();
    }
    await this.closed;
  }

  /** Stops at once: `closed` rejects with `error`. */
  stop(error: unknown): void {
    this.#stopReason = { error };
    this.#shutDown();
  }

  #announceClose(): void {
    this.#ready?.heartbeat();
    this.#ready?.requestClose(this.#graceEndsAtMs - performance.now());
  }

  #shutDown(): void {
    this.#closing.abort();
    this.#stopped.abort();
  }

  /** Whether the agent should be connected. */
  #needsConnection(): boolean {
    if (this.#stopped.signal.aborted) return false;
    return !this.#closing.signal.aborted || (!this.#closedNormally && !this.#runs.isIdle);
  }

  async #stayConnected(): Promise<void> {
    try {
      while (this.#needsConnection()) {
        const waitMs = await this.#connectOnce();
        // `close()` ends the wait, because remaining answers have only the grace period.
        const { signal } = this.#closing.signal.aborted ? this.#stopped : this.#closing;
        if (waitMs > 0 && this.#needsConnection()) await pause(waitMs, signal);
      }
      if (this.#stopReason) throw this.#stopReason.error;
    } finally {
      this.#shutDown();
      if (this.#runs.count > 0) this.#lifecycle.cutOff(this.#runs.count);
      this.#runs.abortAll('AGENT_DISCONNECTED');
    }
  }

  /** Makes one connection and waits for its end. @returns milliseconds to wait before the next one */
  async #connectOnce(): Promise<number> {
    const { registration } = this.#deps;
    try {
      const onSlow = (error: AgentError) => this.#warn(error, registration.url);
      const target = await this.#targets.next(this.#stopped.signal, onSlow);
      const { end, ready } = await this.#runConnection(target);
      if (ready?.isRenewing) return 0;
      if (target.isOwnAddress && !ready) return this.#targets.notResumed(end, target.token);
      const isExpected = ready?.isMeshDraining || this.#closing.signal.aborted;
      const isNormal = end.closeCode === CLOSE_CODES.NORMAL;
      if (ready) this.#closedNormally = isNormal;
      // A node that stops closes the sockets of its agents once it keeps nothing for them any more.
      const isOrderly = isNormal || (ready?.isMeshDraining && end.closeCode === CLOSE_CODES.GOING_AWAY);
      if (isOrderly) this.#targets.leaveNode();
      const reason = stopReason(end);
      if (reason) throw reason;
      registration.connectionEnded(end, ready?.token ?? target.token);
      const described = describeConnectionEnd(end, target.url);
      if (!isExpected || !isOrderly) this.#retries(described, new URL(target.url).origin, ready !== null);
      return this.#disconnected({ code: end.code, message: described.message }, end.retryAfterMs);
    } catch (error) {
      if (this.#stopped.signal.aborted) return 0;
      const reason = stopReasonOfError(error, registration);
      if (reason) {
        if (!this.#closing.signal.aborted) throw reason;
        this.#shutDown(); // a closing agent has nothing more to do
        return 0;
      }
      const described = describeError(error, registration.url);
      this.#retries(described, registration.url, false);
      return this.#disconnected({ code: '', message: described.message }, retryAfterMs(error));
    }
  }

  #disconnected(detail: { code: string; message: string }, minWaitMs: number | undefined): number {
    const retryInMs = this.#backoff.next(minWaitMs);
    if (!this.#closing.signal.aborted) this.#deps.emit('disconnected', { ...detail, retryInMs });
    return retryInMs;
  }

  #warn(error: AgentError, scope: string): void {
    if (!this.#stopped.signal.aborted) this.#deps.errorReporter.warn(error, scope);
  }

  #retries(error: AgentError, scope: string, wasConnected: boolean): void {
    if (!this.#stopped.signal.aborted) this.#lifecycle.retries(error, scope, wasConnected);
  }

  async #runConnection(target: ConnectTarget): Promise<{ end: ConnectionEnd; ready: ReadyConnection | null }> {
    const { registration } = this.#deps;
    const connection = new MeshConnection({
      ...target,
      ca: registration.ca,
      hello: {
        ...registration.hello(),
        current_sessions: this.#runs.sessionCount,
        resume_token: this.#resumeToken,
        inflight: this.#runs.inflight(),
      },
      onWelcome: (welcome) => this.#welcomed(connection, welcome, target),
      onFrame: (frame) => this.#ready?.receive(frame),
    });
    const onStopped = () => (this.#ready ? this.#ready.close() : connection.cut());
    this.#stopped.signal.addEventListener('abort', onStopped);
    try {
      const end = await connection.ended;
      return { end, ready: this.#ready };
    } finally {
      this.#stopped.signal.removeEventListener('abort', onStopped);
      this.#ready?.lost();
      this.#ready = null;
    }
  }

  #welcomed(connection: MeshConnection, welcome: WelcomePayload, { url, token }: ConnectTarget): void {
    const { log, emit, registration, errorReporter } = this.#deps;
    const { resumed, mesh_id } = welcome;
    this.#resumeToken = welcome.resume_token;
    this.#targets.welcomed(welcome.resume_url, url);
    this.#backoff.reset();
    this.#ready = new ReadyConnection({
      connection,
      welcome,
      runs: this.#runs,
      tools: this.tools,
      log,
      token,
      renewAtMs: () => registration.renewAtMs,
      renewToken: () => registration.renewToken((error) => this.#warn(error, registration.url)),
      heartbeat: () => this.#heartbeat(),
      isClosing: () => this.#closing.signal.aborted,
      onStable: () => errorReporter.reset(),
      onMeshDrain: (graceSeconds) => this.#lifecycle.meshDrains(graceSeconds),
    });
    this.#lifecycle.connected({ instance_id: this.instanceId, url: registration.url }, resumed);
    log.debug({ instance_id: this.instanceId, mesh_id, resumed }, 'agent connected');
    if (this.#closing.signal.aborted) this.#announceClose();
    emit('connected', { instanceId: this.instanceId, meshId: mesh_id, resumed });
    this.#onReady();
  }

  #heartbeat(): HeartbeatPayload {
    return {
      instance_id: this.instanceId,
      status: this.#status,
      current_sessions: this.#runs.sessionCount,
      ...this.#deps.capacity,
    };
  }
}
