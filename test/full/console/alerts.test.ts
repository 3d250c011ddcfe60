import { expect, test } from 'vitest';
import { AlertRule } from '../../../contracts/api/alerts.js';
import { newId } from '../../../runtime/ids.js';
import { deliveriesOf } from '../../alerts/alert-fixture.js';
import { serveApi } from '../../api/served-api.js';
import { receiver, status } from '../../setup/receiver.js';
import { until } from '../../setup/until.js';
import { consoleBrowser, expectAccessible, expectGoodOnPhone, expectNoSideways, PHONE, violations } from './browser.js';

const api = await serveApi();
const { signedIn } = await consoleBrowser(api);

async function ruleTo(url: string) {
  const channel = { type: 'webhook', config: { url, secret: 'whsec_c2VjcmV0' } };
  const body = { name: 'Agents in trouble', condition: { event: 'agent.*' }, notifications: [channel] };
  return api.client.ok('/policies/new_alert', body, AlertRule);
}

/** A delivery of a rule that was given up. */
async function giveUp({ rule_id, notifications: [channel] }: AlertRule, url: string): Promise<string> {
  const id = newId('dlv');
  const attempt = { at: new Date().toISOString(), status_code: 503, response_time_ms: 9, success: false };
  await api.database.query(
    `INSERT INTO deliveries (tenant_id, delivery_id, event_type, session_id, rule_id, channel_id, url, receiver, status, max_attempts, attempts)
     VALUES ($1, $2, 'agent.health_changed', '', $3, $4, $5, 'ops', 'failed', 3, $6)`,
    [api.tenantId, id, rule_id, channel?.channel_id, url, JSON.stringify([attempt])],
  );
  return id;
}

test('deliveries: the failed first, each attempt, and what is selected sent again', async () => {
  const url = 'http://127.0.0.1:9/hook';
  const rule = await ruleTo(url);
  const ids = [await giveUp(rule, url), await giveUp(rule, url)];
  const { page, problems } = await signedIn(['admin']);
  await page.keyboard.press('g');
  await page.keyboard.press('w');
  await page
    .getByRole('link', { name: /agent.health_changed.*503 · Agents in trouble/ })
    .nth(1)
    .waitFor();
  await page.getByText('Given up after 1 attempt: 503').waitFor();
  expect(page.url()).toContain(`delivery=${ids[1]}`);
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Select the 2 that are loaded' }).click();
  await page.getByRole('button', { name: 'Send 2 again' }).click();
  const statuses = async () => (await deliveriesOf(api.client, rule.rule_id)).map((one) => one.status);
  expect(await statuses()).toEqual(['failed', 'failed']);
  await page.getByRole('dialog').getByRole('button', { name: 'Send 2 again' }).click();
  await until(async () => (await statuses()).join() === 'pending,pending');
  await page.getByRole('heading', { name: 'No delivery has failed' }).waitFor();
  await page.setViewportSize(PHONE);
  await page.getByText('The next attempt comes').waitFor();
  await expectNoSideways(page);
  expect(problems).toEqual([]);
}, 60_000);

test('rules: made, tested, changed, switched off and deleted; nothing for who may not', async () => {
  const to = await receiver(status(204));
  const { page, problems } = await signedIn(['admin']);
  await page.goto(`${api.baseUrl}/console/alerts?tab=rules`);
  await page.getByRole('link', { name: 'New rule' }).waitFor();
  await page.keyboard.press('n');
  await page.getByLabel('Name').fill('Failures');
  await page.getByLabel('Event', { exact: true }).fill('message.nothing');
  await page.getByLabel('URL').fill(to.url);
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('alert').getByText('must match at least one event type').waitFor();
  expect(await page.getByLabel('URL').inputValue()).toBe(to.url);
  problems.splice(0); // the refusal
  await page.getByLabel('Event', { exact: true }).fill('message.error');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('heading', { name: 'Failures' }).waitFor();
  await page.getByRole('button', { name: 'Send a test' }).click();
  await page.getByText('arrived').waitFor();
  expect(to.arrived[0]?.body).toMatchObject({ test: true });

  await page.getByRole('link', { name: 'Edit' }).click();
  await page.getByLabel('Only where (JSON)').fill('{"error": "NO_CARD"}');
  expect(await violations(page)).toEqual([]);
  await page.getByRole('button', { name: 'Save' }).click();
  await page.locator('.code', { hasText: 'NO_CARD' }).waitFor();
  await page.getByRole('button', { name: 'Switch off' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Switch off' }).click();
  await page.getByRole('button', { name: 'Switch on' }).waitFor();
  await expectGoodOnPhone(page);
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('link', { name: /^Failures/ }).waitFor({ state: 'detached' });
  expect(problems).toEqual([]);

  const reader = await signedIn(['read']);
  await reader.page.goto(`${api.baseUrl}/console/alerts?tab=rules`);
  await reader.page.getByText('“Alerts” needs the scope admin').waitFor();
  expect(await reader.page.getByRole('link', { name: 'Alerts' }).count()).toBe(0);
  expect(reader.problems).toEqual([]);
}, 60_000);
