import type { AccessOptions } from '../access.js';
import { nodeApi } from './api/node-api.js';
import { ApiClient } from './api-client.js';

export interface FleetClientOptions extends AccessOptions {
  /** `agent_type` claim of the token; the platform's default is `credential`. */
  agentType?: string;
}

/**
 * A client of the platform's API. Tokens are cached and renewed before they expire, and once after a 401. Requests that may be repeated are
 * retried up to three times when the platform is unavailable. Every method throws `ApiError`, `UnreachableError`, or the reason of the
 * caller's signal.
 */
export class FleetClient extends ApiClient {
  /** @throws Error when an address or a credential is missing */
  constructor(options: FleetClientOptions = {}) {
    super(nodeApi(options, options.agentType).api);
  }
}
