import { AgentRegisterResponse } from '../../contracts/agents.js';
import type { HelloPayload } from '../../contracts/frames.js';
import { ApiError } from '../client/errors.js';
import { TokenSource } from '../client/token-source.js';
import { Transport } from '../client/transport.js';
import type { AgentOptions } from './agent-options.js';

/** Who the agent is to the platform: its token, its registration, and what `hello` repeats of it. */
export class Registration {
  readonly #options: AgentOptions;
  readonly #transport: Transport;
  readonly #tokens: TokenSource;
  #instanceId: string | undefined;
  #connectUrl: string | null = null;

  constructor(options: AgentOptions) {
    this.#options = options;
    this.#instanceId = options.instanceId;
    this.#transport = new Transport(options.baseUrl, options.ca);
    this.#tokens = new TokenSource(this.#transport, options);
  }

  get instanceId(): string {
    return this.#instanceId ?? '';
  }

  get ca(): string | undefined {
    return this.#options.ca;
  }

  /** When the token in hand should be replaced, in milliseconds since the epoch. */
  get renewAtMs(): number {
    return this.#tokens.renewAtMs;
  }

  /**
   * Where and with which token to connect; registers first where that has not been done.
   * @throws ApiError | UnreachableError
   */
  async target(): Promise<{ url: string; token: string }> {
    const token = await this.#tokens.get();
    if (this.#connectUrl !== null) return { url: this.#connectUrl, token };
    try {
      this.#connectUrl = await this.#register(token);
      return { url: this.#connectUrl, token };
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 401) throw error;
      this.#tokens.invalidate(token); // the token, not the credential, may be what is refused
      const renewed = await this.#tokens.get();
      this.#connectUrl = await this.#register(renewed);
      return { url: this.#connectUrl, token: renewed };
    }
  }

  /** The platform does not know this instance any more. */
  forget(): void {
    this.#connectUrl = null;
  }

  /** The token was refused. */
  dropToken(token: string): void {
    this.#tokens.invalidate(token);
  }

  /** The members of `hello` that say who this is. */
  hello(): HelloPayload {
    const { agentType, agentVersion, card, skills, tools, maxConcurrentSessions } = this.#options;
    return {
      instance_id: this.instanceId,
      agent_type: agentType,
      agent_version: agentVersion,
      agent_card: card,
      skills,
      tools,
      max_concurrent_sessions: maxConcurrentSessions,
    };
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  async #register(token: string): Promise<string> {
    const { agentType, agentVersion, card, skills, tools, maxConcurrentSessions, context } = this.#options;
    const body = {
      agent_type: agentType,
      instance_id: this.#instanceId,
      deployment_mode: 'connected',
      agent_version: agentVersion,
      agent_card: card,
      skills,
      tools,
      max_concurrent_sessions: maxConcurrentSessions,
      context,
    };
    const answer = AgentRegisterResponse.parse(await this.#transport.json('/agents/register', { body, bearer: token }));
    this.#instanceId = answer.instance_id;
    return withInstance(answer.connect_url ?? '', answer.instance_id);
  }
}

function withInstance(connectUrl: string, instanceId: string): string {
  const url = new URL(connectUrl);
  url.searchParams.set('instance_id', instanceId);
  return url.href;
}
