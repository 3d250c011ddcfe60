import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import { CLOSE_CODES } from '../../contracts/errors.js';
import { LIMITS } from '../../contracts/limits.js';
import type { DispatchRunner } from '../../messages/runner/runner.js';
import type { Clocks } from '../../runtime/clocks.js';
import { agentKeyOf, newId } from '../../runtime/ids.js';
import type { Logger } from '../../runtime/logger.js';
import { TokenBucket } from '../../runtime/token-bucket.js';
import { FrameSocket } from '../frames/frame-socket.js';
import { encodeFrame } from '../frames/frames.js';
import type { AuthenticatedAgent, ConnectionRef } from './connection-rows.js';
import { HeldToken } from './held-token.js';
import { ResumeTokens } from './resume-tokens.js';
import {
  afterPings,
  CLOSE_REASONS,
  type ConnectionEvent,
  type ConnectionState,
  next,
  type Transition,
} from './states.js';
import type { StatusWriter } from './status-writer.js';

/** Rate limit of an agent's frames that cost a query. An agent that reconnects with as many dispatches as it may have stays below it. */
const LOOKUPS = { burst: 2 * LIMITS.dispatchesInFlightPerConnection, perSecond: 20 };

/** How often each event has changed the state of a connection of this node. */
export type TransitionCounts = Partial<Record<ConnectionEvent, number>>;

/** Called for each text message of an agent in order, one at a time. @returns what the next message has to wait for */
type OnText = (connection: Connection, text: string) => Promise<void> | undefined;

/** What a connection works with on its node. */
export interface ConnectionDeps {
  log: Logger;
  clocks: Clocks;
  /** How long the dispatches of a lost agent wait for it to resume, in milliseconds. */
  resumeWindowMs: number;
  statuses: Pick<StatusWriter, 'write'>;
  registry: Pick<Registry, 'get' | 'remove'>;
  transitions: TransitionCounts;
  suspended(connection: Connection): void;
  runner: Pick<DispatchRunner, 'running' | 'agentLost'>;
  tools: {
    countOf(agentKey: string): number;
    socketLost(connection: Connection): void;
    moveCalls(from: Connection, to: Connection): void;
  };
}

/** The connection of an agent to this node: its socket and its state (states.ts). */
export class Connection implements ConnectionRef {
  readonly connectionId = newId('con');
  readonly tenant_id: string;
  readonly agent_type: string;
  readonly instance_id: string;
  readonly agentKey: string;
  readonly socket: FrameSocket;
  /** 0 until the connection is in the database. */
  epoch = 0;
  /** Whether a frame came since the reconciler last reset this. */
  receivedFrame = false;
  /** When an error that the agent reported was last logged, on `performance.now()`. */
  errorLoggedAtMs = Number.NEGATIVE_INFINITY;
  /** Limits frames that cost a query; further ones are answered with RATE_LIMITED. */
  readonly lookups = new TokenBucket(LOOKUPS);
  readonly resumeTokens = new ResumeTokens();
  readonly token: HeldToken;
  #state: ConnectionState = 'UPGRADED';
  #isDeregistered = false;
  #hasReadWelcome = false;
  #unansweredPings = 0;
  #graceMs = LIMITS.closeGraceSecondsDefault * 1_000;
  /** Timer of the current state: hello, grace or resume window. */
  #stateTimer: NodeJS.Timeout | undefined;
  /** Runs until the next ping is due, or until the agent counts as dead. */
  #pingTimer: NodeJS.Timeout | undefined;
  readonly #deps: ConnectionDeps;

  constructor(ws: WebSocket, wire: Duplex, agent: AuthenticatedAgent, deps: ConnectionDeps, onText: OnText) {
    this.tenant_id = agent.tenant_id;
    this.agent_type = agent.agent_type;
    this.instance_id = agent.instance_id;
    this.agentKey = agentKeyOf(agent);
    this.#deps = deps;
    const log = deps.log.child({ tenant_id: agent.tenant_id, instance_id: agent.instance_id });
    const handlers = {
      onText: (text: string) => onText(this, text),
      onReadingResumed: () => this.pongReceived(),
      onLost: (code: number) => {
        deps.tools.socketLost(this);
        this.transition(this.#state === 'DRAINING' && code === CLOSE_CODES.NORMAL ? 'left' : 'socket_lost');
      },
    };
    this.socket = new FrameSocket(ws, wire, handlers, deps.clocks, log);
    this.#stateTimer = setTimeout(() => this.transition('hello_timeout'), deps.clocks.helloTimeoutMs);
    this.token = new HeldToken(agent, () => this.expireToken());
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** Whether frames about dispatches can be sent. */
  get isLive(): boolean {
    return this.#state === 'READY' || this.#state === 'DRAINING';
  }

  /** A frame came, so the agent has read `welcome`. */
  noteFrame(): void {
    this.receivedFrame = true;
    if (this.#hasReadWelcome || !this.isLive) return;
    this.#hasReadWelcome = true;
    this.resumeTokens.forgetEarlier();
  }

  /**
   * Ends this connection because a newer one resumes it: its calls continue there, and its socket is closed. This is no event of states.ts,
   * because it ends the connection in any state and fails nothing.
   */
  resumedBy(newer: Connection): void {
    this.#deps.tools.moveCalls(this, newer);
    this.#state = 'CLOSED';
    this.#stopTimers();
    this.#deps.registry.remove(this);
    this.socket.fail('REPLACED', 'A newer connection of this instance has taken over.', CLOSE_CODES.REPLACED);
  }

  /** A pong answers all pings so far. */
  pongReceived(): void {
    this.#unansweredPings = 0;
    this.#scheduleNextPing();
  }

  /** Closes the socket because its token is no longer valid; the agent may resume with a new one. */
  expireToken(): void {
    this.socket.fail('TOKEN_EXPIRED', 'The access token has expired or was revoked.', CLOSE_CODES.TOKEN_EXPIRED);
  }

  /** Takes no new dispatches, and closes when nothing is in flight or after `closesAfterMs`. */
  drain(closesAfterMs: number): void {
    this.#graceMs = closesAfterMs;
    this.transition('close_request');
  }

  /** Asks the agent to close (`close_request`), and drains. @param graceMs the grace that the agent is told */
  requestClose(graceMs: number, reason: string, closesAfterMs = graceMs): void {
    if (this.#state === 'READY')
      this.socket.send(encodeFrame('close_request', { grace_seconds: Math.ceil(graceMs / 1_000), reason }));
    this.drain(closesAfterMs);
  }

  /** The instance was deregistered: it may finish what is in flight, then its socket closes with DEREGISTERED. */
  deregistered(): void {
    this.#isDeregistered = true;
    if (this.#state === 'SUSPENDED') this.transition('window_over');
    else this.requestClose(LIMITS.closeGraceSecondsDefault * 1_000, 'The instance was deregistered.');
  }

  /** Called when the agent's last dispatch or tool call may have ended: closes a draining connection. */
  becameIdle(): void {
    if (this.#state === 'DRAINING' && this.#isIdle()) this.transition('drained');
  }

  #isIdle(): boolean {
    return this.#deps.runner.running.countOf(this.agentKey) + this.#deps.tools.countOf(this.agentKey) === 0;
  }

  /** Changes to the next state of the table, and does what belongs to it. */
  transition(event: ConnectionEvent): void {
    const step = next(this.#state, event);
    if (step.state === this.#state) return;
    this.#deps.transitions[event] = (this.#deps.transitions[event] ?? 0) + 1;
    this.#state = step.state;
    clearTimeout(this.#stateTimer);
    if (step.close !== undefined) this.#closeSocket(step.close);
    this.#onEntered(step);
  }

  #closeSocket(code: number): void {
    const final = this.#isDeregistered && code === CLOSE_CODES.NORMAL ? CLOSE_CODES.DEREGISTERED : code;
    const [reason, message] = CLOSE_REASONS[final] ?? [];
    if (reason && message) this.socket.fail(reason, message, final);
    else this.socket.close(final, '');
  }

  #onEntered(step: Transition): void {
    const { resumeWindowMs, statuses, runner, log } = this.#deps;
    const about = { instance_id: this.instance_id, connection_id: this.connectionId, state: step.state };
    const gone = step.state === 'SUSPENDED' || step.state === 'CLOSED';
    if (gone && this.epoch > 0) log.info({ ...about, close_code: step.close }, 'agent disconnected');
    else log.debug(about, 'connection changed state');
    if (step.state === 'READY') this.#scheduleNextPing();
    if (step.state === 'DRAINING') {
      void statuses.write(this, { status: 'draining' });
      this.#stateTimer = setTimeout(() => this.transition('grace_over'), this.#graceMs);
      if (this.#isIdle()) this.transition('drained');
      else if (runner.running.countOf(this.agentKey) > 0)
        runner.running.whenAgentIdle(this.agentKey, () => this.becameIdle());
    }
    if (step.state === 'SUSPENDED') {
      this.#stopTimers();
      // Routing skips the agent from now on; its dispatches wait for a resume.
      void statuses.write(this, { status: 'offline' });
      this.#stateTimer = setTimeout(() => this.transition('window_over'), resumeWindowMs);
      this.#deps.suspended(this);
    }
    if (step.state === 'CLOSED') this.#onClosed(step);
  }

  #onClosed(step: Transition): void {
    const { statuses, runner, registry } = this.#deps;
    this.#stopTimers();
    if (step.failInFlight && registry.get(this.agentKey) === this) void runner.agentLost(this.agentKey);
    registry.remove(this);
    if (this.epoch > 0) void statuses.write(this, { status: 'offline' });
  }

  #scheduleNextPing(): void {
    if (!this.isLive) return;
    clearTimeout(this.#pingTimer);
    const { inMs, then } = afterPings(this.#unansweredPings, this.#deps.clocks.pingIntervalMs);
    this.#pingTimer = setTimeout(() => (then === 'ping' ? this.#ping() : this.#missed()), inMs);
  }

  #ping(): void {
    this.#unansweredPings += 1;
    this.socket.send(encodeFrame('ping', {}));
    this.#scheduleNextPing();
  }

  /** No ping counts as missed while reading is paused: its pong may not be read yet. */
  #missed(): void {
    if (this.socket.isPaused) this.#scheduleNextPing();
    else this.transition('pings_missed');
  }

  #stopTimers(): void {
    clearTimeout(this.#stateTimer);
    this.token.stop();
    clearTimeout(this.#pingTimer);
  }
}

/** The newest connection of each agent on this node, suspended ones included. It answers an agent's hellos one at a time. */
export class Registry {
  readonly #current = new Map<string, Connection>();
  readonly #hellos = new Map<string, Promise<void>>();
  readonly #epochChanges = new Map<string, Promise<void>>();

  get(agentKey: string): Connection | undefined {
    return this.#current.get(agentKey);
  }

  set(connection: Connection): void {
    this.#current.set(connection.agentKey, connection);
  }

  /** Forgets the connection unless a newer one has taken its place. */
  remove(connection: Connection): void {
    if (this.#current.get(connection.agentKey) === connection) this.#current.delete(connection.agentKey);
  }

  all(): Connection[] {
    return [...this.#current.values()];
  }

  /** Whether a hello of this agent is being answered. */
  isConnecting(agentKey: string): boolean {
    return this.#hellos.has(agentKey);
  }

  /** Resolves when this agent's epoch is not being raised. */
  async epochSettled(agentKey: string): Promise<void> {
    await this.#epochChanges.get(agentKey);
  }

  /** Raises the agent's epoch; `epochSettled` waits for it. */
  async raiseEpoch<T>(agentKey: string, work: () => Promise<T>): Promise<T> {
    const raising = work();
    const settled = raising.then(noResult, noResult);
    this.#epochChanges.set(agentKey, settled);
    try {
      return await raising;
    } finally {
      this.#epochChanges.delete(agentKey);
    }
  }

  /** Answers a hello after the earlier hellos of the same agent. */
  async serializeHello<T>(agentKey: string, work: () => Promise<T>): Promise<T> {
    const mine = (this.#hellos.get(agentKey) ?? Promise.resolve()).then(work);
    const settled = mine.then(noResult, noResult);
    this.#hellos.set(agentKey, settled);
    try {
      return await mine;
    } finally {
      if (this.#hellos.get(agentKey) === settled) this.#hellos.delete(agentKey);
    }
  }
}

function noResult(): void {}
