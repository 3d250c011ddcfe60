import { expect, test } from 'vitest';
import { GetApprovalsResponse } from '../../../contracts/api/policies/approvals.js';
import { RequestsGetResponse } from '../../../contracts/api/policies/requests.js';
import { answerMessage } from '../../api/moving.js';
import { serveApi } from '../../api/served-api.js';
import { approvalsFixture } from '../../messages/approvals/approvals-fixture.js';
import { until } from '../../setup/until.js';
import { consoleBrowser, PHONE, violations } from './browser.js';

const api = await serveApi({ sequencer: true, clocks: { credentialCheckMs: 200 }, tenantMaxInFlight: 1_000 });
const { calling, sent, person, outcome } = await approvalsFixture(api);
await api.database.query('UPDATE agents SET max_concurrent_sessions = 0'); // it takes all that the tests send
const { signedIn, answer, onEachScreen } = await consoleBrowser(api);

/** All open requests of the tools of one test. */
const openOf = async (tool: string) =>
  (await api.client.ok('/requests/get', { tool, page_size: 100 }, RequestsGetResponse)).requests;
const decisionsOf = async (message_id: string) =>
  (await api.client.ok('/messages/get_approvals', { message_id }, GetApprovalsResponse)).approvals;

/** A message of which an agent asks something by a form. */
async function formed(): Promise<string> {
  const id = await sent('Order the lunch');
  const properties = {
    n: { type: 'integer', title: 'How many people' },
    diet: { title: 'Diet', enum: ['any', 'vegan'] },
  };
  const schema = { type: 'object', properties, required: ['n'] };
  const input_request = { kind: 'form' as const, title: 'What shall I order?', schema };
  await answerMessage(api, id, { state: 'input-required', artifacts: [], input_request });
  return id;
}

test('a link signs in, a request is approved, and its outcome and receipt are shown', async () => {
  const { id } = await calling({ amount: 7, to: 'ada' }, {}, 'pay-once');
  const { page, client_id, problems, link } = await signedIn(['admin']);
  expect(page.url()).not.toContain(link);
  await page.goto(`${api.baseUrl}/console/inbox?tool=pay-once`);
  await page.getByRole('heading', { name: 'May pay-once be called?' }).waitFor();
  await page.getByLabel('Comment').fill('checked');
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.getByRole('button', { name: 'Undo' }).click();
  expect(await decisionsOf(id)).toEqual([]);
  await page.getByRole('button', { name: 'Approve' }).click();
  await until(async () => (await decisionsOf(id)).length > 0);
  expect(await decisionsOf(id)).toMatchObject([
    { resolution: 'approved', comment: 'checked', principal: { type: 'credential', id: client_id } },
  ]);
  await page.getByRole('heading', { name: 'It was approved' }).waitFor();
  await page.getByText('under way').first().waitFor();
  const [saved] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Save the signed receipt' }).click(),
  ]);
  expect(saved.suggestedFilename()).toMatch(/^receipt-req_.*\.jwt$/);
  expect(problems).toEqual([]);
});

test('an address with what no view reads shows its list, and is put right', async () => {
  await calling({ amount: 7, to: 'ada' }, {}, 'pay-address');
  const { page, problems } = await signedIn(['admin']);
  await page.goto(`${api.baseUrl}/console/inbox?tool=pay-address&kind=none&later=1`);
  await page.getByRole('heading', { name: 'May pay-address be called?' }).waitFor();
  expect(page.url()).not.toMatch(/kind|later/);
  expect(problems).toEqual([]);
});

test('edited arguments are shown as what they change, and are what is approved', async () => {
  const { id } = await calling({ amount: 700, to: 'ada' }, {}, 'pay-edited');
  const { page } = await signedIn(['admin']);
  await page.goto(`${api.baseUrl}/console/inbox?tool=pay-edited`);
  await page.getByRole('heading', { name: 'May pay-edited be called?' }).waitFor();
  await page.keyboard.press('e');
  await page.getByLabel('Arguments that you approve instead').fill('{"amount": 5, "to": "ada"}');
  expect(await page.locator('.changes').textContent()).toMatch(/amount\s*700\s+5/);
  await page.keyboard.press('Control+Enter');
  await until(async () => (await decisionsOf(id)).length > 0);
  expect(await decisionsOf(id)).toMatchObject([{ arguments: { amount: 5 }, arguments_changed: true }]);
});

test('a hundred requests are decided by keyboard alone, half each way', async () => {
  for (let count = 0; count < 100; count += 1) await calling({ count }, {}, 'pay-many');
  const { page } = await signedIn(['admin']);
  await page.goto(`${api.baseUrl}/console/inbox?tool=pay-many`);
  await page.waitForURL('**request=req_*');
  for (let count = 0; count < 100; count += 1) {
    const url = page.url();
    await page.locator('.detail', { hasText: new RegExp(`"count": ${count}\\b`) }).waitFor();
    await page.locator('form.answer').waitFor();
    await page.keyboard.press(count % 2 === 0 ? 'a' : 'r');
    if (count < 99) await page.waitForURL((next) => next.href !== url);
  }
  await until(async () => (await openOf('pay-many')).length === 0);
  const decided = { tool: 'pay-many', state: 'decided', page_size: 100 };
  const { requests } = await api.client.ok('/requests/get', decided, RequestsGetResponse);
  const approved = requests.filter((request) => request.decided?.resolution === 'approved');
  expect([requests.length, approved.length]).toEqual([100, 50]);
}, 180_000);

test('what is selected is decided together, after one confirmation', async () => {
  for (let count = 0; count < 3; count += 1) await calling({ count }, {}, 'pay-bulk');
  const { page } = await signedIn(['admin']);
  await page.goto(`${api.baseUrl}/console/inbox?tool=pay-bulk`);
  await page.locator('.row').nth(2).waitFor();
  for (const key of ['x', 'j', 'x', 'j', 'x']) await page.keyboard.press(key);
  await page.keyboard.press('Shift+A');
  await page.getByRole('dialog').getByLabel('Comment for all').fill('one batch');
  await page.getByRole('button', { name: 'Approve 3 requests' }).click();
  expect(await until(async () => (await openOf('pay-bulk')).length === 0)).toBe(true);
});

test('a form is filled in on a phone, by thumb', async () => {
  const id = await formed();
  const { page } = await signedIn(['admin'], { viewport: PHONE, hasTouch: true });
  await page.goto(`${api.baseUrl}/console/inbox?kind=form`);
  await page.locator('.row a').first().tap();
  await page.getByRole('button', { name: 'Submit' }).tap();
  expect(await page.locator('input[name=n]:invalid').count()).toBe(1);
  await page.getByLabel('How many people').fill('4');
  await page.getByLabel('Diet').selectOption('vegan');
  expect((await page.getByRole('button', { name: 'Submit' }).boundingBox())?.height).toBeGreaterThanOrEqual(44);
  await page.getByRole('button', { name: 'Submit' }).tap();
  await until(async () => (await decisionsOf(id)).length > 0);
  const data = "SELECT resolution -> 'data' FROM running_messages WHERE message_id = $1";
  expect(await api.database.value(data, [id])).toEqual({ n: 4, diet: 'vegan' });
});

test('a new request appears by itself; who loses a race is told the winner and keeps the comment', async () => {
  const { page } = await signedIn(['admin']);
  await page.goto(`${api.baseUrl}/console/inbox?tool=pay-race`);
  await page.getByRole('heading', { name: 'Nothing matches' }).waitFor();
  const { id } = await calling({ amount: 1 }, {}, 'pay-race');
  await page.getByRole('heading', { name: 'May pay-race be called?' }).waitFor();
  await page.getByLabel('Comment').fill('mine');
  await page.getByRole('button', { name: 'Approve' }).click();
  const winner = await person('admin');
  expect(await outcome(winner.client, id, { resolution: 'rejected' })).toMatch(/^200/);
  const shown = page.getByRole('alert');
  await shown.waitFor();
  expect(await shown.textContent()).toContain(`It is already rejected, by test.`);
  expect(await shown.textContent()).toContain('“mine”');
});

test('a session that ends leaves the page and what was typed, and another sign-in goes on', async () => {
  await calling({ amount: 1 }, {}, 'pay-later');
  const { page, client_id, client_secret } = await signedIn(['admin']);
  await page.goto(`${api.baseUrl}/console/inbox?tool=pay-later`);
  await page.getByLabel('Comment').fill('half a thought');
  await api.database.query('DELETE FROM console_sessions WHERE credential_id = $1', [client_id]);
  await page.getByRole('heading', { name: 'Your session has ended' }).waitFor();
  await page.getByLabel('Client id').fill(client_id);
  await page.getByLabel('Client secret').fill(client_secret);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  expect(await page.getByLabel('Comment').inputValue()).toBe('half a thought');
  expect(page.url()).toContain('tool=pay-later');
});

test('somebody without the right to decide reads, and sees no button that would be refused', async () => {
  const { id } = await calling({ amount: 1 }, {}, 'pay-read');
  const { page, problems } = await signedIn(['read']);
  await page.goto(`${api.baseUrl}/console/inbox?box=open&tool=pay-read`);
  await page.getByText('You cannot answer this request').waitFor();
  expect(await page.getByRole('button', { name: /Approve|Reject|Edit/ }).count()).toBe(0);
  expect(await page.locator('.row input').first().isDisabled()).toBe(true);
  await page.goto(`${api.baseUrl}/console/messages/${id}`);
  await page.getByText('Accepted').first().waitFor();
  expect(await page.getByRole('button', { name: 'Send again' }).count()).toBe(0);
  expect(problems).toEqual([]);
});

test('a message is followed while it runs, canceled, and sent again', async () => {
  const id = await sent('Summarise the incident');
  const { page } = await signedIn(['admin']);
  await page.goto(`${api.baseUrl}/console/messages/${id}`);
  await page.getByText('Accepted').first().waitFor();
  await answer(id, 'All is well again.');
  await page.getByText('All is well again.').waitFor();
  await page.locator('.waterfall').getByText('Completed', { exact: true }).waitFor();
  const other = await sent('Stop me');
  await page.keyboard.press('Control+k');
  await page.keyboard.type(other);
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Cancel', exact: true }).click();
  await page.getByRole('button', { name: 'Cancel the message' }).click();
  await page.locator('.timeline').getByText('Canceled', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Send again' }).click();
  const sure = page.getByRole('dialog').getByRole('button', { name: 'Send again' });
  const again = page.waitForURL(
    (url) => url.pathname.startsWith('/console/messages/') && !url.pathname.endsWith(other),
  );
  await Promise.race([again, sure.waitFor().then(() => sure.click())]);
  await again;
  expect(page.url()).not.toContain(other);
});

test('no screen has a violation of WCAG 2.2 AA in either theme, and none is wider than a phone', async () => {
  const asking = await formed();
  const { id: decided } = await calling({ amount: 1 }, {}, 'pay-axe');
  await outcome((await person('admin')).client, decided, { resolution: 'approved' });
  await onEachScreen(async (page, check) => {
    const { request_id } = (await openOf('pay-read'))[0] ?? {};
    await check(`inbox?request=${request_id}`, 'May pay-read be called?');
    await check('inbox?box=decided&tool=pay-axe', 'May pay-axe be called?');
    await check(`messages/${asking}`, 'A person is asked');
    await check('messages/msg_none', 'This is not here');
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox').waitFor();
    expect(await violations(page)).toEqual([]);
    await page.context().clearCookies();
    await check('', 'Client secret');
  });
}, 180_000);
