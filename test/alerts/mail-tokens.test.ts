import { expect, test } from 'vitest';
import { AlertRule } from '../../contracts/api/alerts.js';
import { serveApi } from '../api/served-api.js';
import { mailServer, refusing, textOf } from '../deliveries/mail-server.js';
import { approvalsFixture } from '../messages/approvals/approvals-fixture.js';
import { until } from '../setup/until.js';
import { deliveriesOf } from './alert-fixture.js';
import { recordDeliveries } from './record-deliveries.js';

const gone = new Set<string>();
const server = await mailServer({
  onRcptTo: ({ address }, _session, callback) => callback(gone.has(address) ? refusing(550) : undefined),
});
const api = await serveApi({ sequencer: true });
const { held, outcome } = await approvalsFixture(api);
const smtpUrl = `smtp://127.0.0.1:${server.port}`;
const { person, ruleBy, sendQueued, announced, redeliver } = recordDeliveries(api, { smtpUrl });
const APPROVED = { resolution: 'approved' };

const email = (...recipients: string[]) => ({ type: 'email', config: { recipients } });
/** The links in the mails to somebody, in their order. */
const linksTo = (address: string) =>
  server.mails
    .filter(({ to }) => to.includes(address))
    .map((mail) => textOf(mail).match(/http:\/\/\S+\/approve\/\S+/)?.[0] ?? '');
async function decide(link: string | undefined, resolution = 'approved'): Promise<number> {
  return (await fetch(link ?? '', { method: 'POST', body: new URLSearchParams({ resolution }) })).status;
}
const stateOf = async (id: string) => (await api.client.message(id)).state;

test('each recipient gets a mail with a link of their own, by which a quorum decides', async () => {
  const rule = await ruleBy(await person('full'), [email('ann@example.com', 'bob@example.com')]);
  const id = await held({ quorum: 2 });
  const mailed = (await announced(rule, 2)).map(({ url }) => url);
  expect(mailed.sort()).toEqual(['mailto:ann@example.com', 'mailto:bob@example.com']);
  await sendQueued();
  expect(server.mails.map(({ to }) => to).sort()).toEqual([['ann@example.com'], ['bob@example.com']]);
  const [[ann], [bob]] = [linksTo('ann@example.com'), linksTo('bob@example.com')];
  expect(await decide(ann)).toBe(200);
  expect(await decide(ann)).toBe(409);
  expect(await stateOf(id)).toBe('input-required');
  expect(await decide(bob)).toBe(200);
  expect(await stateOf(id)).toBe('working');
});

test('where a credential without full scope wrote the rule, its recipients and its writers are one', async () => {
  const [writer, other] = [await person('admin'), await person('admin')];
  const rule = await ruleBy(writer, [email('cleo@example.com', 'dan@example.com')]);
  const id = await held({ quorum: 2 });
  await announced(rule, 2);
  await sendQueued();
  expect(await decide(linksTo('cleo@example.com')[0])).toBe(200);
  expect(await decide(linksTo('dan@example.com')[0])).toBe(409);
  expect(await outcome(writer.client, id, APPROVED)).toBe('409 ALREADY_RESOLVED');
  expect(await outcome(other.client, id, APPROVED)).toBe('200 working');
});

test('a recipient of two rules counts once', async () => {
  const writer = await person('full');
  const rules = [await ruleBy(writer, [email('eve@example.com')]), await ruleBy(writer, [email('EVE@example.com')])];
  const id = await held({ quorum: 2 });
  for (const rule of rules) await announced(rule);
  await sendQueued();
  expect(await decide(linksTo('eve@example.com')[0])).toBe(200);
  expect(await decide(linksTo('EVE@example.com')[0])).toBe(409);
  expect(await outcome((await person('admin')).client, id, APPROVED)).toBe('200 working');
});

test('a mail of a recipient who is removed goes to one who came instead, with a new link; else to nobody', async () => {
  const writer = await person('full');
  const rule = await ruleBy(writer, [email('finn@example.com', 'gus@example.com', 'hal@example.com')]);
  const id = await held();
  await announced(rule, 3);
  await sendQueued();
  const [link] = linksTo('finn@example.com');
  const [channel] = rule.notifications;
  const notifications = [{ ...email('hal@example.com', 'ida@example.com'), channel_id: channel?.channel_id }];
  await writer.client.ok('/policies/update_alert', { rule_id: rule.rule_id, notifications }, AlertRule);
  const of = async (address: string) =>
    (await deliveriesOf(api.client, rule.rule_id)).find(({ url }) => url === `mailto:${address}`);
  const removed = [await of('finn@example.com'), await of('gus@example.com')];
  await redeliver(writer, removed[0]);
  await sendQueued();
  expect(await of('ida@example.com')).toMatchObject({ delivery_id: removed[0]?.delivery_id, status: 'delivered' });
  const again = { delivery_id: removed[1]?.delivery_id };
  expect(await writer.client.failure('/webhooks/redeliver', again)).toBe('409 CONFLICT');
  expect(linksTo('hal@example.com')).toHaveLength(1);
  expect(await decide(link)).toBe(401);
  expect(await decide(linksTo('ida@example.com')[0])).toBe(200);
  expect(await stateOf(id)).toBe('working');
});

test('a rule that matches several events of a request mails each recipient once, and of any other event for each channel', async () => {
  const channels = [email('jo@example.com', 'jo@example.com'), email('JO@example.com', 'kim@example.com')];
  const all = await ruleBy(await person('full'), channels, '*');
  const id = await held();
  await api.client.post('/messages/cancel', { message_id: id });
  const of = async (type: RegExp) =>
    (await deliveriesOf(api.client, all.rule_id))
      .filter(({ event_type }) => type.test(event_type))
      .map(({ event_type, url }) => `${event_type} ${url}`)
      .sort();
  // Events are relayed in their order.
  const canceled = await until(async () => {
    const found = await of(/^message\.canceled$/);
    return found.length > 0 && found;
  });
  expect(canceled).toEqual(['JO', 'jo', 'kim'].map((name) => `message.canceled mailto:${name}@example.com`));
  const asked = ['jo', 'kim'].map((name) => `message.input_required mailto:${name}@example.com`);
  expect(await of(/_required$/)).toEqual(asked);
});

test('a recipient whom the server refuses has nobody else get the mail again', async () => {
  gone.add('lea@example.com');
  const rule = await ruleBy(await person('full'), [email('lea@example.com', 'max@example.com')]);
  await held();
  await announced(rule, 2);
  await sendQueued();
  const ends = (await deliveriesOf(api.client, rule.rule_id)).map(({ url, status }) => `${url} ${status}`);
  expect(ends.sort()).toEqual(['mailto:lea@example.com failed', 'mailto:max@example.com delivered']);
  expect(linksTo('max@example.com')).toHaveLength(1);
});
