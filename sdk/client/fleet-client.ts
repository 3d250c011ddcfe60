import { ACCESS_OPTIONS, type AccessOptions } from '../access.js';
import { namesOf, requireKnownOptions } from '../known-options.js';
import { currentTraceparent } from '../tracing.js';
import { nodeApi } from './api/node-api.js';
import type { Credentials } from './api/token-source.js';
import { ApiClient } from './api-client.js';

export interface FleetClientOptions extends AccessOptions {
  /** `agent_type` claim of the token; the platform's default is `credential`. */
  agentType?: string;
}

const OPTIONS = namesOf<FleetClientOptions>({ ...ACCESS_OPTIONS, agentType: true });

/** Further limits of a token for a user. */
export interface UserTokenOptions {
  /** Only this session of the user. */
  sessionId?: string;
  /** Only agents of these types. */
  agentTypes?: string[];
  /** Lifetime in seconds: an hour by default, a day at most. */
  expiresIn?: number;
}

/**
 * A client of the platform's API. Tokens are cached and renewed before they expire, and once after a 401. Requests that may be repeated are
 * retried up to three times when the platform is unavailable. Every method throws `ApiError`, `UnreachableError`, or the reason of the
 * caller's signal.
 */
export class FleetClient extends ApiClient {
  readonly #credentials: Credentials;

  /** @throws Error when an address or a credential is missing, TypeError for an unknown option */
  constructor(options: FleetClientOptions = {}) {
    requireKnownOptions('a FleetClient', options, OPTIONS);
    const { api, credentials } = nodeApi(options, options.agentType);
    super(api, currentTraceparent);
    this.#credentials = credentials;
  }

  /**
   * A token for an end user, which the user's browser may have: it sends as that user, and reaches what is that user's.
   * @throws TypeError where the client has a token and no client id and secret
   */
  async createUserToken(userId: string, options: UserTokenOptions = {}) {
    const { clientId, clientSecret } = this.#credentials as Partial<Extract<Credentials, { clientId: string }>>;
    if (clientId === undefined || clientSecret === undefined)
      throw new TypeError('a token for a user takes a client with a clientId and clientSecret');
    return this.auth.getToken({ clientId, clientSecret, userId, ...options });
  }
}
