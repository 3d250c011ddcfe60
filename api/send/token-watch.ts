import { setTimeout as delay } from 'node:timers/promises';
import type { Authenticator } from '../../auth/authenticator.js';
import { PlatformError } from '../../runtime/errors.js';

/** How often a token is looked at. With the 2 s for which the authenticator keeps what it read, a revocation shows within 5 s. */
const LOOK_MS = 1_000;

/** Tells streams when their token ends: it expired, or its credential was revoked or has lost its tenant. */
export class TokenWatch {
  readonly #authenticator: Authenticator;
  /** What is called at the end of each token that somebody streams with. */
  readonly #watchers = new Map<string, Set<() => void>>();

  constructor(authenticator: Authenticator) {
    this.#authenticator = authenticator;
  }

  /**
   * @param onEnd called once, when the token has ended
   * @returns ends the watch
   */
  watch(token: string, onEnd: () => void): () => void {
    const watchers = this.#watchers.get(token) ?? this.#begin(token);
    watchers.add(onEnd);
    return () => void watchers.delete(onEnd);
  }

  #begin(token: string): Set<() => void> {
    const watchers = new Set<() => void>();
    this.#watchers.set(token, watchers);
    void this.#follow(token, watchers);
    return watchers;
  }

  async #follow(token: string, watchers: Set<() => void>): Promise<void> {
    let stands = true;
    do {
      await delay(LOOK_MS, undefined, { ref: false });
      stands = watchers.size === 0 || (await this.#stands(token));
    } while (stands && watchers.size > 0);
    this.#watchers.delete(token);
    if (!stands) for (const onEnd of watchers) onEnd();
  }

  /** While that cannot be told, it stands: streams outlive the database. */
  async #stands(token: string): Promise<boolean> {
    try {
      await this.#authenticator.authenticate(token);
      return true;
    } catch (error) {
      return !(error instanceof PlatformError && error.code === 'unauthorized');
    }
  }
}
