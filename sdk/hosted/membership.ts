import { type HeartbeatPayload, OkResponse } from '../../contracts/api/agents.js';
import { LIMITS } from '../../contracts/limits.js';
import type { AgentProfile } from '../agent/agent-profile.js';
import { describeError, isUnknownAgent } from '../agent/describe-error.js';
import type { ErrorReporter } from '../agent/error-reporter.js';
import type { LifecycleLog } from '../agent/lifecycle-log.js';
import { Registered } from '../agent/registered.js';
import { SILENCE_MS, warnWhenSlow } from '../agent/slow-response.js';
import { stopReasonOfError } from '../agent/stop-reason.js';
import { Backoff } from '../backoff.js';
import { retryAfterMs } from '../client/api/errors.js';
import type { PlatformApi } from '../client/api/platform-api.js';
import { pause } from '../client/api/retries.js';
import type { TrustedPlatform } from './platform-token.js';

export interface MembershipOptions {
  api: PlatformApi;
  profile: AgentProfile;
  publicUrl: string;
  retryPauseMs: number | undefined;
  errorReporter: ErrorReporter;
  lifecycle: LifecycleLog;
  /** The fields of a heartbeat. */
  heartbeat(): Omit<HeartbeatPayload, 'instance_id'>;
  /** Called after each registration with the tokens to trust. */
  onRegistered(platform: TrustedPlatform): void;
}

/**
 * Keeps a hosted agent registered: registers it, then sends a heartbeat every 30 s and at every change of status. Registers again only when
 * the platform does not know the agent; a deregistered agent is not registered again.
 */
export class Membership {
  readonly #options: MembershipOptions;
  readonly #backoff: Backoff;
  #instanceId: string | undefined;
  #hasJoined = false;
  #wake = new AbortController();
  #loop: Promise<void> = Promise.resolve();

  constructor(options: MembershipOptions) {
    this.#options = options;
    this.#backoff = new Backoff(options.retryPauseMs);
    this.#instanceId = options.profile.instanceId;
  }

  get instanceId(): string {
    return this.#instanceId ?? '';
  }

  /** Sends the next heartbeat now. */
  heartbeatNow(): void {
    this.#wake.abort();
    this.#wake = new AbortController();
  }

  /**
   * Keeps the agent registered until `signal` aborts.
   * @throws AgentStoppedError when the platform refuses or has deregistered the agent
   */
  run(signal: AbortSignal): Promise<void> {
    this.#loop = this.#heartbeatUntil(signal);
    return this.#loop;
  }

  /**
   * Sends the last heartbeat, after `run` has ended: a concurrent one could report another status.
   * @throws ApiError | UnreachableError
   */
  async lastHeartbeat(): Promise<void> {
    await this.#loop;
    if (this.instanceId !== '') await this.#heartbeat();
  }

  async #heartbeat(): Promise<void> {
    const body = { instance_id: this.instanceId, ...this.#options.heartbeat() };
    await this.#options.api.post('/agents/heartbeat', body, OkResponse, { silenceMs: SILENCE_MS });
  }

  async #heartbeatUntil(signal: AbortSignal): Promise<void> {
    const { api, publicUrl, errorReporter, lifecycle } = this.#options;
    const { baseUrl: url } = api;
    while (!signal.aborted) {
      const wake = this.#wake.signal;
      let waitMs: number = LIMITS.heartbeatIntervalMs;
      try {
        await warnWhenSlow(this.#ensureRegistered(), url, (error) => errorReporter.warn(error, url));
        this.#backoff.reset();
        lifecycle.connected({ instance_id: this.instanceId, url, public_url: publicUrl });
      } catch (error) {
        const reason = stopReasonOfError(error, { url, hasJoined: this.#hasJoined });
        if (reason) throw reason;
        lifecycle.retries(describeError(error, url), url, this.#hasJoined);
        waitMs = this.#backoff.next(retryAfterMs(error));
      }
      await pause(waitMs, AbortSignal.any([signal, wake])).catch(() => undefined); // the loop checks the signal
    }
  }

  /** Sends a heartbeat; registers the agent first when the platform does not know it. */
  async #ensureRegistered(): Promise<void> {
    if (this.#hasJoined && (await this.#isKnown())) {
      this.#options.errorReporter.reset();
      return;
    }
    await this.#register();
    await this.#heartbeat();
  }

  async #isKnown(): Promise<boolean> {
    try {
      await this.#heartbeat();
      return true;
    } catch (error) {
      if (isUnknownAgent(error)) return false;
      throw error;
    }
  }

  async #register(): Promise<void> {
    const { api, profile, publicUrl, onRegistered } = this.#options;
    const where = { deployment_mode: 'hosted', public_url: publicUrl, agent_card: profile.card(publicUrl) };
    const body = { ...profile.registration(), ...where, instance_id: this.#instanceId };
    const answer = await api.post('/agents/register', body, Registered, { silenceMs: SILENCE_MS });
    this.#instanceId = answer.instance_id;
    this.#hasJoined = true;
    onRegistered(answer);
  }
}
