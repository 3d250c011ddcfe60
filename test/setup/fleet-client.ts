import { FleetClient } from '../../sdk/index.js';
import { cleanUp } from './clean-up.js';
import type { TestPlatform } from './platform/platform-process.js';

/** A client of the SDK for a platform, with its first credential. It ends with the test or the file. */
export function fleetClient(platform: Pick<TestPlatform, 'devJson'>): FleetClient {
  const { base_url: url, client_id: clientId, client_secret: clientSecret } = platform.devJson();
  const client = new FleetClient({ url, clientId, clientSecret });
  cleanUp(() => client.destroy());
  return client;
}
