import { expect, test } from 'vitest';
import { countOutcome } from '../../../agents/agent-health.js';
import { MessageGetByIdResponse } from '../../../contracts/api/messages.js';
import { newId } from '../../../runtime/ids.js';
import { answerMessage, COMPLETED, joinOnRecord } from '../../api/moving.js';
import { serveApi } from '../../api/served-api.js';
import { insertAgent } from '../../setup/core.js';
import { until } from '../../setup/until.js';
import { consoleBrowser } from './browser.js';

const api = await serveApi({ sequencer: true, tenantMaxInFlight: 1_000 });
await joinOnRecord(api, 'worker-1');
const away = { instance_id: 'away-1', agent_type: 'away', status: 'offline' };
await insertAgent(api.database, { tenant_id: api.tenantId, ...away });
await api.database.query('UPDATE agents SET max_concurrent_sessions = 0');
const { signedIn, answer, onEachScreen } = await consoleBrowser(api);

const send = async (text: string, agent_type = 'worker') =>
  (await api.client.send(text, { metadata: { agent_type, queue_wait_ms: 86_400_000 }, blocking: false })).id;
const fail = async (text: string, code: string) => {
  const id = await send(text);
  await answerMessage(api, id, { state: 'failed', artifacts: [], error: { code, message: 'no luck' } });
  return id;
};
/** Waits for an agent that is away, and has for an hour. */
const stick = async (text: string) => {
  const id = await send(text, 'away');
  const queued = 'SELECT 1 FROM running_messages WHERE queue IS NOT NULL AND message_id = $1';
  await until(async () => (await api.database.query(queued, [id])).length > 0);
  const since = "UPDATE running_messages SET unrouted_since = now() - interval '1 h' WHERE message_id = $1";
  await api.database.query(since, [id]);
  return id;
};
const stateOf = async (message_id: string) =>
  (await api.client.ok('/messages/get_by_id', { message_id }, MessageGetByIdResponse)).message.state;

test('messages are found, seen beside the list as they go on, and what is stuck or failed is dealt with together', async () => {
  for (let nth = 0; nth < 60; nth += 1) await answerMessage(api, await send(`Order ${1_000 + nth}`), COMPLETED);
  const failed = [await fail('Refund 1', 'LEDGER_AWAY'), await fail('Refund 2', 'LEDGER_AWAY')];
  await fail('Refund 3', 'NO_CARD');
  const stuck = [await stick('Archive 1'), await stick('Archive 2')];
  const { page, problems } = await signedIn(['admin']);
  const row = (text: string) => page.locator('.message-row').filter({ hasText: text });

  // Words, and the address that shows somebody else the same.
  await page.goto(`${api.baseUrl}/console/messages`);
  await row('Archive 2').waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('order 1007');
  await page.keyboard.press('Enter');
  await page.waitForURL('**text=order*');
  await row('Order 1007').waitFor();
  expect(await page.locator('.message-row').count()).toBe(1);

  // Pages come as one scrolls: the oldest is beyond the first page.
  await page.goto(`${api.baseUrl}/console/messages`);
  await row('Archive 2').waitFor();
  await until(async () => {
    await page.evaluate("document.querySelector('.scroller').scrollTo(0, 1_000_000)");
    return row('Order 1000').isVisible();
  });

  // Beside the list, live.
  const running = await send('Summarise the week');
  await page.goto(`${api.baseUrl}/console/messages`);
  await row('Summarise the week').locator('a').click();
  await page.getByText('Accepted').first().waitFor();
  await answer(running, 'All went well.');
  await page.locator('.peek').getByText('All went well.').waitFor();
  await row('Summarise the week').getByText('completed').waitFor();
  expect(page.url()).toContain(`message=${running}`);

  // Errors by code, one click to all of them, and all sent again.
  await page.goto(`${api.baseUrl}/console/messages?state=failed`);
  await page.locator('.group').filter({ hasText: 'LEDGER_AWAY' }).click();
  await page.waitForURL('**error_code=LEDGER_AWAY*');
  await page.getByRole('button', { name: 'Select the 2 that are loaded' }).click();
  await page.getByRole('button', { name: 'Send 2 again' }).click();
  await page.getByLabel('Also the 2').check();
  await page.getByRole('dialog').getByRole('button', { name: 'Send 2 messages again' }).click();
  const repeats = 'SELECT message_id FROM messages WHERE retry_of = ANY ($1)';
  await until(async () => (await api.database.query(repeats, [failed])).length === 2);

  // What is stuck, by what it waits for, and canceled.
  await page.goto(`${api.baseUrl}/console/messages?view=stuck`);
  const group = page.locator('.group').filter({ hasText: 'No agent online' });
  expect(await group.textContent()).toContain('2');
  await group.click();
  await row('Archive 1').getByText('No agent online').waitFor();
  await page.getByRole('button', { name: 'Select the 2 that are loaded' }).click();
  await page.getByRole('button', { name: 'Cancel 2' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel 2 messages' }).click();
  await page.getByRole('heading', { name: 'Nothing is stuck' }).waitFor();
  expect(await Promise.all(stuck.map(stateOf))).toEqual(['canceled', 'canceled']);
  expect(problems).toEqual([]);
}, 120_000);

test('the overview names what needs somebody, each with its filter, and nothing that would be refused', async () => {
  const { page, problems } = await signedIn(['read']);
  await page.goto(`${api.baseUrl}/console/overview`);
  await page.locator('.chart').nth(2).waitFor();
  await page.getByText('Time to answer').waitFor();
  await stick('Archive 3');
  for (let times = 0; times < 5; times += 1)
    await countOutcome(api.db, { tenant_id: api.tenantId, instance_id: 'worker-1' }, 'LEDGER_AWAY');
  const attempt = { at: new Date().toISOString(), status_code: 503, response_time_ms: 9, success: false };
  await api.database.query(
    `INSERT INTO deliveries (tenant_id, delivery_id, event_type, session_id, rule_id, url, receiver, status, max_attempts, attempts)
     VALUES ($1, $2, 'message.error', '', 'rule_1', 'https://ops.example/hook', 'ops', 'failed', 1, $3)`,
    [api.tenantId, newId('dlv'), JSON.stringify([attempt])],
  );
  await page.reload();
  await page.getByText(/messages? stuck/).waitFor();
  await page.getByText('worker-1 (').waitFor();
  const failing = page.getByRole('link', { name: /agent fails half/ });
  expect(await failing.getAttribute('href')).toContain('type=worker&instance=worker-1');
  expect(await page.getByText('given up within a day').count()).toBe(0);
  await page.getByText(/messages? stuck/).click();
  await page.waitForURL('**/messages?view=stuck&waits=agent*');
  expect(problems).toEqual([]);

  const { page: admin } = await signedIn(['full']);
  await admin.goto(`${api.baseUrl}/console/overview`);
  await admin.getByText('ops.example (503)').click();
  await admin.waitForURL('**/alerts?time=24h*');
  await admin.getByRole('link', { name: /message.error.*503/ }).waitFor();
}, 60_000);

test('neither screen has a violation of WCAG 2.2 AA in either theme, and none is wider than a phone', async () => {
  await stick('Archive 4');
  const failed = await fail('Refund 4', 'NO_CARD');
  await onEachScreen(async (_page, check) => {
    await check('messages', 'Archive 4');
    await check(`messages?state=failed&error_code=NO_CARD&message=${failed}`, 'no luck');
    await check('messages?view=stuck&waits=agent', 'Start an agent of the type');
    await check('messages?text=nobody-wrote-this', 'Nothing matches');
    await check('overview', 'Time to answer');
  });
}, 180_000);
