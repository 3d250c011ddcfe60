import { expect, test } from 'vitest';
import { serveApi } from '../../api/served-api.js';
import { createPlan, readPlan, step } from '../../plans/plan-fixture.js';
import { failed, PlanRecord } from '../../plans/plan-record.js';
import { until } from '../../setup/until.js';
import { consoleBrowser, expectAccessible, expectFits, PHONE } from './browser.js';

const api = await serveApi({ sequencer: true, tenantMaxInFlight: 1_000 });
const { signedIn } = await consoleBrowser(api);
const record = new PlanRecord(api);
await record.agent('researcher');
await record.agent('writer', (text) => (text.startsWith('Price') ? failed('NO_TABLE', 'no prices') : null));

const STEPS = [
  step('facts', 'researcher', 'Collect the facts'),
  step('prices', 'writer', 'Price it', { depends_on: ['facts'] }),
  step('draft', 'writer', 'Write it: {{steps.facts.output}}'),
  step('send', 'writer', 'Send it: {{steps.draft.output}}', { requires_approval: true }),
];

test('a plan is found, approved, followed step by step, and canceled by who may', async () => {
  for (let nth = 0; nth < 55; nth += 1)
    await createPlan(api.client, STEPS.slice(0, 1), { description: `Old ${nth}`, auto_approve: false });
  const more = { description: 'Answer the tender', auto_approve: false };
  const { plan_id } = await createPlan(api.client, STEPS, more);
  const { page, problems } = await signedIn(['admin']);
  await page.keyboard.press('g');
  await page.keyboard.press('n');
  await page.getByRole('heading', { name: 'Answer the tender', exact: true }).waitFor();
  expect(page.url()).toContain(`plan=${plan_id}`);
  await page.getByRole('link', { name: /^Old 6 / }).waitFor(); // the last of the first page
  await page.locator('.plans .entries').evaluate((list) => list.scrollTo(0, 1_000_000));
  await page.getByRole('link', { name: /^Old 0 / }).waitFor();

  await page.keyboard.press('a');
  await until(async () => (await readPlan(api.client, plan_id)).state === 'running');
  await record.move(plan_id);
  await page.getByText('Waits for draft').waitFor();
  await page.getByText('NO_TABLE no prices').waitFor();
  await page.locator('.step-box', { hasText: 'draft' }).click();
  await page.waitForURL('**step=draft*');
  await page.getByRole('link', { name: 'Open the message' }).waitFor();
  await expectAccessible(page);

  const reader = await signedIn(['read'], { viewport: PHONE });
  await reader.page.goto(`${api.baseUrl}/console/plans?plan=${plan_id}&step=prices`);
  await reader.page.getByText('NO_TABLE no prices').waitFor();
  await reader.page.locator('.step-box').first().waitFor();
  await expectFits(reader.page);
  const waiting = await createPlan(api.client, STEPS, more);
  await reader.page.goto(`${api.baseUrl}/console/plans?plan=${waiting.plan_id}`);
  await reader.page.getByText('You cannot answer this request').waitFor();
  expect(await reader.page.getByRole('button', { name: /Approve|Reject/ }).count()).toBe(0);
  expect(reader.problems).toEqual([]);

  await page.getByRole('button', { name: 'Cancel the plan' }).click();
  expect((await readPlan(api.client, plan_id)).state).toBe('running');
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel the plan' }).click();
  await until(async () => (await readPlan(api.client, plan_id)).state === 'canceled');
  await page.getByRole('button', { name: 'Cancel the plan' }).waitFor({ state: 'detached' });
  await page.getByLabel('State').selectOption('canceled');
  await page.waitForURL('**state=canceled*');
  await page.getByRole('link', { name: /^Old 0 / }).waitFor({ state: 'detached' });
  expect(problems).toEqual([]);
}, 120_000);
