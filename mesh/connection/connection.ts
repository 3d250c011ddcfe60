import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import { agentKeyOf } from '../../agents/agent-row.js';
import { CLOSE_CODES } from '../../contracts/errors.js';
import { LIMITS } from '../../contracts/limits.js';
import { newId } from '../../runtime/ids.js';
import type { Logger } from '../../runtime/logger.js';
import { TokenBucket } from '../../runtime/token-bucket.js';
import type { ConnectionRef } from './connection-rows.js';
import { FrameSocket } from './frame-socket.js';
import { encodeFrame } from './frames.js';
import { afterPings } from './ping-schedule.js';
import { hashOfResumeToken, newResumeToken, resumeTokenFits } from './resume-token.js';
import { CLOSE_REASONS, type ConnectionEvent, type ConnectionState, next, type Step } from './states.js';
import type { StatusWriter } from './status-writer.js';
import type { MeshTimings } from './timings.js';
import type { Upgraded } from './upgraded.js';

/** Frames of one agent that cost the platform a look into the database: more than a reconnect that holds as many dispatches as it may needs at once. */
const LOOKUPS = { burst: 2 * LIMITS.dispatchesInFlightPerConnection, perSecond: 20 };

/** What the frames of an agent mean. */
export interface Protocol {
  /** Called for each text message in order, one at a time. @returns what the next one has to wait for */
  onText(connection: Connection, text: string): Promise<void> | undefined;
}

/** What a connection works with: what its end means to others on the node. */
export interface ConnectionDeps {
  log: Logger;
  timings: MeshTimings;
  /** How long a lost agent's work is kept for it, in milliseconds. */
  resumeWindowMs: number;
  statuses: Pick<StatusWriter, 'write'>;
  registry: { get(agentKey: string): Connection | undefined; remove(connection: Connection): void };
  inflight: { countOf(agentKey: string): number; failAllAsLost(agentKey: string): Promise<void> };
  tools: {
    countOf(agentKey: string): number;
    socketLost(connection: Connection): void;
    takenOver(before: Connection, connection: Connection): void;
  };
}

/** A connected agent on this node: its socket, and where it stands in the table of states. */
export class Connection implements ConnectionRef {
  readonly connectionId = newId('con');
  readonly tenant_id: string;
  readonly agent_type: string;
  readonly instance_id: string;
  readonly agentKey: string;
  readonly upgraded: Upgraded;
  readonly socket: FrameSocket;
  /** 0 until the database knows the connection. */
  epoch = 0;
  /** A frame came since this was last reset. */
  showedLife = false;
  /** When an error that the agent reported was last logged, in milliseconds of `performance.now()`. */
  errorNotedAtMs = Number.NEGATIVE_INFINITY;
  /** Of frames that cost a look into the database; beyond it they are answered RATE_LIMITED. */
  readonly lookups = new TokenBucket(LOOKUPS);
  #state: ConnectionState = 'UPGRADED';
  #resumeHash: Buffer | undefined;
  /** Of the token that this connection resumed with: the agent has no other until it has read `welcome`. */
  #earlierResumeHash: Buffer | undefined;
  #isDeregistered = false;
  #unansweredPings = 0;
  #graceMs = LIMITS.closeGraceSecondsDefault * 1_000;
  /** The timer of the present state: hello, grace or resume window. */
  #stateTimer: NodeJS.Timeout | undefined;
  /** Runs to the next ping, or from the last one to the moment at which the agent counts as dead. */
  #pingTimer: NodeJS.Timeout | undefined;
  readonly #expiry: NodeJS.Timeout;
  readonly #deps: ConnectionDeps;

  constructor(ws: WebSocket, wire: Duplex, upgraded: Upgraded, deps: ConnectionDeps, protocol: Protocol) {
    this.upgraded = upgraded;
    this.tenant_id = upgraded.tenant_id;
    this.agent_type = upgraded.agent_type;
    this.instance_id = upgraded.instance_id;
    this.agentKey = agentKeyOf(upgraded);
    this.#deps = deps;
    const log = deps.log.child({ tenant_id: upgraded.tenant_id, instance_id: upgraded.instance_id });
    const handlers = {
      onText: (text: string) => protocol.onText(this, text),
      onCaughtUp: () => this.ponged(),
      onLost: () => {
        deps.tools.socketLost(this);
        this.happen('socket_lost');
      },
    };
    this.socket = new FrameSocket(ws, wire, handlers, deps.timings, log);
    this.#stateTimer = setTimeout(() => this.happen('hello_timeout'), deps.timings.helloTimeoutMs);
    this.#expiry = setTimeout(() => this.expireToken(), Math.max(0, upgraded.token_exp * 1_000 - Date.now()));
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** Whether frames about dispatches can go out. */
  get isLive(): boolean {
    return this.#state === 'READY' || this.#state === 'DRAINING';
  }

  /**
   * Makes the token that a later socket can continue this connection with.
   * @param earlier the token that this connection resumed with, which works until a frame shows that `welcome` has arrived
   */
  issueResumeToken(earlier: string | undefined): string {
    const { token, hash } = newResumeToken();
    this.#resumeHash = hash;
    this.#earlierResumeHash = earlier === undefined ? undefined : hashOfResumeToken(earlier);
    return token;
  }

  /** Whether a hello with this token continues this connection. */
  isResumedBy(token: string | null | undefined): boolean {
    const hashes = [this.#resumeHash, this.#earlierResumeHash];
    return typeof token === 'string' && hashes.some((hash) => hash !== undefined && resumeTokenFits(token, hash));
  }

  /** A frame came. */
  showLife(): void {
    this.showedLife = true;
    if (this.isLive) this.#earlierResumeHash = undefined;
  }

  /** The work of this connection goes on in `newer`: no more timers, and an old socket is told so. */
  handOver(newer: Connection): void {
    this.#deps.tools.takenOver(this, newer);
    this.#state = 'CLOSED';
    this.#stopTimers();
    this.#deps.registry.remove(this);
    this.socket.fail('REPLACED', 'A newer connection of this instance has taken over.', CLOSE_CODES.REPLACED);
  }

  /** A pong came: the pings so far are answered. */
  ponged(): void {
    this.#unansweredPings = 0;
    this.#scheduleNextPing();
  }

  /** Ends the socket because its token no longer stands; the agent may resume with a new one. */
  expireToken(): void {
    this.socket.fail('TOKEN_EXPIRED', 'The access token has expired or was revoked.', CLOSE_CODES.TOKEN_EXPIRED);
  }

  /** The agent or the platform wants to end: no new dispatches; closed when nothing is in flight, or after the grace. */
  drain(graceMs: number): void {
    this.#graceMs = graceMs;
    this.happen('close_request');
  }

  /** As `drain`, asked for by the platform. */
  requestClose(graceMs: number, reason: string): void {
    if (this.#state === 'READY')
      this.socket.send(encodeFrame('close_request', { grace_seconds: Math.ceil(graceMs / 1_000), reason }));
    this.drain(graceMs);
  }

  /** The instance was deregistered: it may finish what it has, and its socket then closes with DEREGISTERED. */
  deregistered(): void {
    this.#isDeregistered = true;
    if (this.#state === 'SUSPENDED') this.happen('window_over');
    else this.requestClose(LIMITS.closeGraceSecondsDefault * 1_000, 'The instance was deregistered.');
  }

  /** Nothing of this agent is in flight any more. */
  becameIdle(): void {
    if (this.#state === 'DRAINING' && this.#isIdle()) this.happen('drained');
  }

  #isIdle(): boolean {
    return this.#deps.inflight.countOf(this.agentKey) + this.#deps.tools.countOf(this.agentKey) === 0;
  }

  /** Takes one step in the table of states, and does what belongs to it. */
  happen(event: ConnectionEvent): void {
    const step = next(this.#state, event);
    if (step.state === this.#state) return;
    this.#state = step.state;
    clearTimeout(this.#stateTimer);
    if (step.close !== undefined) this.#closeSocket(step.close);
    this.#entered(step);
  }

  #closeSocket(code: number): void {
    const final = this.#isDeregistered && code === CLOSE_CODES.NORMAL ? CLOSE_CODES.DEREGISTERED : code;
    const [reason, message] = CLOSE_REASONS[final] ?? [];
    if (reason && message) this.socket.fail(reason, message, final);
    else this.socket.close(final, '');
  }

  #entered(step: Step): void {
    const { resumeWindowMs, statuses, log } = this.#deps;
    const about = { instance_id: this.instance_id, connection_id: this.connectionId, state: step.state };
    const gone = step.state === 'SUSPENDED' || step.state === 'CLOSED';
    if (gone && this.epoch > 0) log.info({ ...about, close_code: step.close }, 'agent disconnected');
    else log.debug(about, 'connection changed state');
    if (step.state === 'READY') this.#scheduleNextPing();
    if (step.state === 'DRAINING') {
      void statuses.write(this, { status: 'draining' });
      this.#stateTimer = setTimeout(() => this.happen('grace_over'), this.#graceMs);
      if (this.#isIdle()) this.happen('drained');
    }
    if (step.state === 'SUSPENDED') {
      this.#stopTimers();
      // Off the routes at once; what it was doing is kept for the window.
      void statuses.write(this, { status: 'offline' });
      this.#stateTimer = setTimeout(() => this.happen('window_over'), resumeWindowMs);
    }
    if (step.state === 'CLOSED') this.#closed(step);
  }

  #closed(step: Step): void {
    const { statuses, inflight, registry } = this.#deps;
    this.#stopTimers();
    if (step.failInFlight && registry.get(this.agentKey) === this) void inflight.failAllAsLost(this.agentKey);
    registry.remove(this);
    if (this.epoch > 0) void statuses.write(this, { status: 'offline' });
  }

  #scheduleNextPing(): void {
    if (!this.isLive) return;
    clearTimeout(this.#pingTimer);
    const { inMs, then } = afterPings(this.#unansweredPings, this.#deps.timings.pingIntervalMs);
    this.#pingTimer = setTimeout(() => (then === 'ping' ? this.#ping() : this.#missed()), inMs);
  }

  #ping(): void {
    this.#unansweredPings += 1;
    this.socket.send(encodeFrame('ping', {}));
    this.#scheduleNextPing();
  }

  /** An answer may wait in an inbox that is still being worked on: that is not the agent's silence. */
  #missed(): void {
    if (this.socket.isBehind) this.#scheduleNextPing();
    else this.happen('pings_missed');
  }

  #stopTimers(): void {
    clearTimeout(this.#stateTimer);
    clearTimeout(this.#expiry);
    clearTimeout(this.#pingTimer);
  }
}
