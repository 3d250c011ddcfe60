import { IDEMPOTENT_SKILLS_URI } from '../../../contracts/a2a/extensions.js';
import { AgentRegisterResponse } from '../../../contracts/api/agents.js';
import type { WelcomePayload } from '../../../contracts/frames.js';
import { type Behaviour, connectRaw, dispatched, type RawAgent, serve } from '../agent.js';
import { until } from '../until.js';
import type { ApiClient } from './api-client.js';
import type { TestPlatform } from './platform-process.js';

/** Where agents register and connect; it may be another process later. */
export type Home = Pick<TestPlatform, 'client' | 'devJson'>;

export interface AgentOptions {
  instanceId: string;
  agentType: string;
  maxConcurrentSessions?: number;
  skills?: { id: string }[];
  /** Those of the skills of which a message may be done twice. */
  idempotentSkills?: string[];
  /** The names of the tools that it answers. */
  tools?: string[];
}

/** Registers a connected agent; it has no socket yet. */
export async function registerAgent(client: ApiClient, options: AgentOptions): Promise<void> {
  const body = {
    instance_id: options.instanceId,
    agent_type: options.agentType,
    deployment_mode: 'connected',
    max_concurrent_sessions: options.maxConcurrentSessions,
    skills: options.skills,
    ...(options.idempotentSkills && { agent_card: cardOf(options.idempotentSkills) }),
  };
  await client.ok('/agents/register', body, AgentRegisterResponse);
}

const cardOf = (skills: string[]) => ({
  capabilities: { extensions: [{ uri: IDEMPOTENT_SKILLS_URI, params: { skills } }] },
});

/** A socket for a registered instance; nothing is said on it yet. */
export async function openSocket(platform: Home, instanceId: string): Promise<RawAgent> {
  const { mesh_url, ca_file } = platform.devJson();
  return connectRaw({ meshUrl: mesh_url, caFile: ca_file, token: await platform.client.token(), instanceId });
}

/** Registers, connects and says hello; dispatches are answered by the behaviour, which may be given later by `serve`. */
export async function joinAgent(platform: Home, options: AgentOptions, behaviour?: Behaviour): Promise<RawAgent> {
  await registerAgent(platform.client, options);
  const agent = await openSocket(platform, options.instanceId);
  if (behaviour) serve(agent, behaviour);
  const { agentType, maxConcurrentSessions, tools } = options;
  await agent.hello({ agent_type: agentType, max_concurrent_sessions: maxConcurrentSessions, ...(tools && { tools }) });
  return agent;
}

export interface JournalingOptions extends AgentOptions {
  /**
   * Says on its return what it was given, as one that goes on with its work, and answers again what it has answered: an answer may be
   * lost with its socket. Otherwise work and answers die with the socket that they came by.
   */
  keepsWork?: boolean;
}

/** One dispatch as it reached an agent. */
export interface JournalEntry {
  dispatch_id: string;
  message_id: string;
  text: string;
}

/** An agent that comes back whenever its socket is lost, and writes down every dispatch it was given. */
export class JournalingAgent {
  readonly journal: JournalEntry[] = [];
  readonly #platform: Home;
  readonly #options: JournalingOptions;
  readonly #behaviour: Behaviour;
  /** The last word about each dispatch, by its frame's id; only of one that keeps its work. */
  readonly #answers = new Map<string, { type: string; payload: object }>();
  #agent: RawAgent | undefined;
  #welcome: WelcomePayload | undefined;
  #stopped = false;
  #loop: Promise<void> = Promise.resolve();

  constructor(platform: Home, options: JournalingOptions, behaviour: Behaviour) {
    this.#platform = platform;
    this.#options = options;
    this.#behaviour = behaviour;
  }

  /** Registers and connects; from then on it reconnects until it is stopped. */
  async start(): Promise<this> {
    await registerAgent(this.#platform.client, this.#options);
    await this.#connect();
    this.#loop = this.#stay();
    return this;
  }

  /** Whether what it says reaches a platform: of frames sent meanwhile only the last of each dispatch is sent again. */
  get isOpen(): boolean {
    return this.#agent?.isOpen ?? false;
  }

  /** Loses its socket, as by a fault of the network, and comes back. */
  drop(): void {
    this.#agent?.kill();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#agent?.close();
    await this.#loop;
  }

  async #stay(): Promise<void> {
    while (!this.#stopped) {
      await this.#agent?.closed;
      if (this.#stopped) return;
      await until(() => this.#stopped || this.#connect().then(() => true), {
        timeoutMs: 180_000,
        what: `the return of ${this.#options.instanceId}`,
      });
    }
  }

  async #connect(): Promise<void> {
    const agent = await openSocket(this.#platform, this.#options.instanceId);
    agent.onFrame((frame) => {
      if (frame.type === 'dispatch') this.#serve(agent, frame);
    });
    const kept = this.#options.keepsWork ? this.journal : [];
    const inflight = kept.map(({ dispatch_id }) => ({ dispatch_id, last_seq: -1 }));
    this.#welcome = await agent.hello({ resume_token: this.#welcome?.resume_token, inflight });
    this.#agent = agent;
    for (const [frameId, { type, payload }] of this.#answers) agent.send(type, payload, frameId);
    if (this.#stopped) agent.close();
  }

  #serve(agent: RawAgent, frame: Parameters<typeof dispatched>[1]): void {
    const dispatch = dispatched(this.#options.keepsWork ? { send: this.#keep } : agent, frame);
    const { dispatch_id, session_context } = dispatch.payload;
    this.journal.push({ dispatch_id, message_id: session_context.message_id, text: dispatch.text });
    void this.#behaviour(dispatch);
  }

  /** Answers on the socket of the moment. */
  readonly #keep: RawAgent['send'] = (type, payload, inReplyTo = '') => {
    this.#answers.set(inReplyTo, { type, payload });
    return this.#agent?.send(type, payload, inReplyTo) ?? '';
  };
}
