import { expect, test } from 'vitest';
import { answerMessage, COMPLETED, joinOnRecord } from '../../api/moving.js';
import { serveApi } from '../../api/served-api.js';
import { until } from '../../setup/until.js';
import { consoleBrowser, expectAccessible, expectFits, PHONE } from './browser.js';

const api = await serveApi({ sequencer: true });
const { signedIn } = await consoleBrowser(api);

test('usage: what it costs at a glance, by whom, and how much is left', async () => {
  await joinOnRecord(api, 'worker-1');
  await api.client.post('/tenants/set_prices', { model: 'large', input_per_million: 3, output_per_million: 15 });
  await api.client.post('/tenants/set_limits', { cost_usd_per_month: 10, messages_per_day: 1 });
  const { id } = await api.client.send('How much?', { metadata: { agent_type: 'worker' }, blocking: false });
  const usage = { input_tokens: 1_000_000, output_tokens: 100_000, model: 'large' };
  await answerMessage(api, id, { ...COMPLETED, usage });
  const report = async () => JSON.stringify((await api.client.post('/telemetry/get_usage', {})).body);
  await until(async () => (await report()).includes('"cost_usd":4.5'));

  const { page, problems } = await signedIn(['full']);
  await page.keyboard.press('g');
  await page.keyboard.press('u');
  await page.getByText('$4.50 on the busiest day').waitFor();
  await page.getByText('of $10.00, 45 %').waitFor();
  await page.getByText('of 1, 100 %').waitFor();
  await page.getByRole('link', { name: 'Model', exact: true }).click();
  const row = page.getByRole('row', { name: /^large/ });
  await row.getByText('1,000,000').waitFor();
  expect(page.url()).toContain('by=model');
  await page.reload();
  await row.getByText('$4.50').waitFor();
  await expectAccessible(page);
  await page.getByRole('link', { name: 'Change' }).click();
  await page.getByLabel('The whole tenant: Messages a day').waitFor();
  expect(problems).toEqual([]);

  const reader = await signedIn(['read'], { viewport: PHONE });
  await reader.page.goto(`${api.baseUrl}/console/usage?by=agent_type&range=24h&measure=messages`);
  await reader.page.getByRole('link', { name: 'worker' }).waitFor();
  expect(await reader.page.getByText('Quotas').count()).toBe(0);
  await expectFits(reader.page);
  expect(reader.problems).toEqual([]);
}, 60_000);
