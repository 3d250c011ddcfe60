import { TokenBucket } from '../../runtime/token-bucket.js';
import type { AuthenticatedAgent } from './connection-rows.js';

/** Rate limit of `reauth`: an agent needs one in each lifetime of its token, which is a minute at least. */
const CHECKS = { burst: 5, perSecond: 0.1 };

/** The token that keeps a socket open, with the agent that it stands for. */
export class HeldToken {
  readonly #onExpired: () => void;
  readonly #rate = new TokenBucket(CHECKS);
  #agent: AuthenticatedAgent;
  #expiry: NodeJS.Timeout;
  #isChecking = false;
  #isOver = false;

  /** @param onExpired called when the token expires, unless another has replaced it */
  constructor(agent: AuthenticatedAgent, onExpired: () => void) {
    this.#agent = agent;
    this.#onExpired = onExpired;
    this.#expiry = this.#startExpiry();
  }

  get agent(): AuthenticatedAgent {
    return this.#agent;
  }

  /**
   * Begins the check of another token if the limits allow it: each costs a signature check and a query, and one runs at a time.
   * @returns false: the token must not be checked now; true: call `endCheck` afterwards
   */
  beginCheck(): boolean {
    if (this.#isChecking || !this.#rate.take()) return false;
    this.#isChecking = true;
    return true;
  }

  endCheck(): void {
    this.#isChecking = false;
  }

  /** From now on the socket lives until this token expires. */
  replace(agent: AuthenticatedAgent): void {
    this.#agent = agent;
    clearTimeout(this.#expiry);
    if (!this.#isOver) this.#expiry = this.#startExpiry();
  }

  /** Stops the timer, because the socket is gone. */
  stop(): void {
    this.#isOver = true;
    clearTimeout(this.#expiry);
  }

  #startExpiry(): NodeJS.Timeout {
    return setTimeout(this.#onExpired, Math.max(0, this.#agent.token_exp * 1_000 - Date.now()));
  }
}
