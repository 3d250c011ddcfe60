import type { HeartbeatPayload } from '../../contracts/agents.js';
import { CLOSE_CODES } from '../../contracts/errors.js';
import type { FrameEnvelope, WelcomePayload } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import type { AgentLog } from '../log.js';
import { settledWithin } from '../time-limit.js';
import type { DispatchRuns } from './dispatch-runs.js';
import type { MeshConnection } from './mesh-connection.js';
import type { ToolTraffic } from './connected-tool-calls.js';

/** Spare time for the mesh to end a drained connection by itself. */
export const DRAIN_SLACK_MS = 5_000;
/** Tool calls end with their connection: so long a new token waits for those under way. */
const RENEW_PATIENCE_MS = 30_000;
/** Before the next try, where there was no new token. */
const RENEW_RETRY_MS = 5_000;
/** Longer ones fire at once. A token that lives longer is renewed when the mesh says that it is over. */
const TIMER_MS_MAX = 2 ** 31 - 1;
/** After this long without a break all counts as well. */
const STABLE_MS = 60_000;

export interface ReadyConnectionParts {
  connection: MeshConnection;
  welcome: WelcomePayload;
  runs: DispatchRuns;
  tools: ToolTraffic;
  log: AgentLog;
  /** When the token should be replaced, in milliseconds since the epoch. */
  renewAtMs: number;
  /** Gets a new token where the present one nears its end. @returns whether there is one; never rejects */
  renewToken(): Promise<boolean>;
  heartbeat(): HeartbeatPayload;
  /** The agent is on its way out. */
  isClosing(): boolean;
  /** The connection has lasted for a while. */
  onStable(): void;
}

/** A connection from its `welcome` on: what it sends by the clock, and where its frames go. */
export class ReadyConnection {
  readonly #parts: ReadyConnectionParts;
  readonly #timers: NodeJS.Timeout[];
  #isOver = false;
  #isRenewing = false;
  #isMeshDraining = false;

  constructor(parts: ReadyConnectionParts) {
    this.#parts = parts;
    const { connection, welcome, runs, tools, renewAtMs, onStable } = parts;
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

  /** It was cut for a new token: the next one follows at once. */
  get isRenewing(): boolean {
    return this.#isRenewing;
  }

  /** The mesh said that it goes away. */
  get isMeshDraining(): boolean {
    return this.#isMeshDraining;
  }

  heartbeat(): void {
    this.#parts.connection.send('heartbeat', this.#parts.heartbeat());
  }

  /** Asks for no new work; the mesh closes the socket when nothing is open, and at the end of the grace at the latest. */
  requestClose(graceMs: number): void {
    const grace_seconds = Math.max(0, Math.ceil(graceMs / 1000));
    this.#parts.connection.send('close_request', { grace_seconds, reason: 'agent stops' });
  }

  close(): void {
    this.#parts.connection.close(CLOSE_CODES.NORMAL);
  }

  /** The socket is gone: handlers go on, their output is held. */
  lost(): void {
    this.#isOver = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#parts.runs.disconnected();
    this.#parts.tools.attach(null);
  }

  receive(frame: FrameEnvelope): void {
    const { runs, tools, log, isClosing } = this.#parts;
    if (frame.type === 'dispatch') runs.accept(frame);
    else if (frame.type === 'tool_call') tools.accept(frame, isClosing() || this.#isMeshDraining);
    else if (frame.type === 'tool_result') tools.answered(frame);
    else if (frame.type === 'error') this.#failed(frame);
    else if (frame.type === 'close_request') this.#drain(frame);
    else log.debug({ type: frame.type }, 'frame ignored');
  }

  #failed({ in_reply_to, payload }: FrameEnvelope): void {
    this.#parts.runs.endedByMesh(in_reply_to ?? '', String(payload.code));
    this.#parts.tools.failed(in_reply_to ?? '', String(payload.code), String(payload.message));
  }

  /** The mesh goes away in an orderly way: it closes the socket itself, at the end of the grace at the latest. */
  #drain(frame: FrameEnvelope): void {
    const { connection, log } = this.#parts;
    const graceSeconds = Number(frame.payload.grace_seconds ?? LIMITS.closeGraceSecondsDefault);
    this.#isMeshDraining = true;
    log.info({ grace_seconds: graceSeconds }, 'the mesh is shutting down');
    this.#timers.push(setTimeout(() => connection.cut(), graceSeconds * 1000 + DRAIN_SLACK_MS));
  }

  /** The new token comes first: a connection that is cut without one is lost, with all that is in flight, when none comes in time. */
  async #renew(): Promise<void> {
    const { connection, tools, log, renewToken } = this.#parts;
    const isRenewed = await renewToken();
    if (this.#isOver) return;
    if (!isRenewed) {
      this.#timers.push(setTimeout(() => void this.#renew(), RENEW_RETRY_MS));
      return;
    }
    await settledWithin(tools.quiet(), RENEW_PATIENCE_MS);
    if (this.#isOver) return;
    this.#isRenewing = true;
    log.debug({}, 'reconnecting with a new token');
    connection.cut();
  }
}
