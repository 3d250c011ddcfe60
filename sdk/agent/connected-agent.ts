import { setTimeout as delay } from 'node:timers/promises';
import type { HeartbeatPayload } from '../../contracts/agents.js';
import { CLOSE_CODES } from '../../contracts/errors.js';
import type { FrameEnvelope, WelcomePayload } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import { Backoff } from '../backoff.js';
import type { AgentLog } from '../log.js';
import type { ConnectedAgentParts } from './connected-agent-parts.js';
import { DispatchRuns } from './dispatch-runs.js';
import { type ConnectionEnd, MeshConnection } from './mesh-connection.js';
import type { Registration } from './registration.js';
import { stopReason, stopReasonOfError } from './stop-reason.js';
import type { ToolTraffic } from './tool-traffic.js';

/** Spare time for the mesh to end a drained connection by itself. */
const DRAIN_SLACK_MS = 5_000;
/** Tool calls end with their connection: so long a new token waits for those under way. */
const RENEW_PATIENCE_MS = 30_000;
/** Longer ones fire at once. A token that lives longer is renewed when the mesh says that it is over. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** Holds a WebSocket to the mesh and comes back whenever it is lost. */
export class ConnectedAgent {
  /** Settles at the first `welcome`; rejects with `AgentStoppedError` when the platform refuses the agent. */
  readonly ready: Promise<void>;
  /** Settles after `close()`; rejects with `AgentStoppedError` when the agent was refused or replaced. */
  readonly closed: Promise<void>;
  readonly tools: ToolTraffic;
  readonly #registration: Registration;
  readonly #runs: DispatchRuns;
  readonly #log: AgentLog;
  readonly #backoff = new Backoff();
  readonly #closing = new AbortController();
  readonly #emit: ConnectedAgentParts['emit'];
  readonly #maxConcurrentSessions: number;
  #onReady: () => void = () => undefined;
  #connection: MeshConnection | null = null;
  #resumeToken: string | null = null;
  #timers: NodeJS.Timeout[] = [];
  #status: NonNullable<HeartbeatPayload['status']> = 'available';
  #isMeshDraining = false;

  constructor({ registration, runTask, tools, maxConcurrentSessions, log, emit }: ConnectedAgentParts) {
    this.#log = log;
    this.#registration = registration;
    this.tools = tools;
    this.#runs = new DispatchRuns(runTask, tools, log);
    this.#emit = emit;
    this.#maxConcurrentSessions = maxConcurrentSessions;
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
    return this.#registration.instanceId;
  }

  /** Tells the mesh at once; repeated with every heartbeat. */
  reportStatus(status: NonNullable<HeartbeatPayload['status']>): void {
    this.#status = status;
    this.#heartbeat();
  }

  /**
   * Asks for no new work, finishes what is running, and leaves.
   * @param graceSeconds how long running work may take; after that it fails with `AGENT_DISCONNECTED`
   */
  async close(graceSeconds: number = LIMITS.closeGraceSecondsDefault): Promise<void> {
    if (!this.#closing.signal.aborted) {
      this.#status = 'draining';
      this.#heartbeat();
      this.#connection?.send('close_request', { grace_seconds: graceSeconds, reason: 'agent stops' });
      this.#closing.abort();
      if (this.#connection) await settledWithin(this.#drained(this.#connection), graceSeconds * 1000);
      this.#connection?.close(CLOSE_CODES.NORMAL);
    }
    await this.closed;
  }

  /** Nothing is left to do. A dispatch may cross the `close_request`: the mesh closes when it knows of none that is open. */
  async #drained(connection: MeshConnection): Promise<void> {
    const idle = () => Promise.all([this.#runs.idle(), this.tools.idle()]);
    const left = idle().then(() => delay(DRAIN_SLACK_MS, undefined, { ref: false }));
    await Promise.race([connection.ended, left.then(idle)]);
  }

  async #stayConnected(): Promise<void> {
    try {
      while (!this.#closing.signal.aborted) {
        const waitMs = await this.#connectOnce();
        if (!this.#closing.signal.aborted) await this.#pause(waitMs);
      }
    } finally {
      this.#runs.abortAll('AGENT_DISCONNECTED');
    }
  }

  /** One connection, from registration to its end. @returns milliseconds to wait before the next one */
  async #connectOnce(): Promise<number> {
    let renewing = false;
    let end: Pick<ConnectionEnd, 'code' | 'message'> = { code: '', message: '' };
    try {
      const { url, token } = await this.#registration.target();
      if (this.#closing.signal.aborted) return 0;
      const ended = await this.#hold(url, token, () => {
        renewing = true;
      });
      end = ended;
      this.#learn(ended, token);
    } catch (error) {
      const reason = stopReasonOfError(error);
      if (reason) throw reason;
      end = { code: '', message: error instanceof Error ? error.message : String(error) };
      this.#log.warn({ error: end.message }, 'platform not reachable');
    }
    const retryInMs = renewing ? 0 : this.#backoff.next();
    if (!this.#closing.signal.aborted) this.#emit('disconnected', { code: end.code, message: end.message, retryInMs });
    return retryInMs;
  }

  async #hold(url: string, token: string, onRenew: () => void): Promise<ConnectionEnd> {
    const connection = new MeshConnection({
      url,
      token,
      ca: this.#registration.ca,
      hello: {
        ...this.#registration.hello(),
        current_sessions: this.#runs.sessionCount,
        resume_token: this.#resumeToken,
        inflight: this.#runs.inflight(),
      },
      onWelcome: (welcome) => this.#welcomed(connection, welcome, onRenew),
      onFrame: (frame) => this.#receive(frame),
    });
    const onClosing = () => {
      if (this.#connection !== connection) connection.cut(); // it is still opening: nothing to drain
    };
    this.#closing.signal.addEventListener('abort', onClosing);
    try {
      return await connection.ended;
    } finally {
      this.#closing.signal.removeEventListener('abort', onClosing);
      this.#lost();
    }
  }

  #welcomed(connection: MeshConnection, welcome: WelcomePayload, onRenew: () => void): void {
    this.#connection = connection;
    this.#resumeToken = welcome.resume_token;
    this.#isMeshDraining = false;
    this.#backoff.reset();
    this.tools.attach(connection);
    this.#runs.connected(connection, welcome);
    const renew = async () => {
      await settledWithin(this.tools.quiet(), RENEW_PATIENCE_MS);
      if (this.#connection !== connection) return;
      onRenew();
      this.#log.debug({}, 'reconnecting with a new token');
      connection.cut();
    };
    this.#timers = [setInterval(() => this.#heartbeat(), welcome.heartbeat_interval_ms)];
    const renewInMs = Math.max(this.#registration.renewAtMs - Date.now(), 1_000);
    if (renewInMs <= TIMER_MS_MAX) this.#timers.push(setTimeout(() => void renew(), renewInMs));
    this.#log.info(
      { instance_id: this.instanceId, mesh_id: welcome.mesh_id, resumed: welcome.resumed },
      'agent connected',
    );
    this.#heartbeat();
    this.#emit('connected', { instanceId: this.instanceId, meshId: welcome.mesh_id, resumed: welcome.resumed });
    this.#onReady();
  }

  #lost(): void {
    for (const timer of this.#timers.splice(0)) clearTimeout(timer);
    if (this.#connection) this.#runs.disconnected();
    this.tools.attach(null);
    this.#connection = null;
  }

  #receive(frame: FrameEnvelope): void {
    if (frame.type === 'dispatch') this.#runs.accept(frame);
    else if (frame.type === 'tool_call') this.tools.accept(frame, this.#isDraining());
    else if (frame.type === 'tool_result') this.tools.answered(frame);
    else if (frame.type === 'error') this.#failed(frame);
    else if (frame.type === 'close_request') this.#drain(frame);
    else this.#log.debug({ type: frame.type }, 'frame ignored');
  }

  #failed({ in_reply_to, payload }: FrameEnvelope): void {
    this.#runs.endedByMesh(in_reply_to ?? '', String(payload.code));
    this.tools.failed(in_reply_to ?? '', String(payload.code), String(payload.message));
  }

  #isDraining(): boolean {
    return this.#closing.signal.aborted || this.#isMeshDraining;
  }

  /** The mesh goes away in an orderly way: it closes the socket itself, at the end of the grace at the latest. */
  #drain(frame: FrameEnvelope): void {
    const connection = this.#connection;
    const graceSeconds = Number(frame.payload.grace_seconds ?? LIMITS.closeGraceSecondsDefault);
    this.#isMeshDraining = true;
    this.#log.info({ grace_seconds: graceSeconds }, 'the mesh is shutting down');
    this.#timers.push(setTimeout(() => connection?.cut(), graceSeconds * 1000 + DRAIN_SLACK_MS));
  }

  #heartbeat(): void {
    this.#connection?.send('heartbeat', {
      instance_id: this.instanceId,
      status: this.#status,
      current_sessions: this.#runs.sessionCount,
      max_concurrent_sessions: this.#maxConcurrentSessions,
    });
  }

  /** What the end of a connection means for the next one. */
  #learn(end: ConnectionEnd, token: string): void {
    const reason = stopReason(end);
    if (reason && !this.#closing.signal.aborted) throw reason;
    if (end.httpStatus === 401 || end.closeCode === CLOSE_CODES.TOKEN_EXPIRED) this.#registration.dropToken(token);
    const isUnknown = end.httpStatus === 404 || end.closeCode === CLOSE_CODES.INSTANCE_ID_MISMATCH;
    // A mesh that nobody answers for may have moved: registering again tells where it is now.
    if (isUnknown || end.unreachable) this.#registration.forget();
    if (!this.#closing.signal.aborted) this.#log.warn({ ...end }, 'connection to the mesh ended');
  }

  async #pause(waitMs: number): Promise<void> {
    if (waitMs === 0) return;
    await delay(waitMs, undefined, { signal: this.#closing.signal }).catch(() => undefined); // closing ends the wait
  }
}

async function settledWithin(work: Promise<unknown>, timeoutMs: number): Promise<void> {
  const timer = new AbortController();
  await Promise.race([work, delay(timeoutMs, undefined, { signal: timer.signal })]);
  timer.abort();
}
