import { setTimeout as delay } from 'node:timers/promises';
import { LIMITS } from '../../contracts/limits.js';
import type { AgentLog } from '../log.js';
import { PlatformKeys } from './platform-keys.js';
import { refusalOf, TOKEN_REFUSALS, type TokenRefusal, type TrustedPlatform } from './platform-token.js';

/** How long a request waits for the registration's answer; shorter than a request may take to arrive. */
const REGISTRATION_WAIT_MS = 20_000;
const WAITING_MAX = LIMITS.dispatchesInFlightPerConnection;

/** `not_ready`: nothing is known against the token, but it cannot be checked now. */
export type Verdict = 'trusted' | 'refused' | 'not_ready';

/**
 * Decides whose requests a hosted agent answers. The platform routes to an agent as soon as its registration is committed, which is
 * before the agent has the answer: such a request waits for it. Why a token was refused is logged once for each reason.
 */
export class TokenVerifier {
  readonly #ca: string | undefined;
  readonly #log: AgentLog;
  readonly #known: Promise<void>;
  readonly #reported = new Set<TokenRefusal>();
  #onKnown: () => void = () => undefined;
  #trusted: { platform: TrustedPlatform; keys: PlatformKeys } | null = null;
  #waiting = 0;

  constructor(ca: string | undefined, log: AgentLog) {
    this.#ca = ca;
    this.#log = log;
    this.#known = new Promise((resolve) => {
      this.#onKnown = resolve;
    });
  }

  /** From now on tokens of this platform for this instance count. */
  trust(platform: TrustedPlatform): void {
    this.#trusted?.keys.close();
    this.#trusted = { platform, keys: new PlatformKeys(platform.jwks_url, this.#ca) };
    this.#reported.clear();
    this.#onKnown();
  }

  async verify(authorization: string | undefined): Promise<Verdict> {
    if (!this.#trusted) await this.#registration();
    if (!this.#trusted) return 'not_ready';
    const { platform, keys } = this.#trusted;
    const refusal = await refusalOf(authorization, platform, keys.get);
    if (!refusal) return 'trusted';
    this.#report(refusal.reason, { error: refusal.error, jwks_url: platform.jwks_url });
    return refusal.reason === 'keys_unavailable' ? 'not_ready' : 'refused';
  }

  /** Whoever waits for a registration is told that there is none. */
  close(): void {
    this.#trusted?.keys.close();
    this.#onKnown();
  }

  async #registration(): Promise<void> {
    if (this.#waiting >= WAITING_MAX) return;
    this.#waiting += 1;
    const timer = new AbortController();
    await Promise.race([this.#known, delay(REGISTRATION_WAIT_MS, undefined, { signal: timer.signal })]);
    timer.abort();
    this.#waiting -= 1;
  }

  #report(reason: TokenRefusal, fields: object): void {
    if (this.#reported.has(reason)) return;
    this.#reported.add(reason);
    this.#log.warn({ reason, ...fields }, TOKEN_REFUSALS[reason]);
  }
}
