import { setTimeout as delay } from 'node:timers/promises';
import type { HeartbeatPayload } from '../../contracts/agents.js';
import { CLOSE_CODES } from '../../contracts/errors.js';
import type { WelcomePayload } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import { Backoff } from '../backoff.js';
import { retryAfterMs } from '../client/errors.js';
import { settledWithin } from '../time-limit.js';
import type { AgentError } from '../agent/agent-error.js';
import type { ConnectedAgentParts } from './connected-agent-parts.js';
import { DispatchRuns } from './dispatch-runs.js';
import { type ConnectionEnd, MeshConnection } from './mesh-connection.js';
import { DRAIN_SLACK_MS, ReadyConnection } from './ready-connection.js';
import { stopReason, stopReasonOfError } from '../agent/stop-reason.js';
import type { ToolTraffic } from './connected-tool-calls.js';
import { troubleOfEnd, troubleOfError } from '../agent/describe-error.js';

const HANDSHAKE_TIMEOUT_MS = 15_000;

/** Holds a WebSocket to the mesh and comes back whenever it is lost. */
export class ConnectedAgent {
  /** Settles at the first `welcome`; rejects with `AgentStoppedError` when the platform refuses the agent. */
  readonly ready: Promise<void>;
  /** Settles after `close()`; rejects with `AgentStoppedError` when the agent was refused, deregistered or replaced. */
  readonly closed: Promise<void>;
  readonly tools: ToolTraffic;
  readonly #parts: ConnectedAgentParts;
  readonly #runs: DispatchRuns;
  readonly #backoff = new Backoff();
  /** No new work; it comes back for what runs, and for answers that may not have arrived. */
  readonly #closing = new AbortController();
  /** It comes back for nothing. */
  readonly #leaving = new AbortController();
  #onReady: () => void = () => undefined;
  #ready: ReadyConnection | null = null;
  #resumeToken: string | null = null;
  #status: NonNullable<HeartbeatPayload['status']> = 'available';
  /** By `performance.now()`. */
  #graceEndsAtMs = Number.POSITIVE_INFINITY;
  /** The last connection was closed by the mesh with 1000: it keeps nothing for a resume. */
  #endedInOrder = false;
  #stopReason: { error: unknown } | null = null;

  constructor(parts: ConnectedAgentParts) {
    this.#parts = parts;
    this.tools = parts.tools;
    this.#runs = new DispatchRuns(parts.runTask, parts.tools, parts.log);
    const welcomed = new Promise<void>((resolve) => {
      this.#onReady = resolve;
    });
    this.closed = this.#stayConnected();
    this.ready = Promise.race([welcomed, this.closed]);
    this.ready.catch(() => undefined); // whoever awaits `closed` alone learns it there
    this.closed.catch(() => undefined);
  }

  /** As given, or as the platform chose it; empty before the first registration. */
  get instanceId(): string {
    return this.#parts.registration.instanceId;
  }

  /** Tells the mesh at once; repeated with every heartbeat. An agent that is on its way out stays `draining`. */
  reportStatus(status: NonNullable<HeartbeatPayload['status']>): void {
    if (this.#closing.signal.aborted) return;
    this.#status = status;
    this.#ready?.heartbeat();
  }

  /**
   * Asks for no new work, finishes what is running, and leaves.
   * @param graceSeconds how long running work may take; after that it fails with `AGENT_DISCONNECTED`
   */
  async close(graceSeconds: number = LIMITS.closeGraceSecondsDefault): Promise<void> {
    if (!this.#closing.signal.aborted) {
      const graceMs = graceSeconds * 1000;
      this.#graceEndsAtMs = performance.now() + graceMs;
      this.#status = 'draining';
      this.#sayGoodbye();
      this.#closing.abort();
      if (this.#ready || this.#isWanted()) await settledWithin(Promise.race([this.closed, this.#drained()]), graceMs);
      this.#leave();
    }
    await this.closed;
  }

  /** Gives up at once: `closed` rejects with `error`. */
  stop(error: unknown): void {
    this.#stopReason = { error };
    this.#leave();
  }

  #sayGoodbye(): void {
    this.#ready?.heartbeat();
    this.#ready?.requestClose(this.#graceEndsAtMs - performance.now());
  }

  /** Nothing is left to do. A dispatch may cross the `close_request`: the mesh closes when it knows of none that is open. */
  async #drained(): Promise<void> {
    const idle = () => Promise.all([this.#runs.idle(), this.tools.idle()]);
    await idle();
    await delay(DRAIN_SLACK_MS, undefined, { ref: false });
    await idle();
  }

  #leave(): void {
    this.#closing.abort();
    this.#leaving.abort();
  }

  /** Whether there is a reason for a connection. */
  #isWanted(): boolean {
    if (this.#leaving.signal.aborted) return false;
    return !this.#closing.signal.aborted || (!this.#endedInOrder && !this.#runs.isIdle);
  }

  async #stayConnected(): Promise<void> {
    try {
      while (this.#isWanted()) {
        const waitMs = await this.#connectOnce();
        if (waitMs > 0 && this.#isWanted()) await this.#pause(waitMs);
      }
      if (this.#stopReason) throw this.#stopReason.error;
    } finally {
      this.#leave();
      this.#runs.abortAll('AGENT_DISCONNECTED');
    }
  }

  /** One connection, from registration to its end. @returns milliseconds to wait before the next one */
  async #connectOnce(): Promise<number> {
    const { registration } = this.#parts;
    try {
      const onLate = (trouble: AgentError) => this.#warn(trouble, registration.url);
      const { url, token } = await registration.target(this.#leaving.signal, onLate);
      const { end, ready } = await this.#hold(url, token);
      if (ready?.isRenewing) return 0;
      const isAnnounced = ready?.isMeshDraining || this.#closing.signal.aborted;
      const isInOrder = end.closeCode === CLOSE_CODES.NORMAL;
      if (ready) this.#endedInOrder = isInOrder;
      const reason = stopReason(end);
      if (reason) throw reason;
      registration.learn(end, token);
      const trouble = troubleOfEnd(end, url);
      if (!isAnnounced || !isInOrder) this.#warn(trouble, new URL(url).origin);
      return this.#disconnected({ code: end.code, message: trouble.message }, end.retryAfterMs);
    } catch (error) {
      if (this.#leaving.signal.aborted) return 0;
      const { url, hasJoined } = registration;
      const reason = stopReasonOfError(error, { url, hasJoined });
      if (reason) return this.#refused(reason);
      const trouble = troubleOfError(error, url);
      this.#warn(trouble, url);
      return this.#disconnected({ code: '', message: trouble.message }, retryAfterMs(error));
    }
  }

  /** An agent that is on its way out has got what it wanted. */
  #refused(reason: Error): number {
    if (!this.#closing.signal.aborted) throw reason;
    this.#leave();
    return 0;
  }

  #disconnected(why: { code: string; message: string }, leastMs: number | undefined): number {
    const retryInMs = this.#backoff.next(leastMs);
    if (!this.#closing.signal.aborted) this.#parts.emit('disconnected', { ...why, retryInMs });
    return retryInMs;
  }

  #warn(trouble: AgentError, about: string): void {
    if (!this.#leaving.signal.aborted) this.#parts.troubles.warn(trouble, about);
  }

  async #hold(url: string, token: string): Promise<{ end: ConnectionEnd; ready: ReadyConnection | null }> {
    const { registration, handshakeTimeoutMs = HANDSHAKE_TIMEOUT_MS } = this.#parts;
    const connection = new MeshConnection({
      url,
      token,
      ca: registration.ca,
      handshakeTimeoutMs,
      hello: {
        ...registration.hello(),
        current_sessions: this.#runs.sessionCount,
        resume_token: this.#resumeToken,
        inflight: this.#runs.inflight(),
      },
      onWelcome: (welcome) => this.#welcomed(connection, welcome),
      onFrame: (frame) => this.#ready?.receive(frame),
    });
    const onLeaving = () => (this.#ready ? this.#ready.close() : connection.cut());
    this.#leaving.signal.addEventListener('abort', onLeaving);
    try {
      const end = await connection.ended;
      return { end, ready: this.#ready };
    } finally {
      this.#leaving.signal.removeEventListener('abort', onLeaving);
      this.#ready?.lost();
      this.#ready = null;
    }
  }

  #welcomed(connection: MeshConnection, welcome: WelcomePayload): void {
    const { log, emit, registration, troubles } = this.#parts;
    const { resumed, mesh_id } = welcome;
    this.#resumeToken = welcome.resume_token;
    this.#backoff.reset();
    this.#ready = new ReadyConnection({
      connection,
      welcome,
      runs: this.#runs,
      tools: this.tools,
      log,
      renewAtMs: registration.renewAtMs,
      renewToken: () => registration.renewToken((trouble) => this.#warn(trouble, registration.url)),
      heartbeat: () => this.#heartbeat(),
      isClosing: () => this.#closing.signal.aborted,
      onStable: () => troubles.reset(),
    });
    log.info({ instance_id: this.instanceId, mesh_id, resumed }, 'agent connected');
    if (this.#closing.signal.aborted) this.#sayGoodbye();
    emit('connected', { instanceId: this.instanceId, meshId: mesh_id, resumed });
    this.#onReady();
  }

  #heartbeat(): HeartbeatPayload {
    return {
      instance_id: this.instanceId,
      status: this.#status,
      current_sessions: this.#runs.sessionCount,
      max_concurrent_sessions: this.#parts.maxConcurrentSessions,
    };
  }

  /** The wait before the next connection; `close()` ends it, as what is still to be delivered has little time. */
  async #pause(waitMs: number): Promise<void> {
    const { signal } = this.#closing.signal.aborted ? this.#leaving : this.#closing;
    await delay(waitMs, undefined, { signal }).catch(() => undefined);
  }
}
