import { expect, test } from 'vitest';
import { Sources } from '../../../contracts/api/knowledge/knowledge.js';
import { SessionGetByIdResponse, SessionInitResponse } from '../../../contracts/api/sessions.js';
import { joinOnRecord } from '../../api/moving.js';
import { serveApi } from '../../api/served-api.js';
import { until } from '../../setup/until.js';
import { consoleBrowser, expectAccessible, expectFits, PHONE, violations } from './browser.js';

const api = await serveApi({ sequencer: true, tenantMaxInFlight: 1_000 });
const { signedIn, answer } = await consoleBrowser(api);

test('a session is found by its user, read as it goes on, talked on and closed', async () => {
  await joinOnRecord(api, 'worker-1');
  const open = (user_id: string) =>
    api.client.ok('/sessions/init', { agent_type: 'worker', user_id }, SessionInitResponse);
  const { session_id } = await open('ada');
  for (let nth = 0; nth < 3; nth += 1) await open('bob');
  const statusOf = async () =>
    (await api.client.ok('/sessions/get_by_id', { session_id }, SessionGetByIdResponse)).session.status;
  const { page, problems } = await signedIn(['read']);
  await page.keyboard.press('g');
  await page.keyboard.press('s');
  await page.getByRole('heading', { name: 'Session bob' }).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('ada');
  await page.keyboard.press('Enter');
  await page.waitForURL('**user=ada*');
  await page.getByRole('heading', { name: 'Session ada' }).waitFor();
  const { id } = await api.client.send('Which orders are late?', { contextId: session_id, blocking: false });
  await page.getByText('worker is working').or(page.getByText('Waiting for')).waitFor();
  await answer(id, 'Order 1007.');
  await page.getByText('Order 1007.').waitFor();
  await expectAccessible(page);
  expect(await page.getByRole('link', { name: 'Talk on' }).getAttribute('href')).toContain(`session=${session_id}`);
  await page.getByRole('button', { name: 'Close', exact: true }).click();
  expect(await statusOf()).toBe('active');
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
  await page.getByRole('link', { name: 'Talk on' }).waitFor({ state: 'detached' });
  expect(await statusOf()).toBe('completed');
  await page.setViewportSize(PHONE);
  await expectFits(page);
  expect(problems).toEqual([]);
}, 120_000);

test('a knowledge base is made, filled, asked and deleted by who may', async () => {
  const { page, problems } = await signedIn(['full']);
  await page.keyboard.press('g');
  await page.keyboard.press('k');
  await page.getByRole('heading', { name: 'No knowledge bases yet' }).waitFor();
  await page.getByRole('button', { name: 'New' }).first().click();
  await page.getByLabel('Name').fill('handbook');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.waitForURL('**base=handbook*');
  const add = async (text: string, title = '') => {
    await page.getByRole('button', { name: 'Add a source' }).click();
    await page.getByLabel('Text or Markdown').fill(text);
    await page.getByLabel('Title').fill(title);
    await page.getByRole('dialog').getByRole('button', { name: 'Add', exact: true }).click();
    await page.waitForURL('**job=job_*');
  };
  await add('# Travel\n\n## Trains\n\nFirst class is paid for long journeys.');
  await page.getByRole('link', { name: /Added.*1 new/ }).waitFor();
  await add('<!doctype html><html></html>', 'Nothing');
  await page.getByText('EMPTY').first().waitFor();
  await expectAccessible(page);
  await page.getByRole('link', { name: 'Try a query' }).click();
  await page.getByLabel('Query').fill('first class journeys');
  await page.keyboard.press('Enter');
  await page.getByText('Travel › Trains').waitFor();
  expect(page.url()).toContain('q=first');
  expect(await violations(page)).toEqual([]);

  const reader = await signedIn(['read'], { viewport: PHONE });
  for (const tab of ['', '&tab=jobs', '&tab=query&q=class']) {
    await reader.page.goto(`${api.baseUrl}/console/knowledge?base=handbook${tab}`);
    await reader.page
      .getByText(/Travel|1 new/)
      .first()
      .waitFor();
    expect(await reader.page.getByRole('button', { name: /Add|again|Delete|New/ }).count()).toBe(0);
    await expectFits(reader.page);
  }
  expect(reader.problems).toEqual([]);

  await page.getByRole('link', { name: 'Sources', exact: true }).click();
  await page.locator('.sources').getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete it' }).click();
  await page.getByRole('heading', { name: 'No sources yet' }).waitFor();
  const { sources } = await api.client.ok('/knowledge_base/get_sources', { namespace: 'handbook' }, Sources);
  expect(sources).toEqual([]);
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete it' }).click();
  await page.getByRole('heading', { name: 'No knowledge bases yet' }).waitFor();
  await until(
    async () => (await api.client.post('/knowledge_base/get_by_id', { namespace: 'handbook' })).status === 404,
  );
  expect(problems).toEqual([]);
}, 120_000);
