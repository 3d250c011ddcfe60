import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { GetPoliciesResponse, type Policy } from '../../../contracts/api/policies/policies.js';
import { serveApi } from '../../api/served-api.js';
import { approvalsFixture } from '../../messages/approvals/approvals-fixture.js';
import { policyFor } from '../../policy/policy-fixture.js';
import { until } from '../../setup/until.js';
import { consoleBrowser, expectAccessible, expectFits, PHONE } from './browser.js';

const api = await serveApi({ sequencer: true, tenantMaxInFlight: 1_000 });
const { signedIn } = await consoleBrowser(api);
const { calling } = await approvalsFixture(api);

const policies = async (): Promise<Policy[]> =>
  (await api.client.ok('/policies/get_policies', {}, GetPoliciesResponse)).policies;
const named = async (name: string) => (await policies()).find((policy) => policy.name === name);

/** Nothing that axe finds in either theme, nor beyond the edge of a phone. */
async function expectGood(page: Page): Promise<void> {
  await expectAccessible(page);
  const before = page.viewportSize();
  await page.setViewportSize(PHONE);
  await expectFits(page);
  if (before) await page.setViewportSize(before);
}

test('policies: created by form and JSON, tried, changed, taken out of force and deleted', async () => {
  await policyFor(api.client, { scope: 'tool', decision: 'deny', name: 'No shell', match: { tools: ['shell.*'] } });
  const { page, problems } = await signedIn(['admin']);
  await page.keyboard.press('g');
  await page.keyboard.press('p');
  await page.getByText('Denies tool calls where the tool is shell.*.').waitFor();
  await expectGood(page);

  await page.getByRole('link', { name: 'New', exact: true }).click();
  await page.getByLabel('Name').fill('Large payments');
  await page.getByLabel('About').selectOption('tool');
  await page.getByLabel('Tools').fill('payments.*\nrefunds.*');
  await page.getByRole('button', { name: 'Add a condition' }).click();
  await page.getByLabel('Member 1').fill('amount');
  await page.getByLabel('Comparison 1').selectOption('gt');
  await page.getByLabel('Value 1').fill('1000');
  const json = page.getByLabel('JSON');
  await json.fill((await json.inputValue()).replace('"evaluator": {}', '"evaluator": {"approval": {"quorum": 99}}'));
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('alert').getByText('BAD_REQUEST').waitFor();
  await json.fill((await json.inputValue()).replace('99', '2'));
  await expectGood(page);
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByText('2 different people must approve').waitFor();
  const match = { tools: ['payments.*', 'refunds.*'], arguments: [{ path: 'amount', op: 'gt', value: 1000 }] };
  expect(await named('Large payments')).toMatchObject({ decision: 'require_approval', match });

  await page.getByRole('link', { name: 'Try it' }).click();
  await page.getByLabel('Tool', { exact: true }).fill('payments.send');
  await page.getByLabel('Arguments').fill('{"amount": 5000}');
  await page.keyboard.press('Tab');
  await page.getByRole('button', { name: 'Try it' }).click();
  await page.getByRole('listitem').filter({ hasText: 'Large payments' }).getByText('decided').waitFor();
  await expectGood(page);
  await page.getByRole('button', { name: 'Policies' }).click();

  await page.getByRole('button', { name: 'Deactivate' }).click();
  await page.getByRole('button', { name: 'Activate', exact: true }).waitFor();
  expect((await named('Large payments'))?.enabled).toBe(false);
  await page.keyboard.press('e');
  await page.getByLabel('Reason').fill('Ask first');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Reason that callers read').waitFor();
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await until(async () => (await policies()).length === 1);
  expect(problems.filter((problem) => !problem.includes('400'))).toEqual([]);
}, 120_000);

test('a decided request becomes a policy of exactly that call, after a look at the past', async () => {
  const { id, request } = await calling({ amount: 7, to: ['x'] }, {}, 'payments.send');
  const token = { sub: 'worker', credential_id: 'cl_1', scopes: ['read'], agent_type: 'worker' };
  const past = { scope: 'tool', action: 'call', agent: { agent_type: 'worker' }, token };
  await api.database.query('UPDATE input_requests SET policy_request = $2 WHERE request_id = $1', [
    request.request_id,
    past,
  ]);
  await api.client.post(`/messages/${id}/resolve`, { resolution: 'approved' });
  const { page, problems } = await signedIn(['admin']);
  await page.goto(`${api.baseUrl}/console/inbox?box=all&request=${request.request_id}`);
  await page.getByRole('link', { name: 'Always like this' }).click();
  await page.getByText('Allow 1').waitFor();
  expect(await page.getByRole('region', { name: 'Backtest' }).getByRole('link').first().getAttribute('href')).toContain(
    id,
  );
  await expectGood(page);
  await page.getByRole('button', { name: 'Remove condition 1' }).click();
  await page.getByText('The policy has changed since').waitFor();
  const most = page.getByLabel('At most … calls');
  expect(await most.inputValue()).toBe('20');
  await most.fill('');
  expect(JSON.parse(await page.getByLabel('JSON').inputValue())).toMatchObject({ max_calls: null });
  await most.fill('12');
  await page.getByText('at most 12 of them').waitFor();
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('heading', { name: 'Always allow payments.send by worker' }).waitFor();
  await page.getByText('0 of 12 calls').first().waitFor();
  expect(await named('Always allow payments.send by worker')).toMatchObject({
    max_calls: 12,
    match: { tools: ['payments.send'], arguments: [{ path: 'to.0', op: 'eq', value: 'x' }] },
    evaluator: { expression: 'size(request.arguments) == 2 && size(request.arguments["to"]) == 1' },
  });
  // A policy that denies has no bound, whatever was there before.
  await page.keyboard.press('e');
  await page.getByLabel('Effect').selectOption('deny');
  expect(await page.getByLabel('At most … calls').count()).toBe(0);
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Denies tool calls').waitFor();
  expect(await named('Always allow payments.send by worker')).not.toHaveProperty('max_calls');
  expect(problems).toEqual([]);

  const reader = await signedIn(['read']);
  await reader.page.goto(`${api.baseUrl}/console/inbox?box=all&request=${request.request_id}`);
  await reader.page.getByRole('heading', { name: 'May payments.send be called?' }).waitFor();
  expect(await reader.page.getByRole('link', { name: /Always like this|Policies|Guards/ }).count()).toBe(0);
  await reader.page.goto(`${api.baseUrl}/console/policies?panel=new`);
  await reader.page.getByText('“Policies” needs the scope admin').waitFor();
  expect(reader.problems).toEqual([]);
}, 120_000);

test('guards: switched on, changed and refused beside the form', async () => {
  const { page, problems } = await signedIn(['admin']);
  await page.keyboard.press('g');
  await page.keyboard.press('g');
  await page.getByRole('heading', { name: 'Paths' }).waitFor();
  await page.getByLabel('Allowed directories').fill('not absolute');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('alert').getByText('BAD_REQUEST').waitFor();
  expect(await page.getByLabel('Allowed directories').inputValue()).toBe('not absolute');
  await page.getByRole('button', { name: 'Undo' }).click();
  for (const key of ['j', 'j']) await page.keyboard.press(key);
  await page.getByRole('heading', { name: 'Secrets' }).waitFor();
  await page.getByLabel('Switched on').check();
  await page.getByLabel('E-mail addresses').check();
  await page.getByLabel('With what it finds').selectOption('require_approval');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Saved. It is in force').waitFor();
  await page.getByText('Changed by test').waitFor();
  const { guards } = (await api.client.post('/policies/get_guards', {})).body as { guards: object[] };
  expect(guards[2]).toMatchObject({ guard: 'secrets', enabled: true, decision: 'require_approval' });
  await expectGood(page);
  expect(problems.filter((problem) => !problem.includes('400'))).toEqual([]);
}, 120_000);

test('tools: who offers one, what decides about it, and who may offer it', async () => {
  const pay = {
    name: 'pay.send',
    description: 'Sends money',
    input_schema: { properties: { amount: { type: 'number' } } },
  };
  for (const type of ['bank', 'thief'])
    await api.client.post('/agents/register', { instance_id: `${type}-1`, agent_type: type, tools: [pay] });
  await policyFor(api.client, {
    scope: 'tool',
    decision: 'require_approval',
    name: 'Ask',
    match: { tools: ['pay.*'] },
  });
  const { page, problems } = await signedIn(['admin']);
  await page.keyboard.press('g');
  await page.keyboard.press('l');
  await page.getByText('Any agent type may offer it.').waitFor();
  await page.getByRole('link', { name: 'Ask', exact: true }).waitFor();
  await page.getByRole('button', { name: 'Set who may offer it' }).click();
  await page.getByLabel('Agent types').fill('bank');
  await page.getByText('Calls no longer reach thief').waitFor();
  await expectGood(page);
  await page.getByRole('button', { name: 'Only these types' }).click();
  await page.getByText('Only bank may offer it.').waitFor();
  await expectGood(page);
  await page.getByRole('link', { name: 'New policy' }).click();
  expect(await page.getByRole('textbox', { name: 'Tools' }).inputValue()).toBe('pay.send');
  expect(problems).toEqual([]);

  const reader = await signedIn(['read'], { viewport: PHONE });
  await reader.page.goto(`${api.baseUrl}/console/tools?tool=pay.send`);
  await reader.page.getByText('Sends money', { exact: true }).waitFor();
  expect(await reader.page.getByRole('button', { name: /Set who/ }).count()).toBe(0);
  expect(await reader.page.getByRole('link', { name: 'New policy' }).count()).toBe(0);
  expect(reader.problems).toEqual([]);
}, 120_000);
