import { setTimeout as delay } from 'node:timers/promises';
import type { Authenticator } from '../auth/authenticator.js';
import type { Caller } from '../contracts/api/auth.js';
import type { Clocks } from '../runtime/clocks.js';
import { PlatformError } from '../runtime/errors.js';

/** How many calls may be under way at once in this process, with one token or the tokens of one end user, of one tenant, and in all. */
export interface OpenCallLimits {
  perToken: number;
  perTenant: number;
  inAll: number;
}

const RETRY_AFTER_SECONDS = 5;

/** Bounds the calls that stay open: streams, and sends that wait for an agent. Each holds a socket and memory for as long as it likes. */
export class OpenCalls {
  /** By token or user and by tenant, which never look alike. */
  readonly #open = new Map<string, number>();
  #all = 0;

  constructor(private readonly limits: OpenCallLimits) {}

  /** Counts a call. @param perToken fewer than others may have @returns no longer counts it @throws PlatformError RATE_LIMITED with Retry-After at a limit */
  enter(
    token: string,
    { tenant_id: tenantId, user_id }: Pick<Caller, 'tenant_id' | 'user_id'>,
    perToken = this.limits.perToken,
  ): () => void {
    const { perTenant, inAll } = this.limits;
    // A browser could take the tenant's room with ever new tokens.
    const holder = user_id === undefined ? token : JSON.stringify([tenantId, user_id]);
    this.#check(this.#open.get(holder) ?? 0, perToken, user_id === undefined ? 'This token has' : 'This user has');
    this.#check(this.#open.get(tenantId) ?? 0, perTenant, 'The tenant has');
    this.#check(this.#all, inAll, 'This process has');
    this.#add(holder, 1);
    this.#add(tenantId, 1);
    this.#all += 1;
    return () => {
      this.#add(holder, -1);
      this.#add(tenantId, -1);
      this.#all -= 1;
    };
  }

  #check(open: number, limit: number, who: string): void {
    if (open < limit) return;
    const headers = { 'Retry-After': String(RETRY_AFTER_SECONDS) };
    throw new PlatformError('RATE_LIMITED', `${who} too many streams and waiting calls open.`, { headers });
  }

  #add(key: string, change: number): void {
    const open = (this.#open.get(key) ?? 0) + change;
    if (open > 0) this.#open.set(key, open);
    else this.#open.delete(key);
  }
}

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
