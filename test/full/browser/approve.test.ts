import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { GetApprovalsResponse } from '../../../contracts/api/policies/approvals.js';
import { answerMessage } from '../../api/moving.js';
import { serveApi } from '../../api/served-api.js';
import { approvalsFixture } from '../../messages/approvals/approvals-fixture.js';
import { startChromium } from '../../setup/chromium.js';

const api = await serveApi();
const { calling, tokenFor } = await approvalsFixture(api);
const browser = await startChromium();

/** The values that the agent gets. */
const filledIn = (id: string) =>
  api.database.value("SELECT resolution -> 'data' FROM running_messages WHERE message_id = $1", [id]);

/** A message whose agent asks by a form. @returns its id */
async function formed(title: string, properties: object, required: string[] = []): Promise<string> {
  const { id } = await api.client.send('hi', { metadata: { agent_type: 'worker' }, blocking: false });
  const input_request = { kind: 'form' as const, title, schema: { type: 'object', properties, required } };
  await answerMessage(api, id, { state: 'input-required', artifacts: [], input_request });
  return id;
}

/** Opens a link on a phone without scripts. Violations of the page's policy fail the test. */
async function open(token: string): Promise<Page> {
  const context = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 360, height: 740 } });
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('console', (message) => problems.push(message.text()));
  await page.goto(`${api.baseUrl}/approve/${token}`);
  expect(problems).toEqual([]);
  return page;
}

test('on a phone, without a script: what is asked fits the screen, and a button decides', async () => {
  const { id } = await calling({ to: 'anna', memo: 'x'.repeat(400), nested: { in: { here: ['y'.repeat(400)] } } });
  const page = await open(await tokenFor(id));
  const width = await page.locator('main').evaluate((main) => main.scrollWidth);
  expect(width).toBeLessThanOrEqual(360);
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('May pay be called?');
  const button = page.getByRole('button', { name: 'Reject' });
  const box = await button.boundingBox();
  expect(box?.height).toBeGreaterThanOrEqual(44);
  await page.getByLabel('Comment').fill('not today');
  await button.click();
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toContain('rejected');
  const { approvals } = await api.client.ok('/messages/get_approvals', { message_id: id }, GetApprovalsResponse);
  expect(approvals).toMatchObject([{ resolution: 'rejected', comment: 'not today', principal: { type: 'page' } }]);
  await page.reload();
  expect(await page.textContent('main')).toContain('already decided');
});

test('with its script, times are in the zone of the reader, and so are those that are entered', async () => {
  const at = { type: 'string', format: 'date-time', default: '2026-12-24T18:00:00Z' };
  const id = await formed('When?', { at });
  const context = await browser.newContext({ timezoneId: 'Asia/Tokyo', locale: 'en-GB' });
  const page = await context.newPage();
  await page.goto(`${api.baseUrl}/approve/${await tokenFor(id)}`);
  expect(await page.locator('time').first().textContent()).toContain('GMT+9');
  expect(await page.textContent('.zone')).toContain('Asia/Tokyo');
  const field = page.locator('input[type=datetime-local]');
  expect(await field.inputValue()).toBe('2026-12-25T03:00');
  await field.fill('2026-12-25T09:30');
  await page.getByRole('button', { name: 'Submit' }).click();
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toContain('submitted');
  expect(await filledIn(id)).toEqual({ at: '2026-12-25T00:30:00.000Z' });
});

test('what is decided is above the buttons, however long it is, and hidden in no box', async () => {
  const { id } = await calling({ note: 'line\n'.repeat(300), danger: 'everything is deleted' });
  const page = await open(await tokenFor(id));
  const danger = await page.getByText('everything is deleted').boundingBox();
  const approve = await page.getByRole('button', { name: 'Approve' }).boundingBox();
  expect(danger?.height).toBeGreaterThan(0);
  expect((danger?.y ?? Number.POSITIVE_INFINITY) + (danger?.height ?? 0)).toBeLessThan(approve?.y ?? 0);
  const boxes = page.locator('.content');
  for (const box of await boxes.all())
    expect(await box.evaluate((element) => element.scrollHeight - element.clientHeight)).toBe(0);
});

test('a form is filled in and sent', async () => {
  const n = { type: 'integer', title: 'How many' };
  const properties = { n, color: { enum: ['red', 'blue'] }, urgent: { type: 'boolean' } };
  const id = await formed('What shall I order?', properties, ['n']);
  const page = await open(await tokenFor(id));
  await page.getByLabel('How many').fill('4');
  await page.getByLabel('color').selectOption('blue');
  await page.getByLabel('urgent').check();
  await page.getByRole('button', { name: 'Submit' }).click();
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toContain('submitted');
  expect(await filledIn(id)).toEqual({ n: 4, color: 'blue', urgent: true });
});
