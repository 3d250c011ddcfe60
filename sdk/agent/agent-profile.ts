import type { z } from 'zod';
import { ANY_SKILL, DISPATCH_URI, IDEMPOTENT_SKILLS_URI } from '../../contracts/a2a/extensions.js';
import type { AgentRegisterRequest } from '../../contracts/api/agents.js';
import type { HelloPayload } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import type { Handlers } from '../handlers/handlers.js';
import type { ToolHandlers } from '../tools/tool-handlers.js';
import { SDK_VERSION } from '../version.js';
import type { AgentOptions } from './agent-options.js';

/** The agent accepts any part; the first two entries are for clients that do not understand wildcards. */
const INPUT_MODES = ['text/plain', 'application/json', '*/*'];

/** The agent's description of itself, shared by connected and hosted agents. */
export class AgentProfile {
  readonly sdkVersion = `agent-fleet-sdk/${SDK_VERSION}`;
  readonly #options: AgentOptions;
  readonly #handlers: Handlers;
  readonly #tools: ToolHandlers;

  constructor(options: AgentOptions, handlers: Handlers, tools: ToolHandlers) {
    this.#options = options;
    this.#handlers = handlers;
    this.#tools = tools;
  }

  get instanceId(): string | undefined {
    return this.#options.instanceId;
  }

  /** How much the agent does at once, as registrations and heartbeats say it. */
  get capacity(): { max_concurrent_sessions: number; max_concurrent_tasks: number } {
    const { maxConcurrentSessions = LIMITS.maxConcurrentSessionsDefault, maxConcurrentTasks = 0 } = this.#options;
    return { max_concurrent_sessions: maxConcurrentSessions, max_concurrent_tasks: maxConcurrentTasks };
  }

  /** An A2A 0.3 agent card. @param url address of the agent; absent for a connected agent */
  card(url?: string): Record<string, unknown> {
    const { type, name = type, description = '', version = '0.0.0', card } = this.#options;
    return {
      protocolVersion: '0.3.0',
      name,
      description,
      version,
      ...(url !== undefined && { url, preferredTransport: 'JSONRPC' }),
      defaultInputModes: INPUT_MODES,
      defaultOutputModes: ['text/plain', 'application/json'],
      skills: this.#handlers.skills,
      ...card,
      capabilities: this.#capabilities(card?.capabilities, url !== undefined),
    };
  }

  /** @param given what the agent's own card says; the extensions are added */
  #capabilities(given: unknown, isHosted: boolean): object {
    const own = typeof given === 'object' && given !== null ? (given as { extensions?: unknown }) : {};
    const extensions = [...(Array.isArray(own.extensions) ? own.extensions : []), ...this.#extensions(isHosted)];
    return { streaming: true, pushNotifications: false, ...own, ...(extensions.length > 0 && { extensions }) };
  }

  #extensions(isHosted: boolean): object[] {
    const dispatch = {
      uri: DISPATCH_URI,
      description: 'Requests may have what the platform says of a dispatch beside `params`.',
      required: false,
    };
    const skills = [...this.#handlers.idempotentSkills, ...(this.#options.idempotent ? [ANY_SKILL] : [])];
    const description = 'Messages to these skills may be dispatched again after the agent was lost.';
    const idempotent = { uri: IDEMPOTENT_SKILLS_URI, description, required: false, params: { skills } };
    return [...(isHosted ? [dispatch] : []), ...(skills.length > 0 ? [idempotent] : [])];
  }

  /** The fields that `hello` and a registration share. */
  sharedFields(): Omit<HelloPayload, 'instance_id'> {
    return {
      agent_type: this.#options.type,
      agent_version: this.#options.version,
      agent_card: this.card(),
      skills: this.#handlers.skills,
      tools: this.#tools.tools,
      ...this.capacity,
    };
  }

  /** Body of `/agents/register`, without deployment mode and address. */
  registration(): z.input<typeof AgentRegisterRequest> {
    return { ...this.sharedFields(), agent_type: this.#options.type, context: this.#options.context };
  }
}
