import { fleetClient } from '../../setup/fleet-client.js';
import { sharedPlatform } from '../../setup/platform/shared-platform.js';
import { serverOf1, serverOf03 } from './js-servers.js';
import { describeServer } from './official-server.js';

const client = fleetClient((await sharedPlatform()).platform);

describeServer('@a2a-js/sdk 1.x', client, serverOf1);
describeServer('@a2a-js/sdk 0.3', client, serverOf03);
