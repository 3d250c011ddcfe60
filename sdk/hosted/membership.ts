import { AgentRegisterResponse, type HeartbeatPayload, OkResponse } from '../../contracts/agents.js';
import { LIMITS } from '../../contracts/limits.js';
import { SILENCE_MS, tellingWhenLate } from '../agent/slow-response.js';
import type { AgentProfile } from '../agent/agent-profile.js';
import { stopReasonOfError } from '../agent/stop-reason.js';
import { isUnknownHere, troubleOfError } from '../agent/describe-error.js';
import type { TroubleReporter } from '../agent/error-reporter.js';
import { Backoff } from '../backoff.js';
import { retryAfterMs } from '../client/errors.js';
import { type PlatformApi, pause } from '../client/platform-api.js';
import type { AgentLog } from '../log.js';
import type { TrustedPlatform } from './platform-token.js';

export interface MembershipParts {
  api: PlatformApi;
  profile: AgentProfile;
  publicUrl: string;
  log: AgentLog;
  troubles: TroubleReporter;
  /** What a heartbeat says. */
  heartbeat(): Omit<HeartbeatPayload, 'instance_id'>;
  /** Learns which tokens to trust, before the first dispatch. */
  onRegistered(platform: TrustedPlatform): void;
}

/**
 * Keeps a hosted agent in the fleet: registers, then a heartbeat every 30 s and at every change. It registers again only when the platform
 * says that it does not know the agent: one that somebody deregistered stays away.
 */
export class Membership {
  readonly #parts: MembershipParts;
  readonly #backoff = new Backoff();
  #instanceId: string | undefined;
  #hasJoined = false;
  #wake = new AbortController();
  #staying: Promise<void> = Promise.resolve();

  constructor(parts: MembershipParts) {
    this.#parts = parts;
    this.#instanceId = parts.profile.instanceId;
  }

  get instanceId(): string {
    return this.#instanceId ?? '';
  }

  /** The next heartbeat is due now. */
  tell(): void {
    this.#wake.abort();
    this.#wake = new AbortController();
  }

  /**
   * Stays a member until `signal` aborts.
   * @throws AgentStoppedError when the platform refuses the agent, or it was deregistered
   */
  stay(signal: AbortSignal): Promise<void> {
    this.#staying = this.#beatUntil(signal);
    return this.#staying;
  }

  /**
   * The last heartbeat, after `stay` was told to end: not beside one that is under way and says something else.
   * @throws ApiError | UnreachableError
   */
  async leave(): Promise<void> {
    await this.#staying;
    if (this.instanceId !== '') await this.#beat();
  }

  async #beat(): Promise<void> {
    const body = { instance_id: this.instanceId, ...this.#parts.heartbeat() };
    await this.#parts.api.post('/agents/heartbeat', body, OkResponse, { silenceMs: SILENCE_MS });
  }

  async #beatUntil(signal: AbortSignal): Promise<void> {
    const { api, troubles } = this.#parts;
    const { baseUrl: url } = api;
    while (!signal.aborted) {
      const wake = this.#wake.signal;
      let waitMs: number = LIMITS.heartbeatIntervalMs;
      try {
        await tellingWhenLate(this.#stayKnown(), url, (trouble) => troubles.warn(trouble, url));
        this.#backoff.reset();
      } catch (error) {
        const reason = stopReasonOfError(error, { url, hasJoined: this.#hasJoined });
        if (reason) throw reason;
        troubles.warn(troubleOfError(error, url), url);
        waitMs = this.#backoff.next(retryAfterMs(error));
      }
      await pause(waitMs, AbortSignal.any([signal, wake])).catch(() => undefined); // the loop's condition sees it
    }
  }

  /** A heartbeat; and a registration where the platform does not know the agent, or not any more. */
  async #stayKnown(): Promise<void> {
    if (this.#hasJoined && (await this.#isKnown())) {
      this.#parts.troubles.reset();
      return;
    }
    await this.#register();
    await this.#beat();
  }

  async #isKnown(): Promise<boolean> {
    try {
      await this.#beat();
      return true;
    } catch (error) {
      if (isUnknownHere(error)) return false;
      throw error;
    }
  }

  async #register(): Promise<void> {
    const { api, profile, publicUrl, log, onRegistered } = this.#parts;
    const where = { deployment_mode: 'hosted', public_url: publicUrl, agent_card: profile.card(publicUrl) };
    const body = { ...profile.registration(), ...where, instance_id: this.#instanceId };
    const answer = await api.post('/agents/register', body, AgentRegisterResponse, { silenceMs: SILENCE_MS });
    this.#instanceId = answer.instance_id;
    this.#hasJoined = true;
    onRegistered(answer);
    log.info({ instance_id: answer.instance_id, public_url: publicUrl }, 'agent registered');
  }
}
