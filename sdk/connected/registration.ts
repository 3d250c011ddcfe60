import { AgentRegisterResponse, OkResponse } from '../../contracts/agents.js';
import { CLOSE_CODES } from '../../contracts/errors.js';
import type { HelloPayload } from '../../contracts/frames.js';
import { ApiError } from '../client/errors.js';
import type { PlatformApi } from '../client/platform-api.js';
import { unlessAborted } from '../unless-aborted.js';
import type { AgentError } from '../agent/agent-error.js';
import { SILENCE_MS, tellingWhenLate } from '../agent/slow-response.js';
import type { ConnectionEnd } from './mesh-connection.js';
import type { AgentProfile } from '../agent/agent-profile.js';
import { isNobodyThere, isUnknownHere, troubleOfError } from '../agent/describe-error.js';

/** Handshakes in a row that may go without an answer: beyond them the mesh may have moved. */
const UNANSWERED_MAX = 3;

/** Who a connected agent is to the platform: its registration, its token, and what `hello` repeats of it. */
export class Registration {
  readonly #api: PlatformApi;
  readonly #profile: AgentProfile;
  #instanceId: string | undefined;
  #connectUrl: string | null = null;
  #hasJoined = false;
  #unanswered = 0;

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

  /** The API's. */
  get url(): string {
    return this.#api.baseUrl;
  }

  /** The platform has registered it once. */
  get hasJoined(): boolean {
    return this.#hasJoined;
  }

  /** When the token in hand should be replaced, in milliseconds since the epoch. */
  get renewAtMs(): number {
    return this.#api.tokens.renewAtMs;
  }

  /**
   * Where and with which token to connect; registers first where that has not been done.
   * @param onLate told when the platform takes its time; it is waited for all the same
   * @throws ApiError | UnreachableError | the signal's reason
   */
  async target(signal: AbortSignal, onLate: (trouble: AgentError) => void): Promise<{ url: string; token: string }> {
    return tellingWhenLate(this.#target(signal), this.url, onLate);
  }

  /** Gets a new token where the one in hand nears its end. @returns whether there is one for the next connection; never rejects */
  async renewToken(onTrouble: (trouble: AgentError) => void): Promise<boolean> {
    try {
      await this.#api.tokens.get();
      return true;
    } catch (error) {
      onTrouble(troubleOfError(error, this.url));
      return false;
    }
  }

  /** What the end of a connection means for the next one. @param token the one that it was made with */
  learn(end: ConnectionEnd, token: string): void {
    const { httpStatus, closeCode } = end;
    if (httpStatus === 401 || closeCode === CLOSE_CODES.TOKEN_EXPIRED) this.#api.tokens.invalidate(token);
    const isUnknown = httpStatus === 404 || closeCode === CLOSE_CODES.INSTANCE_ID_MISMATCH;
    this.#unanswered = end.nothingSent ? this.#unanswered + 1 : 0;
    // A mesh that is busy is asked again where it is. One that may have moved: registering again tells where it is now.
    const mayHaveMoved = isNobodyThere(end.error) || this.#unanswered >= UNANSWERED_MAX;
    if (!isUnknown && !mayHaveMoved) return;
    this.#unanswered = 0;
    this.#connectUrl = null;
  }

  /** The members of `hello` that say who this is. */
  hello(): HelloPayload {
    return { ...this.#profile.announcement(), instance_id: this.instanceId, sdk_version: this.#profile.sdkVersion };
  }

  async #target(signal: AbortSignal): Promise<{ url: string; token: string }> {
    this.#connectUrl ??= await this.#register(signal);
    return { url: this.#connectUrl, token: await unlessAborted(this.#api.tokens.get(), signal) };
  }

  async #register(signal: AbortSignal): Promise<string> {
    if (this.#hasJoined) await this.#checkWanted(signal);
    const body = { ...this.#profile.registration(), instance_id: this.#instanceId, deployment_mode: 'connected' };
    const posting = this.#api.post('/agents/register', body, AgentRegisterResponse, { signal, silenceMs: SILENCE_MS });
    const answer = await unlessAborted(posting, signal); // it waits for a token, which knows no signal
    this.#hasJoined = true;
    this.#instanceId = answer.instance_id;
    if (answer.connect_url === null) throw new ApiError('registered as hosted', NOT_CONNECTED);
    return withInstance(answer.connect_url, answer.instance_id);
  }

  /** Registering anew must not undo what somebody decided meanwhile. @throws ApiError `DEREGISTERED`, where the agent is to stay away */
  async #checkWanted(signal: AbortSignal): Promise<void> {
    const body = { instance_id: this.instanceId };
    const posting = this.#api.post('/agents/heartbeat', body, OkResponse, { signal, silenceMs: SILENCE_MS });
    await unlessAborted(posting, signal).catch((error: unknown) => {
      if (!isUnknownHere(error)) throw error;
    });
  }
}

const NOT_CONNECTED = { status: 409, code: 'DEPLOYMENT_MODE_MISMATCH' };

function withInstance(connectUrl: string, instanceId: string): string {
  const url = new URL(connectUrl);
  url.searchParams.set('instance_id', instanceId);
  return url.href;
}
