import { AgentRegisterResponse, type HeartbeatPayload, OkResponse } from '../../contracts/agents.js';
import { LIMITS } from '../../contracts/limits.js';
import { AgentError, type AgentStoppedError } from '../agent/agent-error.js';
import { SILENCE_MS, tellingWhenLate } from '../agent/late-answer.js';
import type { AgentProfile } from '../agent/profile.js';
import { deregistered, stopReasonOfError } from '../agent/stop-reason.js';
import { troubleOfError } from '../agent/trouble.js';
import type { TroubleReporter } from '../agent/trouble-reporter.js';
import { Backoff } from '../backoff.js';
import { ApiError, retryAfterMs } from '../client/errors.js';
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
 * registers again, because a platform that was away may have forgotten it. One that was deregistered stays away.
 */
export class Membership {
  readonly #parts: MembershipParts;
  readonly #backoff = new Backoff();
  #instanceId: string | undefined;
  #wake = new AbortController();
  #staying: Promise<void> = Promise.resolve();
  /** When the platform last knew it, in milliseconds since the epoch. */
  #knownAtMs = 0;

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
    this.#knownAtMs = Date.now();
  }

  async #beatUntil(signal: AbortSignal): Promise<void> {
    const { api, troubles } = this.#parts;
    const { baseUrl: url } = api;
    let registered = false;
    let hasJoined = false;
    let leastMs: number | undefined;
    while (!signal.aborted) {
      const wake = this.#wake.signal;
      try {
        const call = registered ? this.#beat() : this.#register();
        await tellingWhenLate(call, url, (trouble) => troubles.warn(trouble, url));
        if (registered) troubles.reset(); // by a heartbeat that was answered
        registered = true;
        hasJoined = true;
        this.#backoff.reset();
      } catch (error) {
        const reason =
          this.#endOfMembership(error) ?? (registered ? null : stopReasonOfError(error, { url, hasJoined }));
        if (reason) throw reason;
        troubles.warn(registered && isUnknown(error) ? FORGOTTEN : troubleOfError(error, url), url);
        registered = false;
        leastMs = retryAfterMs(error);
      }
      const waitMs = registered ? LIMITS.heartbeatIntervalMs : this.#backoff.next(leastMs);
      await pause(waitMs, AbortSignal.any([signal, wake])).catch(() => undefined); // the loop's condition sees it
    }
  }

  /** An agent that the platform knew a moment ago and knows no more was deregistered; after a long silence it was forgotten. */
  #endOfMembership(error: unknown): AgentStoppedError | null {
    const mayBeForgotten = Date.now() - this.#knownAtMs >= LIMITS.agentReapMs;
    return isUnknown(error) && !mayBeForgotten ? deregistered() : null;
  }

  async #register(): Promise<void> {
    const { api, profile, publicUrl, log, onRegistered } = this.#parts;
    const where = { deployment_mode: 'hosted', public_url: publicUrl, agent_card: profile.card(publicUrl) };
    const body = { ...profile.registration(), ...where, instance_id: this.#instanceId };
    const answer = await api.post('/agents/register', body, AgentRegisterResponse, { silenceMs: SILENCE_MS });
    this.#instanceId = answer.instance_id;
    this.#knownAtMs = Date.now();
    onRegistered(answer);
    log.info({ instance_id: answer.instance_id, public_url: publicUrl }, 'agent registered');
    await this.#beat();
  }
}

const FORGOTTEN = new AgentError(
  'NOT_FOUND',
  'the platform has forgotten the agent, which was silent for long: it registers again',
);

/** The platform itself says that there is no such instance; another 404 is a proxy's. */
function isUnknown(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404 && error.code === 'NOT_FOUND';
}
