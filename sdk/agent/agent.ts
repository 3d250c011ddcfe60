import type { z } from 'zod';
import { PlatformApi } from '../client/platform-api.js';
import { HostedAgent, type ServeOptions } from '../hosted/hosted-agent.js';
import { stderrLog } from '../log.js';
import { AgentError, AgentStoppedError } from './agent-error.js';
import type { AgentOptions, ConnectOptions } from './agent-options.js';
import type { AgentTask } from '../handlers/agent-task.js';
import { ConnectedAgent } from '../connected/connected-agent.js';
import type { ConnectionEvents } from './connection-events.js';
import { drainOnSignals } from './drain-on-signals.js';
import { Handlers, type MessageHandler, type SkillHandler, type SkillOptions } from '../handlers/handlers.js';
import { AgentProfile } from './agent-profile.js';
import { Registration } from '../connected/registration.js';
import { type CallTool, callToolBy, type ToolCaller } from '../tools/tool-caller.js';
import { type ToolHandler, ToolHandlers } from '../tools/tool-handlers.js';
import { ToolTraffic } from '../connected/connected-tool-calls.js';
import { TroubleReporter } from './error-reporter.js';

/** What an agent reports about itself; `busy` is for an agent that wants nothing more for a while. */
export type ReportedStatus = 'available' | 'busy' | 'draining' | 'unhealthy';

/** An agent that is in the fleet, in either way. */
interface Joined {
  readonly instanceId: string;
  readonly closed: Promise<void>;
  readonly tools: ToolCaller;
  reportStatus(status: ReportedStatus): void;
  close(graceSeconds?: number): Promise<void>;
}

type Listeners = { [Name in keyof ConnectionEvents]: ((detail: ConnectionEvents[Name]) => unknown)[] };

/** An agent: what it answers, and how it joins the fleet. Give the handlers first, then `connect()` or `serve()`. */
export class Agent {
  readonly #options: AgentOptions;
  readonly #handlers = new Handlers();
  readonly #toolHandlers = new ToolHandlers();
  readonly #listeners: Listeners = { connected: [], disconnected: [] };
  #joined: Joined | null = null;
  /** Somebody has asked for `closed`: what ends the agent is theirs to know. */
  #isWatched = false;

  constructor(options: AgentOptions) {
    this.#options = options;
  }

  /** As given, or as the platform chose it; empty before the first registration. */
  get instanceId(): string {
    return this.#joined?.instanceId || (this.#options.instanceId ?? '');
  }

  /**
   * Settles when the agent is over: after `close()`, or with `AgentStoppedError` when it was refused, deregistered or replaced. Where
   * nobody has asked for it, such an end sets the exit code of the process to 1.
   */
  get closed(): Promise<void> {
    this.#isWatched = this.#joined !== null;
    return this.#joined?.closed ?? Promise.resolve();
  }

  /** Answers messages for which there is no skill of its own. */
  onMessage(handler: MessageHandler): this {
    this.#handlers.onMessage(handler);
    return this;
  }

  /** Answers messages to a skill (`skill_id`), which the agent card names. */
  skill(id: string, handler: MessageHandler): this;
  skill<Schema extends z.ZodType>(skill: SkillOptions<Schema>, handler: SkillHandler<z.output<Schema>>): this;
  skill<Schema extends z.ZodType>(skill: string | SkillOptions<Schema>, handler: SkillHandler<z.output<Schema>>): this {
    this.#handlers.addSkill(typeof skill === 'string' ? { id: skill } : skill, handler);
    return this;
  }

  /**
   * Answers calls of a tool, by other agents and by the platform. The schema reads the arguments, and its description
   * (`z.object({…}).describe('…')`) is the tool's.
   */
  tool<Schema extends z.ZodType>(name: string, schema: Schema, handler: ToolHandler<z.output<Schema>>): this {
    this.#toolHandlers.add(name, schema, handler);
    return this;
  }

  /** Calls a tool on the agent's own behalf; within a task use `task.callTool`, which ends with the task. */
  get callTool(): CallTool {
    if (!this.#joined) throw new Error('the agent has not joined yet');
    return callToolBy(this.#joined.tools);
  }

  /**
   * Learns when the connection is there, and when it is not (again) and the next attempt comes. What a listener throws is logged, and
   * given to `onError`.
   */
  on<Name extends keyof ConnectionEvents>(name: Name, listener: (detail: ConnectionEvents[Name]) => unknown): this {
    this.#listeners[name].push(listener);
    return this;
  }

  /**
   * Registers and opens a WebSocket to the mesh, which is kept until `close()`: it comes back after 1, 2, 4, 8, 16, then 30 s
   * (±25 %), and resumes what was in flight. Settles at the first `welcome`; what may pass (nobody answers, a certificate is not
   * trusted) is logged, and tried again.
   * @throws AgentStoppedError when the platform refuses the agent, or the time is over
   * @throws Error when an address or a credential is missing, or cannot be used
   */
  async connect(options: ConnectOptions = {}): Promise<void> {
    options.signal?.throwIfAborted();
    const { api, profile, runTask, toolHandlers, log, troubles } = this.#parts();
    const connected = new ConnectedAgent({
      registration: new Registration(api, profile),
      runTask,
      tools: new ToolTraffic(toolHandlers, log),
      maxConcurrentSessions: profile.maxConcurrentSessions,
      handshakeTimeoutMs: this.#options.handshakeTimeoutMs,
      log,
      troubles,
      emit: (name, detail) => {
        for (const listener of this.#listeners[name]) void callListener(name, () => listener(detail), troubles);
      },
    });
    this.#joinAs(connected, api);
    await readyWithin(connected, options, troubles);
    this.#reportEnd(connected, troubles);
  }

  /**
   * Listens for the platform, which posts messages here: an A2A server with its agent card. Takes only what carries the platform's
   * own token for this instance. Registers, and stays registered, until `close()`.
   * @returns where it is reached
   * @throws AgentStoppedError when the platform refuses the agent
   * @throws Error when an address or a credential is missing, or the port is taken
   */
  async serve(options: ServeOptions = {}): Promise<string> {
    const parts = this.#parts();
    const hosted = new HostedAgent(parts, options);
    this.#joinAs(hosted, parts.api);
    const url = await hosted.start();
    this.#reportEnd(hosted, parts.troubles);
    return url;
  }

  /** Tells the platform at once, and with every heartbeat. */
  reportStatus(status: ReportedStatus): void {
    this.#joined?.reportStatus(status);
  }

  /**
   * Takes no new work, finishes what is running, and leaves.
   * @param graceSeconds how long running work may take (30 by default); after that it fails with `AGENT_DISCONNECTED`
   * @throws AgentStoppedError when the agent had been refused or replaced before
   */
  async close(graceSeconds?: number): Promise<void> {
    await this.#joined?.close(graceSeconds);
  }

  #parts() {
    if (this.#joined) throw new Error('the agent has joined already');
    const log = this.#options.log ?? stderrLog(`agent ${this.#options.type}`);
    return {
      api: new PlatformApi(this.#options, this.#options.type, 'agent'),
      profile: new AgentProfile(this.#options, this.#handlers, this.#toolHandlers),
      runTask: (task: AgentTask) => this.#handlers.run(task),
      toolHandlers: this.#toolHandlers,
      log,
      troubles: new TroubleReporter(log, this.#options.onError),
    };
  }

  #joinAs(joined: Joined, api: PlatformApi): void {
    this.#joined = joined;
    const ignoreSignals = this.#options.drainOnSignals === false ? null : drainOnSignals(() => this.close());
    const release = () => {
      ignoreSignals?.();
      api.destroy(); // nobody waits for what is still under way
    };
    joined.closed.then(release, release);
  }

  /** From here on no other promise of ours says why the agent has stopped. */
  #reportEnd(joined: Joined, troubles: TroubleReporter): void {
    joined.closed.catch((reason: unknown) => {
      troubles.stopped(reason);
      if (!this.#isWatched) process.exitCode ??= 1;
    });
  }
}

async function callListener(name: string, call: () => unknown, troubles: TroubleReporter): Promise<void> {
  try {
    await call();
  } catch (cause) {
    const message = `a listener of '${name}' threw: ${cause instanceof Error ? cause.message : String(cause)}`;
    troubles.warn(new AgentError('LISTENER_FAILED', message, { cause }), name);
  }
}

/** Waits for the first `welcome`, but not beyond the caller's patience. */
async function readyWithin(
  connected: ConnectedAgent,
  { signal, timeoutMs }: ConnectOptions,
  troubles: TroubleReporter,
): Promise<void> {
  const onTimeout = () => {
    const why = troubles.last ? `: ${troubles.last.message}` : '';
    connected.stop(new AgentStoppedError('CONNECT_TIMEOUT', `not connected within ${timeoutMs} ms${why}`));
  };
  const onAbort = () => connected.stop(signal?.reason);
  const timer = timeoutMs === undefined ? undefined : setTimeout(onTimeout, timeoutMs);
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    await connected.ready;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
  }
}
