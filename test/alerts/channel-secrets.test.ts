import { expect, test } from 'vitest';
import { AlertRule, GetAlertsResponse, TestAlertResponse } from '../../contracts/api/alerts.js';
import { receiverOf } from '../../deliveries/attempts.js';
import { serveApi } from '../api/served-api.js';
import { tcpServer } from '../runtime/loopback-server.js';
import type { Answer } from '../setup/platform/api-client.js';
import { receiver, status } from '../setup/receiver.js';
import { gate, until } from '../setup/until.js';
import { deliveriesOf, failureOf, webhook } from './alert-fixture.js';

const api = await serveApi();
const { client } = api;

const condition = { event: 'agent.registered' };
const newRule = (notifications: object[], name = 'rule') =>
  client.ok('/policies/new_alert', { name, condition, notifications }, AlertRule);

test('a channel whose secrets cannot be read is shown as such, fails its test, and takes new ones', async () => {
  const to = await receiver();
  const rule = await newRule([webhook(to.url, { secret: 'lost' }), webhook(`${to.url}/whole`, { secret: 'kept' })]);
  const { rule_id } = rule;
  await api.database.query("UPDATE alert_channels SET secrets = '\\x00' WHERE rule_id = $1 AND place = 0", [rule_id]);
  const read = () => client.ok('/policies/get_alert_by_id', { rule_id }, AlertRule);
  const shown = (await read()).notifications.map(({ unreadable, secrets_set }) => [unreadable, secrets_set]);
  expect(shown).toEqual([
    [true, []],
    [undefined, ['secret']],
  ]);
  const { rules } = await client.ok('/policies/get_alerts', {}, GetAlertsResponse);
  expect(rules.map((one) => one.rule_id)).toContain(rule_id);
  const { results } = await client.ok('/policies/test_alert', { rule_id }, TestAlertResponse);
  expect(results).toMatchObject([{ ok: false, message: expect.stringContaining('set them anew') }, { ok: true }]);
  expect((await client.ok('/policies/update_alert', { rule_id, name: 'renamed' }, AlertRule)).name).toBe('renamed');

  // Sent back as it was read it would lose its secret without a word.
  const back = { rule_id, notifications: (await read()).notifications };
  const refused = await client.post('/policies/update_alert', back);
  expect([refused.status, refused.body]).toMatchObject([400, { error: expect.stringContaining('secret and headers') }]);
  const [lost, whole] = back.notifications;
  const anew = { ...lost, config: { ...lost?.config, secret: 'new', headers: null } };
  const mended = await client.ok('/policies/update_alert', { rule_id, notifications: [anew, whole] }, AlertRule);
  expect(mended.notifications.map(({ unreadable, secrets_set }) => [unreadable, secrets_set])).toEqual([
    [undefined, ['secret']],
    [undefined, ['secret']],
  ]);
  expect(mended.notifications[0]?.channel_id).toBe(lost?.channel_id);
});

test('a test notification says that it is one', async () => {
  const to = await receiver();
  const slack = { type: 'slack', config: { webhook_url: `${to.url}/slack` } };
  const { rule_id } = await newRule([webhook(to.url), slack], 'Agents in trouble');
  await client.ok('/policies/test_alert', { rule_id }, TestAlertResponse);
  const [alert] = to.arrived.filter(({ body }) => body.delivery_id !== undefined);
  const event_type = 'system.alert_triggered';
  expect(alert?.body).toMatchObject({ test: true, rule_name: 'Agents in trouble', event_type });
  const [message] = to.arrived.filter(({ body }) => body.blocks !== undefined);
  expect(message?.body.text).toMatch(/^\[test\] Agents in trouble/);
});

test('test_alert sends to every channel and says what came of it; nothing is logged', async () => {
  const to = await receiver();
  const broken = await receiver(status(500));
  const closed = await tcpServer((socket) => socket.destroy());
  const email = { type: 'email', config: { recipients: ['ops@example.com'] }, enabled: false };
  const channels = [webhook(to.url), webhook(broken.url), webhook(`${closed.url}/x`), email];
  const { rule_id } = await newRule(channels);
  const { results } = await client.ok('/policies/test_alert', { rule_id }, TestAlertResponse);
  expect(results.map(({ type, ok }) => `${type} ${ok}`)).toEqual([
    'webhook true',
    'webhook false',
    'webhook false',
    'email false',
  ]);
  expect(results.map(({ message }) => message).join()).toMatch(/answered 500.*SMTP_URL/s);
  expect(to.arrived[0]?.body).toMatchObject({ type: 'alert', rule_name: 'rule' });
  expect(await deliveriesOf(client, rule_id)).toEqual([]);
});

test('a channel whose receiver does not answer says since when, and no other of its host', async () => {
  const x = 'https://a.example.com/x';
  const { rule_id, tenant_id } = await newRule([webhook(x), webhook('https://a.example.com/y')]);
  const get = () => client.ok('/policies/get_alert_by_id', { rule_id }, AlertRule);
  const [channel] = (await get()).notifications;
  await api.database.query(
    `INSERT INTO receiver_breakers (tenant_id, receiver, failures, open_until, opened_at)
     VALUES ($1, $2, 5, now() + interval '1 minute', now())`,
    [tenant_id, receiverOf(x, channel?.channel_id)],
  );
  const { notifications } = await get();
  expect(notifications[0]?.receiver).toMatchObject({ state: 'unavailable', since: expect.any(String) });
  expect(notifications[1]).not.toHaveProperty('receiver');
  const { rules } = await client.ok('/policies/get_alerts', {}, GetAlertsResponse);
  expect(rules[0]?.notifications[0]?.receiver).toEqual(notifications[0]?.receiver);
  const back = await client.post('/policies/update_alert', { rule_id, notifications });
  expect(back.status).toBe(200);
});

test('a tenant has two test notifications under way, two that wait, and gets 429 beyond', async () => {
  const released = gate();
  const to = await receiver((response) => void released.promise.then(() => status(200)(response)));
  const { rule_id } = await newRule([webhook(to.url)]);
  const refused: Answer[] = [];
  const calls = Array.from({ length: 6 }, async () => {
    const answer = await client.post('/policies/test_alert', { rule_id });
    if (answer.status !== 200) refused.push(answer);
    return answer.status;
  });
  await until(() => refused.length === 2, { what: 'the two calls beyond' });
  expect(refused.map(failureOf)).toEqual(['429 RATE_LIMITED', '429 RATE_LIMITED']);
  expect(refused[0]?.headers.get('retry-after')).toBe('10');
  await to.untilArrived(2);
  released.open();
  expect((await Promise.all(calls)).sort()).toEqual([200, 200, 200, 200, 429, 429]);
});

test('a tenant makes thirty test calls a minute', async () => {
  const other = await api.otherTenant();
  const admin = await api.clientOf(other, ['admin']);
  const statuses: number[] = [];
  for (let call = 0; call < 31; call += 1)
    statuses.push((await admin.post('/policies/test_alert', { rule_id: 'rule_none' })).status);
  expect(statuses).toEqual([...Array(30).fill(404), 429]);
});
