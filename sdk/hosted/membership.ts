import { AgentRegisterResponse, type HeartbeatPayload, OkResponse } from '../../contracts/agents.js';
import { LIMITS } from '../../contracts/limits.js';
import type { AgentProfile } from '../agent/profile.js';
import { stopReasonOfError } from '../agent/stop-reason.js';
import { troubleOfError } from '../agent/trouble.js';
import type { TroubleReporter } from '../agent/trouble-reporter.js';
import { Backoff } from '../backoff.js';
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
 * Keeps a hosted agent in the fleet: registers, then a heartbeat every 30 s and at every change. After a heartbeat that failed it
 * registers again, because a platform that was away may have forgotten it.
 */
export class Membership {
  readonly #parts: MembershipParts;
  readonly #backoff = new Backoff();
  #instanceId: string | undefined;
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
   * @throws AgentStoppedError when the platform refuses the agent
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
    await this.#parts.api.post('/agents/heartbeat', body, OkResponse);
  }

  async #beatUntil(signal: AbortSignal): Promise<void> {
    const { api, troubles } = this.#parts;
    const { baseUrl: url } = api;
    let registered = false;
    let hasJoined = false;
    while (!signal.aborted) {
      const wake = this.#wake.signal;
      try {
        if (registered) await this.#beat();
        else await this.#register();
        if (registered) troubles.reset(); // by a heartbeat that was answered
        registered = true;
        hasJoined = true;
        this.#backoff.reset();
      } catch (error) {
        const reason = registered ? null : stopReasonOfError(error, { url, hasJoined });
        if (reason) throw reason;
        registered = false;
        troubles.warn(troubleOfError(error, url), url);
      }
      const waitMs = registered ? LIMITS.heartbeatIntervalMs : this.#backoff.next();
      await pause(waitMs, AbortSignal.any([signal, wake])).catch(() => undefined); // the loop's condition sees it
    }
  }

  async #register(): Promise<void> {
    const { api, profile, publicUrl, log, onRegistered } = this.#parts;
    const where = { deployment_mode: 'hosted', public_url: publicUrl, agent_card: profile.card(publicUrl) };
    const body = { ...profile.registration(), ...where, instance_id: this.#instanceId };
    const answer = await api.post('/agents/register', body, AgentRegisterResponse);
    this.#instanceId = answer.instance_id;
    onRegistered(answer);
    log.info({ instance_id: answer.instance_id, public_url: publicUrl }, 'agent registered');
    await this.#beat();
  }
}
