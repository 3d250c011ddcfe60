import { expect, test } from 'vitest';
import { countOutcome } from '../../../agents/agent-health.js';
import { AgentGetByIdResponse } from '../../../contracts/api/agents.js';
import { answerMessage, COMPLETED, joinOnRecord } from '../../api/moving.js';
import { serveApi } from '../../api/served-api.js';
import { until } from '../../setup/until.js';
import { consoleBrowser, expectAccessible, expectFits, PHONE, violations } from './browser.js';

const api = await serveApi({ sequencer: true, clocks: { credentialCheckMs: 200 }, tenantMaxInFlight: 1_000 });
const { signedIn } = await consoleBrowser(api);

const statusOf = async (instance_id: string) =>
  (await api.client.ok('/agents/get_by_id', { instance_id }, AgentGetByIdResponse)).agent.status;
const newestId = async () =>
  (await api.database.value('SELECT max(message_id) FROM running_messages')) as unknown as string | null;

test('the fleet: how the first agent joins, then who fails and since when, drained and deregistered by who may', async () => {
  const { page, problems } = await signedIn(['admin']);
  await page.goto(`${api.baseUrl}/console/fleet`);
  await page.getByText(`url: '${api.baseUrl}'`).waitFor();
  expect(await violations(page)).toEqual([]);

  // They join while the page is open.
  for (const name of ['worker-1', 'worker-2']) await joinOnRecord(api, name);
  await api.client.post('/agents/register', { instance_id: 'idle-1', agent_type: 'idle' });
  await page.getByRole('link', { name: /^worker / }).waitFor();
  for (let nth = 0; nth < 5; nth += 1)
    await countOutcome(api.db, { tenant_id: api.tenantId, instance_id: 'worker-1' }, 'OUT_OF_PAPER');
  await api.client.post('/agents/register', { instance_id: 'idle-2', agent_type: 'idle' });
  await page.getByRole('link', { name: /worker.*1 of 2 failing for/ }).waitFor();
  await page.getByRole('link', { name: 'idle', exact: false }).first().click();
  await page.getByRole('heading', { name: 'idle' }).waitFor();
  await page.keyboard.press('k');
  await page.getByRole('link', { name: 'worker-1', exact: true }).click();
  expect(page.url()).toMatch(/type=worker&instance=worker-1/);

  await page.getByRole('button', { name: 'Drain', exact: true }).click();
  await page.getByRole('button', { name: 'End the drain' }).waitFor();
  expect(await statusOf('worker-1')).toBe('draining');
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Deregister' }).click();
  expect(await statusOf('worker-1')).toBe('draining');
  await page.getByRole('dialog').getByRole('button', { name: 'Deregister' }).click();
  await page.getByRole('link', { name: 'worker-1', exact: true }).waitFor({ state: 'detached' });
  expect(await statusOf('worker-1')).toBe('offline');
  expect(problems).toEqual([]);

  const reader = await signedIn(['read'], { viewport: PHONE });
  await reader.page.goto(`${api.baseUrl}/console/fleet?type=worker&instance=worker-2`);
  await reader.page.getByText('Dispatches in all').waitFor();
  expect(await reader.page.getByRole('button', { name: /Drain|Deregister/ }).count()).toBe(0);
  await expectFits(reader.page);
  expect(reader.problems).toEqual([]);
}, 120_000);

test('talk: sent, streamed, asked and answered, seen again after a reload, canceled', async () => {
  await joinOnRecord(api, 'talker-1');
  const { page, problems } = await signedIn(['read']);
  await page.goto(`${api.baseUrl}/console/talk?agent=worker`);
  const field = page.getByLabel('Message', { exact: true });
  await field.fill('Order the lunch');
  await page.keyboard.press('Enter');
  await page.waitForURL('**session=ses_*');
  const asked = String(await newestId());
  await page.getByRole('button', { name: 'Cancel' }).waitFor();
  const schema = { type: 'object', properties: { n: { type: 'integer', title: 'How many people' } }, required: ['n'] };
  const input_request = { kind: 'form' as const, title: 'What shall I order?', schema };
  await answerMessage(api, asked, { state: 'input-required', artifacts: [], input_request });
  await page.getByLabel('How many people').fill('4');
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Submit' }).click();
  await page.getByText('is about to be sent').waitFor();
  const resolution = () =>
    api.database.query("SELECT 1 FROM running_messages WHERE message_id = $1 AND resolution -> 'data' = '{\"n\": 4}'", [
      asked,
    ]);
  await until(async () => (await resolution()).length > 0);

  const text = 'Lunch for **four** <img src=x onerror=alert(1)> [here](javascript:alert(1))';
  const file = { name: 'menu.txt', mimeType: 'text/plain', bytes: Buffer.from('soup').toString('base64') };
  const parts = [
    { kind: 'text' as const, text },
    { kind: 'file' as const, file },
  ];
  await answerMessage(api, asked, { ...COMPLETED, artifacts: [{ artifactId: 'a', parts }] });
  await page.locator('.markdown strong', { hasText: 'four' }).waitFor();
  await page.reload();
  await page.locator('.markdown strong', { hasText: 'four' }).waitFor();
  expect(await page.locator('.markdown').textContent()).toContain('<img src=x onerror=alert(1)>');
  expect(await page.locator('.markdown img, .markdown a[href]').count()).toBe(0);
  const [saved] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Save' }).click(),
  ]);
  expect(saved.suggestedFilename()).toBe('menu.txt');

  await field.fill('And for tomorrow');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('canceled', { exact: true }).waitFor();
  await page.getByLabel('Agent').selectOption('idle');
  await field.fill('Are you there?');
  await page.keyboard.press('Enter');
  await page.getByText('Waiting for idle').waitFor();
  expect(await page.getByRole('link', { name: 'Open message' }).first().getAttribute('href')).toContain(asked);
  await page.setViewportSize(PHONE);
  await expectFits(page);
  expect(problems).toEqual([]);
}, 120_000);

test('a message that is refused says what to do, and its text is kept', async () => {
  const { page } = await signedIn(['read']);
  await page.goto(`${api.baseUrl}/console/talk?session=ses_01a22347-0000-7000-8000-000000000000&agent=idle`);
  await page.getByLabel('Message', { exact: true }).fill('Hello?');
  await page.keyboard.press('Enter');
  await page.getByText('This conversation is not here. Start a new one.').waitFor();
  await page.getByRole('button', { name: 'Edit and send again' }).click();
  expect(await page.getByLabel('Message', { exact: true }).inputValue()).toBe('Hello?');
});
