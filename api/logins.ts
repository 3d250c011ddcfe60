import type { Redis } from 'ioredis';
import type { Credential } from '../contracts/api/auth.js';
import { PlatformError } from '../runtime/errors.js';
import { FairSemaphore } from '../runtime/fair-semaphore.js';
import { networkOf, RateLimit } from './rate-limit.js';

/** Wrong secrets of one client from one network, and of all clients from everywhere, in a minute: those beyond are told to wait. */
const BOUNDS = { ofClient: 10, ofAll: 1_000 };
const WINDOW_SECONDS = 60;
const EVERYBODY = 'all';
/** Look-ups at once, and of one network: they use the connections of the platform's own work, which a flood must leave it. */
const [LOOKUPS_AT_ONCE, LOOKUPS_OF_NETWORK] = [3, 2];
/** Logins of one network that wait for a look-up; 429 beyond. */
const WAITING_MAX = 10_000;

function tooMany(message: string): PlatformError {
  return new PlatformError('RATE_LIMITED', message, { headers: { 'Retry-After': '1' } });
}

/**
 * Verifies client secrets and slows down those who send wrong ones. A right secret passes whatever was tried before, so nobody can lock out
 * a client by its id, and no broken client its neighbours behind one address. A secret has 256 random bits: the limits guard the platform's
 * work and logs, not the secret.
 */
export class Logins {
  readonly #ofClient: RateLimit;
  readonly #ofAll: RateLimit;
  readonly #lookups = new FairSemaphore({
    limit: LOOKUPS_AT_ONCE,
    perKey: LOOKUPS_OF_NETWORK,
    waitingMax: WAITING_MAX,
    refusal: () => tooMany('Too many logins from this address at once.'),
  });

  /** @param verify the credential of a client with this secret, or null */
  constructor(
    private readonly verify: (client: { client_id: string; client_secret: string }) => Promise<Credential | null>,
    redis: Redis | null,
    { ofClient, ofAll } = BOUNDS,
  ) {
    this.#ofClient = new RateLimit({ name: 'wrong-secrets', limit: ofClient, windowSeconds: WINDOW_SECONDS, redis });
    this.#ofAll = new RateLimit({ name: 'all-wrong-secrets', limit: ofAll, windowSeconds: WINDOW_SECONDS, redis });
  }

  /**
   * The credential of a client with its secret.
   * @throws PlatformError unauthorized for a wrong secret, RATE_LIMITED for one beyond the limits
   */
  async credentialOf(client: { client_id: string; client_secret: string }, address: string): Promise<Credential> {
    const network = networkOf(address);
    const credential = await this.#lookups.run(network, () => this.verify(client));
    if (credential) return credential;
    const key = `${network} ${client.client_id}`;
    await Promise.all([this.#ofClient.learn(key), this.#ofAll.learn(EVERYBODY)]);
    this.#ofClient.check(key, 'Too many failed attempts of this client from this address.');
    this.#ofAll.check(EVERYBODY, 'Too many failed attempts of all clients together.');
    this.#ofClient.add(key);
    this.#ofAll.add(EVERYBODY);
    throw new PlatformError('unauthorized', 'The client_id or client_secret is wrong, or the credential has ended.');
  }
}
