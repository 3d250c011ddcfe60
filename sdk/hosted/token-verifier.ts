import { setTimeout as delay } from 'node:timers/promises';
import { LIMITS } from '../../contracts/limits.js';
import type { AgentLog } from '../log.js';
import { PlatformKeys } from './platform-keys.js';
import { refusalOf, TOKEN_REFUSALS, type TokenRefusal, type TrustedPlatform } from './platform-token.js';

/** How long a request waits for the registration; less than the time limit for a request. */
const REGISTRATION_WAIT_MS = 20_000;
const WAITING_MAX = LIMITS.dispatchesInFlightPerConnection;

/** `not_ready`: the token cannot be checked now. */
export type Verdict = 'trusted' | 'refused' | 'not_ready';

/**
 * Decides which requests a hosted agent answers. The platform may send a dispatch before the agent has received the answer to its
 * registration; such a request waits for it. Each reason of a refusal is logged once.
 */
export class TokenVerifier {
  readonly #ca: string | undefined;
  readonly #log: AgentLog;
  readonly #registered: Promise<void>;
  readonly #reported = new Set<TokenRefusal>();
  #onRegistered: () => void = () => undefined;
  #trusted: { platform: TrustedPlatform; keys: PlatformKeys } | null = null;
  #waiting = 0;

  constructor(ca: string | undefined, log: AgentLog) {
    this.#ca = ca;
    this.#log = log;
    this.#registered = new Promise((resolve) => {
      this.#onRegistered = resolve;
    });
  }

  /** Accepts tokens of this platform for this instance from now on. */
  trust(platform: TrustedPlatform): void {
    this.#trusted?.keys.close();
    this.#trusted = { platform, keys: new PlatformKeys(platform.jwks_url, this.#ca) };
    this.#reported.clear();
    this.#onRegistered();
  }

  async verify(authorization: string | undefined): Promise<Verdict> {
    if (!this.#trusted) await this.#waitForRegistration();
    if (!this.#trusted) return 'not_ready';
    const { platform, keys } = this.#trusted;
    const refusal = await refusalOf(authorization, platform, keys.get);
    if (!refusal) return 'trusted';
    this.#report(refusal.reason, { error: refusal.error, jwks_url: platform.jwks_url });
    return refusal.reason === 'keys_unavailable' ? 'not_ready' : 'refused';
  }

  /** Requests that wait for a registration get `not_ready`. */
  close(): void {
    this.#trusted?.keys.close();
    this.#onRegistered();
  }

  async #waitForRegistration(): Promise<void> {
    if (this.#waiting >= WAITING_MAX) return;
    this.#waiting += 1;
    const timer = new AbortController();
    await Promise.race([this.#registered, delay(REGISTRATION_WAIT_MS, undefined, { signal: timer.signal })]);
    timer.abort();
    this.#waiting -= 1;
  }

  #report(reason: TokenRefusal, fields: object): void {
    if (this.#reported.has(reason)) return;
    this.#reported.add(reason);
    this.#log.warn({ reason, ...fields }, TOKEN_REFUSALS[reason]);
  }
}
