import type { HeartbeatPayload } from '../../contracts/api/agents.js';
import { CLOSE_CODES } from '../../contracts/errors.js';
import type { FrameEnvelope } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import type { DispatchRuns } from './dispatch-runs.js';
import { TokenRenewal, type TokenRenewalOptions } from './token-renewal.js';

/** Extra time for the mesh to close a drained connection. */
const DRAIN_MARGIN_MS = 5_000;
/** A connection that has lasted this long counts as stable. */
const STABLE_MS = 60_000;

export interface ReadyConnectionOptions extends TokenRenewalOptions {
  runs: DispatchRuns;
  heartbeat(): HeartbeatPayload;
  /** Whether the agent is closing. */
  isClosing(): boolean;
  /** Called when the connection is stable. */
  onStable(): void;
  /** Called when the mesh announces its shutdown. */
  onMeshDrain(graceSeconds: number): void;
}

/** A connection after its `welcome`: sends heartbeats, renews the token, and routes received frames. */
export class ReadyConnection {
  readonly #options: ReadyConnectionOptions;
  readonly #timers: NodeJS.Timeout[];
  readonly #renewal: TokenRenewal;
  #isMeshDraining = false;

  constructor(options: ReadyConnectionOptions) {
    this.#options = options;
    const { connection, welcome, runs, tools, onStable } = options;
    tools.attach(connection, welcome.resumed);
    runs.connected(connection, welcome);
    this.#timers = [
      setInterval(() => this.heartbeat(), welcome.heartbeat_interval_ms),
      setTimeout(onStable, STABLE_MS),
    ];
    this.#renewal = new TokenRenewal(options);
    this.heartbeat();
  }

  /** Whether the connection was cut for a new token, so that the next one follows at once. */
  get isRenewing(): boolean {
    return this.#renewal.isReconnecting;
  }

  /** The token that keeps the connection open. */
  get token(): string {
    return this.#renewal.token;
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
    this.#renewal.stop();
    for (const timer of this.#timers) clearTimeout(timer);
    this.#options.runs.disconnected();
    this.#options.tools.attach(null);
  }

  receive(frame: FrameEnvelope): void {
    const { runs, tools, log, isClosing } = this.#options;
    if (this.#renewal.receive(frame)) return;
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
    const { connection, onMeshDrain } = this.#options;
    const graceSeconds = Number(frame.payload.grace_seconds ?? LIMITS.closeGraceSecondsDefault);
    this.#isMeshDraining = true;
    onMeshDrain(graceSeconds);
    this.#timers.push(setTimeout(() => connection.cut(), graceSeconds * 1000 + DRAIN_MARGIN_MS));
  }
}
