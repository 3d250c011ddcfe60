import { setTimeout as delay } from 'node:timers/promises';
import type { Authenticator } from '../../auth/authenticator.js';
import type { Clocks } from '../../runtime/clocks.js';
import { PlatformError } from '../../runtime/errors.js';

/** Watches the tokens of calls that wait and of open streams: a token ends when it expires, or when its credential or tenant is revoked or deleted. */
export class TokenWatch {
  readonly #authenticator: Authenticator;
  /** Between two checks of a token. The authenticator caches for twice as long, 2 s, so a revocation takes effect within 5 s. */
  readonly #checkMs: number;
  /** Callbacks by token. */
  readonly #watchers = new Map<string, Set<() => void>>();

  constructor(authenticator: Authenticator, { credentialCheckMs }: Pick<Clocks, 'credentialCheckMs'>) {
    this.#authenticator = authenticator;
    this.#checkMs = credentialCheckMs / 2;
  }

  /** Calls `onEnd` once, when the token has ended. @returns stops the watch */
  watch(token: string, onEnd: () => void): () => void {
    const known = this.#watchers.get(token);
    const watchers = known ?? new Set();
    watchers.add(onEnd);
    if (!known) void this.#follow(token, watchers);
    return () => void watchers.delete(onEnd);
  }

  async #follow(token: string, watchers: Set<() => void>): Promise<void> {
    this.#watchers.set(token, watchers);
    let isValid = true;
    do {
      await delay(this.#checkMs, undefined, { ref: false });
      isValid = watchers.size === 0 || (await this.#isValid(token));
    } while (isValid && watchers.size > 0);
    this.#watchers.delete(token);
    if (!isValid) for (const onEnd of watchers) onEnd();
  }

  /** A token counts as valid while the database is away: streams outlast an outage. */
  async #isValid(token: string): Promise<boolean> {
    try {
      await this.#authenticator.authenticate(token);
      return true;
    } catch (error) {
      return !(error instanceof PlatformError && error.code === 'unauthorized');
    }
  }
}
