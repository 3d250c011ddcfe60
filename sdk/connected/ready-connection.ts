import type { HeartbeatPayload } from '../../contracts/api/agents.js';
import { CLOSE_CODES } from '../../contracts/errors.js';
import type { FrameEnvelope, WelcomePayload } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import { settledWithin } from '../bounded-wait.js';
import type { AgentLog } from '../log.js';
import type { ConnectedToolCalls } from './connected-tool-calls.js';
import type { DispatchRuns } from './dispatch-runs.js';
import type { MeshConnection } from './mesh-connection.js';

/** Extra time for the mesh to close a drained connection. */
export const DRAIN_MARGIN_MS = 5_000;
/** Tool calls end with their connection: a reconnect for a new token waits up to this long for running calls. */
const RENEW_WAIT_MS = 30_000;
/** Pause before another attempt to get a new token. */
const RENEW_RETRY_MS = 5_000;
/** Node.js fires longer timers at once. A token that lives longer is renewed when the mesh closes the connection with `TOKEN_EXPIRED`. */
const TIMER_MS_MAX = 2 ** 31 - 1;
/** A connection that has lasted this long counts as stable. */
const STABLE_MS = 60_000;

export interface ReadyConnectionOptions {
  connection: MeshConnection;
  welcome: WelcomePayload;
  runs: DispatchRuns;
  tools: ConnectedToolCalls;
  log: AgentLog;
  /** Time to renew the token, in milliseconds since the epoch. */
  renewAtMs: number;
  /** Renews a token that is about to expire. @returns whether a valid token is available; never rejects */
  renewToken(): Promise<boolean>;
  heartbeat(): HeartbeatPayload;
  /** Whether the agent is closing. */
  isClosing(): boolean;
  /** Called when the connection is stable. */
  onStable(): void;
}

/** A connection after its `welcome`: sends heartbeats, renews the token, and routes received frames. */
export class ReadyConnection {
  readonly #options: ReadyConnectionOptions;
  readonly #timers: NodeJS.Timeout[];
  #isOver = false;
  #isRenewing = false;
  #isMeshDraining = false;

  constructor(options: ReadyConnectionOptions) {
    this.#options = options;
    const { connection, welcome, runs, tools, renewAtMs, onStable } = options;
    tools.attach(connection);
    runs.connected(connection, welcome);
    this.#timers = [
      setInterval(() => this.heartbeat(), welcome.heartbeat_interval_ms),
      setTimeout(onStable, STABLE_MS),
    ];
    const renewInMs = Math.max(renewAtMs - Date.now(), 1_000);
    if (renewInMs <= TIMER_MS_MAX) this.#timers.push(setTimeout(() => void this.#renew(), renewInMs));
    this.heartbeat();
  }

  /** Whether the connection was cut for a new token, so that the next one follows at once. */
  get isRenewing(): boolean {
    return this.#isRenewing;
  }

  /** Whether the mesh announced its shutdown. */
  get isMeshDraining(): boolean {
    return this.#isMeshDraining;
  }

  heartbeat(): void {
    this.#options.connection.send('heartbeat', this.#options.heartbeat());
  }

  /** Asks for no new work. The mesh closes the socket when nothing is in flight, at the latest after the grace period. */
  requestClose(graceMs: number): void {
    const grace_seconds = Math.max(0, Math.ceil(graceMs / 1000));
    this.#options.connection.send('close_request', { grace_seconds, reason: 'agent stops' });
  }

  close(): void {
    this.#options.connection.close(CLOSE_CODES.NORMAL);
  }

  /** Called when the socket is closed. Handlers keep running, and their output is buffered. */
  lost(): void {
    this.#isOver = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#options.runs.disconnected();
    this.#options.tools.attach(null);
  }

  receive(frame: FrameEnvelope): void {
    const { runs, tools, log, isClosing } = this.#options;
    if (frame.type === 'dispatch') runs.accept(frame);
    else if (frame.type === 'tool_call') tools.receiveCall(frame, isClosing() || this.#isMeshDraining);
    else if (frame.type === 'tool_result') tools.receiveResult(frame);
    else if (frame.type === 'error') this.#receiveError(frame);
    else if (frame.type === 'close_request') this.#drain(frame);
    else log.debug({ type: frame.type }, 'frame ignored');
  }

  #receiveError({ in_reply_to, payload }: FrameEnvelope): void {
    this.#options.runs.endedByMesh(in_reply_to ?? '', String(payload.code));
    this.#options.tools.receiveError(in_reply_to ?? '', String(payload.code), String(payload.message));
  }

  /** The mesh shuts down. It closes the socket itself, at the latest after the grace period. */
  #drain(frame: FrameEnvelope): void {
    const { connection, log } = this.#options;
    const graceSeconds = Number(frame.payload.grace_seconds ?? LIMITS.closeGraceSecondsDefault);
    this.#isMeshDraining = true;
    log.info({ grace_seconds: graceSeconds }, 'the mesh is shutting down');
    this.#timers.push(setTimeout(() => connection.cut(), graceSeconds * 1000 + DRAIN_MARGIN_MS));
  }

  /** Gets the new token before it cuts the connection: without a token the resume window could pass and in-flight work would be lost. */
  async #renew(): Promise<void> {
    const { connection, tools, log, renewToken } = this.#options;
    const isRenewed = await renewToken();
    if (this.#isOver) return;
    if (!isRenewed) {
      this.#timers.push(setTimeout(() => void this.#renew(), RENEW_RETRY_MS));
      return;
    }
    await settledWithin(tools.allSettled(), RENEW_WAIT_MS);
    if (this.#isOver) return;
    this.#isRenewing = true;
    log.debug({}, 'reconnecting with a new token');
    connection.cut();
  }
}
