import type { Redis } from 'ioredis';
import { PlatformError } from '../runtime/errors.js';
import { networkOf, RateLimit } from './rate-limit.js';

/** Wrong tokens of one address, and of one that many senders share for each of those whom they name. */
const GUESSES = { limit: 10, windowSeconds: 60 };
/** Of a shared address all together: nobody who names others must be able to shut it out. */
const SHARED_GUESSES = { limit: 100, windowSeconds: 60 };

/** Limits how often an address may try a token, or a signature, that is wrong: each look for one costs the database. */
export class WrongTokens {
  readonly #ofAddress: RateLimit;
  readonly #ofShared: RateLimit;

  constructor(redis: Redis | null) {
    this.#ofAddress = new RateLimit({ ...GUESSES, name: 'wrong-tokens', redis });
    this.#ofShared = new RateLimit({ ...SHARED_GUESSES, name: 'wrong-signatures', redis });
  }

  /**
   * Runs `work`, which looks for the token.
   * @param whom what the caller claims to be about, where many senders share an address, as those of Slack do
   * @throws PlatformError RATE_LIMITED, without having begun, for an address that has tried too many; and what `work` throws: unauthorized counts
   */
  async guard<T>(address: string, work: () => Promise<T>, whom?: string): Promise<T> {
    const network = networkOf(address);
    const limits: [RateLimit, string][] =
      whom === undefined
        ? [[this.#ofAddress, network]]
        : [
            [this.#ofAddress, `${network} ${whom}`],
            [this.#ofShared, network],
          ];
    for (const [limit, key] of limits) {
      await limit.learn(key);
      limit.check(key, 'Too many wrong tokens from this address.');
    }
    try {
      return await work();
    } catch (error) {
      if (error instanceof PlatformError && error.code === 'unauthorized')
        for (const [limit, key] of limits) limit.add(key);
      throw error;
    }
  }
}
