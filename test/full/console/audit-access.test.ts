import { expect, test } from 'vitest';
import { CredentialsGetResponse } from '../../../contracts/api/auth.js';
import { ASKS, answerMessage, joinOnRecord } from '../../api/moving.js';
import { serveApi } from '../../api/served-api.js';
import { until } from '../../setup/until.js';
import { consoleBrowser, expectAccessible, expectGoodOnPhone, expectNoSideways, PHONE, violations } from './browser.js';

const api = await serveApi({ clocks: { credentialCheckMs: 200 } });
const { signedIn } = await consoleBrowser(api);

test('audit: what was changed by whom, as a diff, with a way to the thing itself', async () => {
  await joinOnRecord(api, 'worker-1');
  for (const messages_per_day of [10, 20]) await api.client.post('/tenants/set_limits', { messages_per_day });
  const { id } = await api.client.send('Pay', { metadata: { agent_type: 'worker' }, blocking: false });
  await answerMessage(api, id, ASKS);
  const { page, problems } = await signedIn(['full']);
  // `A` approves in the inbox, but not after `G`.
  await page.locator('.entry, .row').first().waitFor();
  await page.keyboard.press('g');
  await page.keyboard.press('a');
  await page.getByRole('heading', { name: 'Audit' }).waitFor();
  expect(await page.getByText('is about to be sent').count()).toBe(0);

  await page.getByLabel('Action').selectOption('limits');
  await page.waitForURL('**action=limits*');
  await page
    .getByRole('link', { name: /Set the limits of/ })
    .nth(1)
    .waitFor();
  await page.locator('.changes del', { hasText: '10' }).waitFor();
  await page.locator('.changes ins', { hasText: '20' }).waitFor();
  await page.reload();
  await page.locator('.changes ins', { hasText: '20' }).waitFor();
  await expectGoodOnPhone(page);
  await page.getByRole('link', { name: 'Open it' }).click();
  await page.getByLabel('The whole tenant: Messages a day').waitFor();
  expect(problems).toEqual([]);
}, 60_000);

test('access: a credential is made, shown its secret once, given another, and revoked', async () => {
  const { page, problems } = await signedIn(['full']);
  await page.goto(`${api.baseUrl}/console/access`);
  await page.getByRole('link', { name: 'New credential' }).waitFor();
  await page.keyboard.press('n');
  await page.getByLabel('Name', { exact: true }).fill('billing');
  await page.getByLabel('Agent types').fill('support, search');
  expect(await violations(page)).toEqual([]);
  await page.getByRole('button', { name: 'Create' }).click();
  const secret = page.locator('.secret');
  const first = await secret.textContent();
  await page.keyboard.press('Escape');
  expect(await secret.isVisible()).toBe(true);
  await page.getByRole('button', { name: 'I have it' }).click();
  await page.getByText('support, search').first().waitFor();
  const [client_id, client_secret] = [...(first ?? '').matchAll(/=(.*)/g)].map(([, value]) => String(value));
  await api.tokenAs({ client_id: String(client_id), client_secret: String(client_secret) }, 'support');
  const found = async () =>
    (await api.client.ok('/credentials/get', {}, CredentialsGetResponse)).credentials.find(
      (one) => one.client_id === client_id,
    );
  expect((await found())?.last_used_at).not.toBeNull();

  await page.getByRole('button', { name: 'Give it a new secret' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Give it a new secret' }).click();
  await secret.waitFor();
  expect(await secret.textContent()).not.toBe(first);
  await page.getByRole('button', { name: 'I have it' }).click();
  await expectGoodOnPhone(page);
  await page.getByRole('button', { name: 'Revoke', exact: true }).click();
  await page.getByRole('heading', { name: 'Revoke billing?' }).waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await until(async () => (await found())?.revoked_at);
  expect(problems).toEqual([]);
}, 60_000);

test('limits and prices are changed by who may, and others see neither them nor a button', async () => {
  const { page, problems } = await signedIn(['full'], { viewport: PHONE });
  await page.goto(`${api.baseUrl}/console/access?tab=limits`);
  await page.getByLabel('Each user: Messages a day').fill('7');
  await page.getByRole('button', { name: 'Save the limits' }).click();
  await until(async () =>
    JSON.stringify((await api.client.post('/tenants/get_limits', {})).body).includes(
      '"per_user":{"messages_per_day":7}',
    ),
  );
  await page.getByLabel('Model').fill('large');
  await page.getByLabel('Input, $').fill('3');
  await page.getByLabel('Output, $').fill('15');
  await page.getByRole('button', { name: 'Set the price' }).click();
  await page
    .getByRole('row', { name: /^large/ })
    .getByText('$15')
    .waitFor();
  await expectAccessible(page);
  await expectNoSideways(page);
  expect(problems).toEqual([]);

  const admin = await signedIn(['admin']);
  await admin.page.goto(`${api.baseUrl}/console/access`);
  await admin.page.getByText('“Access” needs the scope full').waitFor();
  expect(await admin.page.getByRole('link', { name: 'Access' }).count()).toBe(0);
  expect(admin.problems).toEqual([]);
}, 60_000);
