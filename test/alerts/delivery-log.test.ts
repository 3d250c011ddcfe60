import { expect, test } from 'vitest';
import { AlertRule } from '../../contracts/api/alerts.js';
import { type GetDeliveriesRequest, GetDeliveriesResponse } from '../../contracts/api/deliveries.js';
import { sharedPlatform } from '../setup/platform/shared-platform.js';
import { receiver, status } from '../setup/receiver.js';
import { until } from '../setup/until.js';
import { deliveriesOf, ruleFor, untilDelivered, webhook } from './alert-fixture.js';

const shared = await sharedPlatform();
const { client } = shared.platform;

test.each<[what: string, change: (rule: AlertRule, enabled: boolean) => object]>([
  ['rule', (_rule, enabled) => ({ enabled })],
  ['channel', ({ notifications: [one] }, enabled) => ({ notifications: [{ ...one, enabled }] })],
])('a %s that is switched off drops what was to be tried again, and sends nothing until it is on', async (...given) => {
  const [, change] = given;
  const to = await receiver((response, attempt) => status(attempt === 1 ? 500 : 200)(response));
  const { rule, happen } = await ruleFor(client, [webhook(to.url)]);
  const { rule_id } = rule;
  const turn = (enabled: boolean) =>
    client.ok('/policies/update_alert', { rule_id, ...change(rule, enabled) }, AlertRule);
  await happen();
  await to.untilArrived(1);
  const waiting = await until(async () =>
    (await deliveriesOf(client, rule.rule_id)).find((one) => one.next_attempt_at),
  );
  const pauseMs = Date.parse(waiting.next_attempt_at ?? '') - Date.parse(waiting.attempts[0]?.at ?? '');
  expect(pauseMs).toBe(1_000);
  await turn(false);
  const [dropped] = await untilDelivered(client, rule.rule_id);
  expect(dropped).toMatchObject({ status: 'dropped', attempts: [{ status_code: 500 }] });
  // Another rule on the same events shows that the relay has passed those of the silent time.
  const witness = await receiver();
  const watching = { name: 'witness', condition: rule.condition, notifications: [webhook(witness.url)] };
  await client.ok('/policies/new_alert', watching, AlertRule);
  await happen();
  await witness.untilArrived(1);
  await turn(true);
  const last = await happen();
  const deliveries = await untilDelivered(client, rule.rule_id, 2);
  expect(deliveries.map((delivery) => delivery.status)).toEqual(['delivered', 'dropped']);
  expect(to.arrived.map(({ body }) => (body.event as { instance_id: string }).instance_id).slice(1)).toEqual([last]);
});

test('the log is narrowed by rule, type and success, and is a list of pages', async () => {
  const good = await ruleFor(client, [webhook((await receiver()).url)]);
  const bad = await ruleFor(client, [webhook((await receiver(status(400))).url)], { event: 'agent.*' });
  for (const { happen } of [good, good, bad]) await happen();
  await untilDelivered(client, good.rule.rule_id, 2);
  await untilDelivered(client, bad.rule.rule_id);
  const list = async (filter: Partial<GetDeliveriesRequest>) =>
    client.ok('/webhooks/get_deliveries', { page_size: 100, ...filter }, GetDeliveriesResponse);
  const idsOf = async (filter: Partial<GetDeliveriesRequest>) =>
    (await list(filter)).deliveries.map(({ delivery_id }) => delivery_id);
  const of = async ({ rule }: typeof good) =>
    (await deliveriesOf(client, rule.rule_id)).map(({ delivery_id }) => delivery_id);
  const { rule_id } = good.rule;
  expect(await idsOf({ rule_id })).toEqual(await of(good));
  expect(await idsOf({ rule_id, success: false })).toEqual([]);
  expect(await idsOf({ rule_id, success: true })).toEqual(await of(good));
  expect(await idsOf({ success: true, event_type: 'agent.registered' })).toEqual(
    expect.arrayContaining(await of(good)),
  );
  expect(await idsOf({ success: false })).toEqual(expect.arrayContaining(await of(bad)));
  expect(await idsOf({ success: true })).toEqual(expect.not.arrayContaining(await of(bad)));
  expect(await idsOf({ event_type: 'agent.health_changed' })).toEqual([]);
  const [newest] = await of(good);
  expect(await idsOf({ delivery_id: String(newest) })).toEqual([newest]);
  const page = await list({ rule_id, page: 2, page_size: 1 });
  expect(page).toMatchObject({ count: 2, page: 2, page_size: 1, total_pages: 2 });
  expect(page.deliveries.map(({ delivery_id }) => delivery_id)).toEqual((await of(good)).slice(1));
});
