import type { z } from 'zod';
import { PlatformApi } from '../client/platform-api.js';
import { type AgentLog, SILENT_LOG } from '../log.js';
import type { AgentOptions } from './agent-options.js';
import { ConnectedAgent } from './connected-agent.js';
import type { ConnectionEvents } from './connection-events.js';
import { drainOnSignals } from './drain-on-signals.js';
import { Handlers, type MessageHandler, type SkillHandler, type SkillOptions } from './handlers.js';
import { AgentProfile } from './profile.js';
import { Registration } from './registration.js';
import { type CallTool, callToolBy } from './tool-caller.js';
import { type ToolHandler, ToolHandlers } from './tool-handlers.js';
import { ToolTraffic } from './tool-traffic.js';

/** What an agent reports about itself; `busy` is for an agent that wants nothing more for a while. */
export type ReportedStatus = 'available' | 'busy' | 'draining' | 'unhealthy';

type Listeners = { [Name in keyof ConnectionEvents]: ((detail: ConnectionEvents[Name]) => void)[] };

/** An agent: what it answers, and how it joins the fleet. Give the handlers first, then `connect()`. */
export class Agent {
  readonly #options: AgentOptions;
  readonly #log: AgentLog;
  readonly #handlers = new Handlers();
  readonly #toolHandlers = new ToolHandlers();
  readonly #tools = new ToolTraffic(this.#toolHandlers);
  readonly #listeners: Listeners = { connected: [], disconnected: [] };
  #connected: ConnectedAgent | null = null;

  constructor(options: AgentOptions) {
    this.#options = options;
    this.#log = options.log ?? SILENT_LOG;
  }

  /** As given, or as the platform chose it; empty before the first registration. */
  get instanceId(): string {
    return this.#connected?.instanceId ?? this.#options.instanceId ?? '';
  }

  /** Settles when a connected agent is over: after `close()`, or with `AgentStoppedError` when it was refused or replaced. */
  get closed(): Promise<void> {
    return this.#connected?.closed ?? Promise.resolve();
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
    return callToolBy(this.#tools);
  }

  /** Learns when the connection is there, and when it is not (again) and the next attempt comes. */
  on<Name extends keyof ConnectionEvents>(name: Name, listener: (detail: ConnectionEvents[Name]) => void): this {
    this.#listeners[name].push(listener);
    return this;
  }

  /**
   * Registers and opens a WebSocket to the mesh, which is kept until `close()`: it comes back after 1, 2, 4, 8, 16, then 30 s
   * (±25 %), and resumes what was in flight. Settles at the first `welcome`.
   * @throws AgentStoppedError when the platform refuses the agent
   * @throws Error when an address or a credential is missing
   */
  async connect(): Promise<void> {
    if (this.#connected) throw new Error('the agent is connected already');
    const profile = new AgentProfile(this.#options, this.#handlers, this.#toolHandlers);
    const api = new PlatformApi(this.#options, this.#options.type);
    const connected = new ConnectedAgent({
      registration: new Registration(api, profile),
      runTask: (task) => this.#handlers.run(task),
      tools: this.#tools,
      maxConcurrentSessions: profile.maxConcurrentSessions,
      log: this.#log,
      emit: (name, detail) => {
        for (const listener of this.#listeners[name]) listener(detail);
      },
    });
    this.#connected = connected;
    const ignoreSignals = this.#options.drainOnSignals === false ? null : drainOnSignals(() => this.close());
    const release = () => {
      ignoreSignals?.();
      api.close();
    };
    connected.closed.then(release, release);
    await connected.ready;
  }

  /** Tells the platform at once, and with every heartbeat. */
  reportStatus(status: ReportedStatus): void {
    this.#connected?.reportStatus(status);
  }

  /**
   * Takes no new work, finishes what is running, and leaves.
   * @param graceSeconds how long running work may take (30 by default); after that it fails with `AGENT_DISCONNECTED`
   * @throws AgentStoppedError when the agent had been refused or replaced before
   */
  async close(graceSeconds?: number): Promise<void> {
    await this.#connected?.close(graceSeconds);
  }
}
