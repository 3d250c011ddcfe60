import { afterAll, beforeAll, expect, test } from 'vitest';
import { type SharedPlatform, startPlatform } from '../../setup/platform/platform.js';

let shared: SharedPlatform;
beforeAll(async () => {
  shared = await startPlatform({ FLEET_EXAMPLES: 'on' });
});
afterAll(() => shared?.dispose());

test('the first message of a platform with the example agents goes to the concierge, also without a target', async () => {
  const task = await shared.platform.client.send('What is 6 * 7?');
  expect(task).toMatchObject({ status: { state: 'completed' }, metadata: { agent_type: 'concierge' } });
  const [tenant] = await shared.database.query('SELECT default_agent_type FROM tenants');
  expect(tenant).toEqual({ default_agent_type: 'concierge' });
});

test('a default that was chosen stays after a restart', async () => {
  const { platform, database } = shared;
  await platform.client.post('/agents/set_default', { agent_type: 'librarian' });
  await platform.stop();
  await platform.start();
  const [tenant] = await database.query('SELECT default_agent_type FROM tenants');
  expect(tenant).toEqual({ default_agent_type: 'librarian' });
});
