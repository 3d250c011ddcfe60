import { AgentRegisterResponse } from '../../contracts/agents.js';
import type { HelloPayload } from '../../contracts/frames.js';
import { ApiError } from '../client/errors.js';
import type { PlatformApi } from '../client/platform-api.js';
import type { AgentProfile } from './profile.js';

/** Who a connected agent is to the platform: its registration, its token, and what `hello` repeats of it. */
export class Registration {
  readonly #api: PlatformApi;
  readonly #profile: AgentProfile;
  #instanceId: string | undefined;
  #connectUrl: string | null = null;

  constructor(api: PlatformApi, profile: AgentProfile) {
    this.#api = api;
    this.#profile = profile;
    this.#instanceId = profile.instanceId;
  }

  get instanceId(): string {
    return this.#instanceId ?? '';
  }

  get ca(): string | undefined {
    return this.#api.ca;
  }

  /** When the token in hand should be replaced, in milliseconds since the epoch. */
  get renewAtMs(): number {
    return this.#api.tokens.renewAtMs;
  }

  /**
   * Where and with which token to connect; registers first where that has not been done.
   * @throws ApiError | UnreachableError
   */
  async target(): Promise<{ url: string; token: string }> {
    this.#connectUrl ??= await this.#register();
    return { url: this.#connectUrl, token: await this.#api.tokens.get() };
  }

  /** The platform does not know this instance any more. */
  forget(): void {
    this.#connectUrl = null;
  }

  /** The token was refused. */
  dropToken(token: string): void {
    this.#api.tokens.invalidate(token);
  }

  /** The members of `hello` that say who this is. */
  hello(): HelloPayload {
    return { ...this.#profile.announcement(), instance_id: this.instanceId, sdk_version: this.#profile.sdkVersion };
  }

  async #register(): Promise<string> {
    const body = { ...this.#profile.registration(), instance_id: this.#instanceId, deployment_mode: 'connected' };
    const answer = await this.#api.post('/agents/register', body, AgentRegisterResponse);
    this.#instanceId = answer.instance_id;
    if (answer.connect_url === null) throw new ApiError('registered as hosted', NOT_CONNECTED);
    return withInstance(answer.connect_url, answer.instance_id);
  }
}

const NOT_CONNECTED = { status: 409, code: 'DEPLOYMENT_MODE_MISMATCH' };

function withInstance(connectUrl: string, instanceId: string): string {
  const url = new URL(connectUrl);
  url.searchParams.set('instance_id', instanceId);
  return url.href;
}
