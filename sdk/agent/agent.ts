import { nodeApi } from '../client/api/node-api.js';
import type { PlatformApi } from '../client/api/platform-api.js';
import { ApiClient } from '../client/api-client.js';
import { ConnectedAgent } from '../connected/connected-agent.js';
import { ConnectedToolCalls } from '../connected/connected-tool-calls.js';
import { Registration } from '../connected/registration.js';
import { Handlers, type MessageHandler, type SkillHandler, type SkillOptions } from '../handlers/handlers.js';
import type { DispatchedTask } from '../handlers/run-dispatch.js';
import { shown } from '../handlers/sendable.js';
import { HostedAgent, type ServeOptions } from '../hosted/hosted-agent.js';
import { requireKnownOptions } from '../known-options.js';
import { type AgentLog, stderrLog } from '../log.js';
import type { InputSchema, SchemaOutput } from '../schema/schema.js';
import { type CallTool, callToolBy, type ToolCaller } from '../tools/tool-caller.js';
import { type ToolHandler, ToolHandlers } from '../tools/tool-handlers.js';
import { AgentError, AgentStoppedError } from './agent-error.js';
import { AGENT_OPTIONS, type AgentOptions, type ConnectionEvents, type ConnectOptions } from './agent-options.js';
import { AgentProfile } from './agent-profile.js';
import { withConversation } from './conversation.js';
import { drainOnSignals } from './drain-on-signals.js';
import { ErrorReporter } from './error-reporter.js';

/** The status that an agent reports; a `busy` agent gets no new work until it is `available` again. */
export type ReportedStatus = 'available' | 'busy' | 'draining' | 'unhealthy';

/** A connected or hosted agent that has been started. */
interface RunningAgent {
  readonly instanceId: string;
  readonly closed: Promise<void>;
  readonly tools: ToolCaller;
  reportStatus(status: ReportedStatus): void;
  close(graceSeconds?: number): Promise<void>;
}

const GRACE_SECONDS_MAX = 3_600;

type Listeners = { [Name in keyof ConnectionEvents]: ((detail: ConnectionEvents[Name]) => unknown)[] };

/** What an agent answers with, for `agent-fleet-sdk/testing`. */
export let handlersOf: (agent: Agent) => { messages: Handlers; tools: ToolHandlers };

/** An agent. Register the handlers first, then call `connect()` or `serve()`. */
export class Agent {
  readonly #options: AgentOptions;
  readonly #log: AgentLog;
  readonly #handlers = new Handlers();
  readonly #toolHandlers = new ToolHandlers();
  readonly #listeners: Listeners = { connected: [], disconnected: [] };
  #running: RunningAgent | null = null;
  #hasJoined = false;
  /** Whether the program has read `closed`, and so handles the end of the agent itself. */
  #isClosedObserved = false;

  static {
    handlersOf = (agent) => ({ messages: agent.#handlers, tools: agent.#toolHandlers });
  }

  /** @throws TypeError for an unknown option or no `type`, RangeError for a `drainGraceSeconds` or a limit that is none */
  constructor(options: AgentOptions) {
    requireKnownOptions('an Agent', options, AGENT_OPTIONS);
    if (typeof options.type !== 'string' || options.type === '') throw new TypeError('an Agent needs a `type`');
    for (const name of ['maxConcurrentSessions', 'maxConcurrentTasks'] as const) {
      const limit = options[name] ?? 0;
      if (!Number.isInteger(limit) || limit < 0)
        throw new RangeError(`${name} is a whole number from 0, not ${shown(limit)}`);
    }
    const { drainGraceSeconds: grace = 0 } = options;
    if (!(grace >= 0 && grace <= GRACE_SECONDS_MAX)) {
      throw new RangeError(`drainGraceSeconds is a number from 0 to ${GRACE_SECONDS_MAX}, not ${grace}`);
    }
    this.#options = options;
    this.#log = options.log ?? stderrLog(`agent ${options.type}`);
  }

  /** The configured id, or the one that the platform chose; empty before the first registration. */
  get instanceId(): string {
    return this.#running?.instanceId || (this.#options.instanceId ?? '');
  }

  /**
   * Resolves after `close()`; rejects with `AgentStoppedError` when the agent was refused, deregistered or replaced. If the program never
   * reads this property, such a stop sets the exit code of the process to 1.
   */
  get closed(): Promise<void> {
    this.#isClosedObserved = this.#running !== null;
    return this.#running?.closed ?? Promise.resolve();
  }

  /** Sets the handler for messages that no skill handler takes. */
  onMessage(handler: MessageHandler): this {
    this.#handlers.onMessage(handler);
    return this;
  }

  /** Adds a handler for messages to a skill (`skill_id`); the agent card lists the skill. */
  skill(id: string, handler: MessageHandler): this;
  skill<Schema extends InputSchema>(skill: SkillOptions<Schema>, handler: SkillHandler<SchemaOutput<Schema>>): this;
  skill<Schema extends InputSchema>(
    skill: string | SkillOptions<Schema>,
    handler: SkillHandler<SchemaOutput<Schema>>,
  ): this {
    this.#handlers.addSkill(typeof skill === 'string' ? { id: skill } : skill, handler);
    return this;
  }

  /**
   * Adds a tool that other agents and the platform can call. The schema (zod, valibot, arktype, or a JSON Schema) checks the arguments; its
   * description (`z.object({…}).describe('…')`) becomes the description of the tool.
   */
  tool<Schema extends InputSchema>(name: string, schema: Schema, handler: ToolHandler<SchemaOutput<Schema>>): this {
    this.#toolHandlers.add(name, schema, handler);
    return this;
  }

  /** Calls a tool outside any task. Within a task use `task.callTool`, which is aborted with the task. */
  get callTool(): CallTool {
    if (!this.#running) throw new Error('the agent has not joined yet');
    return callToolBy(this.#running.tools, this.#log);
  }

  /**
   * Adds a listener for connection events: `connected`, and `disconnected` with the time of the next attempt. An error that a listener
   * throws is logged and passed to `onError`.
   */
  on<Name extends keyof ConnectionEvents>(name: Name, listener: (detail: ConnectionEvents[Name]) => unknown): this {
    if (!Object.hasOwn(this.#listeners, name))
      throw new TypeError(`an agent has no event ${name}: on('connected' | 'disconnected')`);
    this.#listeners[name].push(listener);
    return this;
  }

  /**
   * Registers the agent and keeps a WebSocket to the mesh open until `close()`. A lost connection is reopened after 1, 2, 4, 8, 16, then
   * 30 s (±25 %), and in-flight messages resume. Resolves at the first `welcome`. Temporary problems (nothing answers, an untrusted
   * certificate) are logged and retried.
   * @throws AgentStoppedError when the platform refuses the agent, or `timeoutMs` is over
   * @throws Error when the address or the credential is missing or invalid
   */
  async connect(options: ConnectOptions = {}): Promise<void> {
    options.signal?.throwIfAborted();
    const { api, ca, profile, runTask, toolHandlers, log, errorReporter } = this.#createDeps();
    const connected = new ConnectedAgent({
      registration: new Registration(api, profile, ca),
      runTask,
      tools: new ConnectedToolCalls(toolHandlers, log),
      capacity: profile.capacity,
      handshakeTimeoutMs: this.#options.handshakeTimeoutMs,
      retryPauseMs: this.#options.retryPauseMs,
      log,
      errorReporter,
      emit: (name, detail) => {
        for (const listener of this.#listeners[name]) void callListener(name, () => listener(detail), errorReporter);
      },
    });
    this.#start(connected, api);
    await this.#joined(waitUntilReady(connected, options, errorReporter));
    this.#reportStop(connected, errorReporter);
  }

  /**
   * Runs the agent as an A2A server that the platform posts messages to, with its agent card. Accepts only requests with the platform's
   * token for this instance. Registers the agent and keeps it registered until `close()`.
   * @returns the address at which the platform reaches the agent
   * @throws AgentStoppedError when the platform refuses the agent
   * @throws Error when an address or a credential is missing, or the port is in use
   */
  async serve(options: ServeOptions = {}): Promise<string> {
    const deps = this.#createDeps();
    const hosted = new HostedAgent({ ...deps, retryPauseMs: this.#options.retryPauseMs }, options);
    this.#start(hosted, deps.api);
    const url = await this.#joined(hosted.start());
    this.#reportStop(hosted, deps.errorReporter);
    return url;
  }

  /** Reports a status to the platform, at once and with every heartbeat. */
  reportStatus(status: ReportedStatus): void {
    this.#running?.reportStatus(status);
  }

  /**
   * Accepts no new work, finishes running work, and disconnects.
   * @param graceSeconds time limit for running work (by default the agent's `drainGraceSeconds`); work that takes longer fails with
   *   `AGENT_DISCONNECTED`
   * @throws AgentStoppedError when the agent was refused or replaced before
   */
  async close(graceSeconds = this.#options.drainGraceSeconds): Promise<void> {
    await this.#running?.close(graceSeconds);
  }

  #createDeps() {
    if (this.#hasJoined) throw new Error('the agent has joined already');
    const log = this.#log;
    const node = nodeApi(this.#options, this.#options.type, 'agent');
    let client: ApiClient | null = null;
    const sender = () => (client ??= new ApiClient(node.api));
    return {
      ...node,
      profile: new AgentProfile(this.#options, this.#handlers, this.#toolHandlers),
      runTask: (task: DispatchedTask) => this.#handlers.run(withConversation(task, node.api, sender)),
      toolHandlers: this.#toolHandlers,
      log,
      errorReporter: new ErrorReporter(log, this.#options.onError),
    };
  }

  /** An agent that could not join may try again. */
  async #joined<T>(joining: Promise<T>): Promise<T> {
    this.#hasJoined = true;
    try {
      return await joining;
    } catch (error) {
      this.#hasJoined = false;
      throw error;
    }
  }

  #start(running: RunningAgent, api: PlatformApi): void {
    this.#running = running;
    const ignoreSignals = this.#options.drainOnSignals === false ? null : drainOnSignals(() => this.close());
    const release = () => {
      ignoreSignals?.();
      api.destroy(); // no caller waits for its remaining requests
    };
    running.closed.then(release, release);
  }

  /** After the start, `closed` is the only promise that rejects when the agent stops: report the reason here as well. */
  #reportStop(running: RunningAgent, errorReporter: ErrorReporter): void {
    running.closed.catch((reason: unknown) => {
      errorReporter.stopped(reason);
      if (!this.#isClosedObserved) process.exitCode ??= 1;
    });
  }
}

async function callListener(name: string, call: () => unknown, errorReporter: ErrorReporter): Promise<void> {
  try {
    await call();
  } catch (cause) {
    const message = `a listener of '${name}' threw: ${cause instanceof Error ? cause.message : String(cause)}`;
    errorReporter.warn(new AgentError('LISTENER_FAILED', message, { cause }), name);
  }
}

/** Waits for the first `welcome`, within the caller's signal and timeout. */
async function waitUntilReady(
  connected: ConnectedAgent,
  { signal, timeoutMs }: ConnectOptions,
  errorReporter: ErrorReporter,
): Promise<void> {
  const onTimeout = () => {
    const detail = errorReporter.last ? `: ${errorReporter.last.message}` : '';
    connected.stop(new AgentStoppedError('CONNECT_TIMEOUT', `not connected within ${timeoutMs} ms${detail}`));
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
