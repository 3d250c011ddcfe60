import { afterAll, beforeAll } from 'vitest';
import { FleetClient } from '../../../sdk/index.js';
import { sharedPlatform } from '../../setup/platform/shared-platform.js';
import { serverOf1, serverOf03 } from './js-servers.js';
import { describeServer } from './official-server.js';

let client: FleetClient;

beforeAll(async () => {
  const { platform } = await sharedPlatform();
  const { base_url: url, client_id: clientId, client_secret: clientSecret } = platform.devJson();
  client = new FleetClient({ url, clientId, clientSecret });
});
afterAll(() => client?.destroy());

describeServer('@a2a-js/sdk 1.x', () => client, serverOf1);
describeServer('@a2a-js/sdk 0.3', () => client, serverOf03);
