import { statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { GetTokenResponse } from '../../../contracts/api/auth.js';
import { startPlatform } from '../../setup/platform/platform.js';
import { until } from '../../setup/until.js';
import { to } from '../../system/fixture.js';

const { platform, database } = await startPlatform({ FLEET_EXAMPLES: 'on' });
const { client } = platform;
const defaultType = () => database.query('SELECT default_agent_type FROM tenants');

test('the first message goes to the concierge without a target; a default that was chosen stays after a restart', async () => {
  const task = await client.send('What is 6 * 7?');
  expect(task).toMatchObject({ status: { state: 'completed' }, metadata: { agent_type: 'concierge' } });
  expect(await defaultType()).toEqual([{ default_agent_type: 'concierge' }]);
  await client.post('/agents/set_default', { agent_type: 'librarian' });
  await platform.restart();
  expect(await defaultType()).toEqual([{ default_agent_type: 'librarian' }]);
}, 120_000);

test('dev.json has a credential for agents, which stays: of any type, and for nothing else', async () => {
  const { agent_client_id: client_id, agent_client_secret: client_secret } = platform.devJson();
  const credential = { client_id, client_secret };
  expect(await client.failure('/auth/get_token', credential)).toBe('403 forbidden');
  const asked = { ...credential, agent_type: 'shouter' };
  const { token, scopes } = await client.ok('/auth/get_token', asked, GetTokenResponse);
  expect(scopes).toEqual(['read']);
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
  const statusOf = async (path: string, body: object) => (await client.raw(path, JSON.stringify(body), headers)).status;
  expect(await statusOf('/agents/register', { agent_type: 'shouter' })).toBe(200);
  expect(await statusOf('/messages/pending', {})).toBe(403);
  expect(statSync(join(platform.dataDir, 'agents.json')).mode & 0o777).toBe(0o600);
  await platform.restart();
  expect(platform.devJson()).toMatchObject({ agent_client_id: client_id, agent_client_secret: client_secret });
}, 120_000);

test('the example agents report by what agents may do', async () => {
  const report = async () => {
    const { status, artifacts } = await client.send('status', to('concierge'));
    const text = JSON.stringify(artifacts);
    return status.state === 'completed' && text.includes('librarian-1') ? text : undefined;
  };
  const text = await until(report, { timeoutMs: 60_000, what: 'the report with both example agents' });
  expect(text).toContain('Available agents');
  expect(text).toMatch(/My messages: .*1 working/);
}, 120_000);
