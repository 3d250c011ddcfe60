import { PlatformApi } from '../client/api/platform-api.js';
import { type TokenProvider, TokenSource } from '../client/api/token-source.js';
import { ApiClient } from '../client/api-client.js';
import { FetchTransport } from '../client/transport/fetch-transport.js';

export interface FleetClientOptions {
  /** Address of the platform's API, for example `https://fleet.example.com`. */
  url: string;
  /**
   * A short-lived, narrow access token that your own server has got for this user, or better a function that fetches one from it: it is
   * called again when the token is about to expire. A client's secret never belongs into a page.
   */
  token: string | TokenProvider;
}

/**
 * A client of the platform's API for pages. The platform must name the page's origin in `CORS_ORIGINS`. Everything else is as on Node.
 */
export class FleetClient extends ApiClient {
  constructor({ url, token }: FleetClientOptions) {
    const transport = new FetchTransport(url);
    super(new PlatformApi(transport, new TokenSource(transport, { token })));
  }
}
