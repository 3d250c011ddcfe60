import { OkResponse } from '../../contracts/api/agents.js';
import { CLOSE_CODES } from '../../contracts/errors.js';
import type { HelloPayload } from '../../contracts/frames.js';
import type { AgentError } from '../agent/agent-error.js';
import type { AgentProfile } from '../agent/agent-profile.js';
import { describeError, isHostUnreachable, isUnknownAgent } from '../agent/describe-error.js';
import { Registered } from '../agent/registered.js';
import { SILENCE_MS, warnWhenSlow } from '../agent/slow-response.js';
import { ApiError } from '../client/api/errors.js';
import type { PlatformApi } from '../client/api/platform-api.js';
import { unlessAborted } from '../unless-aborted.js';
import type { ConnectionEnd } from './mesh-connection.js';

/** After this many unanswered handshakes in a row, the mesh may have moved. */
const UNANSWERED_MAX = 3;

/** The registration of a connected agent: its instance id, its token, the address of the mesh, and its `hello`. */
export class Registration {
  readonly #api: PlatformApi;
  readonly #profile: AgentProfile;
  #instanceId: string | undefined;
  #connectUrl: string | null = null;
  #hasJoined = false;
  #unanswered = 0;

  /** @param ca certificate authority of the platform in PEM */
  constructor(
    api: PlatformApi,
    profile: AgentProfile,
    readonly ca: string | undefined,
  ) {
    this.#api = api;
    this.#profile = profile;
    this.#instanceId = profile.instanceId;
  }

  get instanceId(): string {
    return this.#instanceId ?? '';
  }

  /** Address of the API. */
  get url(): string {
    return this.#api.baseUrl;
  }

  /** Whether the platform has registered the agent in this process. */
  get hasJoined(): boolean {
    return this.#hasJoined;
  }

  /** Time to renew the current token, in milliseconds since the epoch. */
  get renewAtMs(): number {
    return this.#api.tokens.renewAtMs;
  }

  /**
   * Address and token for the next connection. Registers the agent first, if necessary.
   * @param onSlow called when the platform takes longer than usual
   * @throws ApiError | UnreachableError | the signal's reason
   */
  async connectTarget(
    signal: AbortSignal,
    onSlow: (error: AgentError) => void,
  ): Promise<{ url: string; token: string }> {
    return warnWhenSlow(this.#connectTarget(signal), this.url, onSlow);
  }

  /** Renews a token that is about to expire. @returns a valid token, or null when there is none; never rejects */
  async renewToken(onError: (error: AgentError) => void): Promise<string | null> {
    try {
      return await this.#api.tokens.get();
    } catch (error) {
      onError(describeError(error, this.url));
      return null;
    }
  }

  /** Records the end of a connection: invalidates a refused token and an outdated address. @param token that the connection used */
  connectionEnded(end: ConnectionEnd, token: string): void {
    const { httpStatus, closeCode } = end;
    if (httpStatus === 401 || closeCode === CLOSE_CODES.TOKEN_EXPIRED) this.#api.tokens.invalidate(token);
    const isUnknownInstance = httpStatus === 404 || closeCode === CLOSE_CODES.INSTANCE_ID_MISMATCH;
    this.#unanswered = end.nothingSent ? this.#unanswered + 1 : 0;
    // A busy mesh keeps its address. When the mesh may have moved, a new registration returns its current address.
    const mayHaveMoved = isHostUnreachable(end.error) || this.#unanswered >= UNANSWERED_MAX;
    if (!isUnknownInstance && !mayHaveMoved) return;
    this.#unanswered = 0;
    this.#connectUrl = null;
  }

  /** The members of `hello` that identify the agent. */
  hello(): HelloPayload {
    return { ...this.#profile.sharedFields(), instance_id: this.instanceId, sdk_version: this.#profile.sdkVersion };
  }

  async #connectTarget(signal: AbortSignal): Promise<{ url: string; token: string }> {
    this.#connectUrl ??= await this.#register(signal);
    return { url: this.#connectUrl, token: await unlessAborted(this.#api.tokens.get(), signal) };
  }

  async #register(signal: AbortSignal): Promise<string> {
    if (this.#hasJoined) await this.#checkNotDeregistered(signal);
    const body = { ...this.#profile.registration(), instance_id: this.#instanceId, deployment_mode: 'connected' };
    const posting = this.#api.post('/agents/register', body, Registered, { signal, silenceMs: SILENCE_MS });
    const answer = await unlessAborted(posting, signal); // the token request inside it does not observe the signal
    this.#hasJoined = true;
    this.#instanceId = answer.instance_id;
    if (answer.connect_url === null) throw new ApiError('registered as hosted', NOT_CONNECTED);
    return withInstance(answer.connect_url, answer.instance_id);
  }

  /** A new registration must not undo a deregistration. @throws ApiError with `DEREGISTERED` when the agent was deregistered meanwhile */
  async #checkNotDeregistered(signal: AbortSignal): Promise<void> {
    const body = { instance_id: this.instanceId };
    const posting = this.#api.post('/agents/heartbeat', body, OkResponse, { signal, silenceMs: SILENCE_MS });
    await unlessAborted(posting, signal).catch((error: unknown) => {
      if (!isUnknownAgent(error)) throw error;
    });
  }
}

const NOT_CONNECTED = { status: 409, code: 'DEPLOYMENT_MODE_MISMATCH' };

function withInstance(connectUrl: string, instanceId: string): string {
  const url = new URL(connectUrl);
  url.searchParams.set('instance_id', instanceId);
  return url.href;
}
