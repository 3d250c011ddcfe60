import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { deliveryWorkflowId } from '../../../contracts/workflows.js';
import { type DeliveryIds, inputOf } from '../../../deliveries/delivery-store.js';
import { deliveriesOf, ruleFor, untilDelivered, webhook } from '../../alerts/alert-fixture.js';
import { ApiClient } from '../../setup/platform/api-client.js';
import { startPlatform } from '../../setup/platform/platform.js';
import { type Receiver, receiver, status } from '../../setup/receiver.js';
import { newTenant } from '../../setup/tenant.js';
import { until } from '../../setup/until.js';

const KEY = randomBytes(32).toString('base64');
const shared = await startPlatform({ FLEET_SECRET_KEY: KEY });
const { client } = shared.platform;

/** Whether a receiver is at this address: the names of receivers begin with scheme, host and port. */
const isAt = (url: string) => (name: string) => name.startsWith(`${new URL(url).origin} `);

describe('a receiver that fails', () => {
  const breakers = () =>
    shared.database.query<{ receiver: string; is_open: boolean }>(
      'SELECT receiver, open_until IS NOT NULL AS is_open FROM receiver_breakers',
    );
  const isOpen = async (url: string) =>
    (await breakers()).some(({ receiver: one, is_open }) => isAt(url)(one) && is_open);
  /** The slots that deliveries to a receiver have. */
  const slotsOf = (url: string) => {
    const count =
      'SELECT count(*)::integer FROM delivery_queue WHERE started_at IS NOT NULL AND starts_with(receiver, $1)';
    return shared.database.value<number>(count, [new URL(url).origin]);
  };

  test('takes no slot from others: a dead one beside a good one of another tenant and of the same', async () => {
    const dead = await receiver(() => undefined);
    const good = await receiver();
    const slow = await ruleFor(client, [webhook(dead.url)]);
    const beside = await ruleFor(client, [webhook(good.url)]);
    const another = await newTenant(shared.database.db(), KEY);
    const other = await ruleFor(new ApiClient(shared.platform, await another.issue()), [webhook(good.url)]);
    for (let count = 0; count < 60; count += 1) await slow.happen();
    await dead.untilArrived(1);
    for (let count = 1; count <= 5; count += 1) {
      await Promise.all([beside.happen(), other.happen()]);
      await good.untilArrived(2 * count);
    }
    expect(await slotsOf(dead.url)).toBeLessThanOrEqual(8);
    // Each of the ten overtook those: they came first, and none of them has been sent.
    const unsent = (await deliveriesOf(client, slow.rule.rule_id)).filter(({ attempts }) => attempts.length === 0);
    expect(unsent.length).toBeGreaterThan(30);
    expect(dead.arrived.length).toBeLessThan(30);
    const sent = await untilDelivered(client, beside.rule.rule_id, 5);
    expect(sent.map(({ status: end, attempts }) => [end, attempts.length])).toEqual(Array(5).fill(['delivered', 1]));
    await client.post('/policies/delete_alert', { rule_id: slow.rule.rule_id });
  });

  test('gets only probes once its breaker is open, and everything when it answers again', async () => {
    let isUp = false;
    const to = await receiver((response) => status(isUp ? 200 : 503)(response));
    const { rule, happen } = await ruleFor(client, [webhook(to.url)]);
    for (let count = 0; count < 20; count += 1) await happen();
    await until(() => isOpen(to.url), { what: 'an open breaker' });
    await until(async () => (await slotsOf(to.url)) === 0, { what: 'free slots' });
    const before = to.arrived.length;
    expect(before).toBeLessThan(20);
    await until(() => to.arrived.length > before, { what: 'a probe' });
    expect(to.arrived.length).toBe(before + 1);
    isUp = true;
    const all = await untilDelivered(client, rule.rule_id, 20, 90_000);
    // Those whose third attempt failed before are over.
    const tried = all.filter(({ status: end }) => end === 'failed');
    for (const { attempts } of tried) expect(attempts).toHaveLength(3);
    expect(all.length - tried.length).toBeGreaterThanOrEqual(12);
    expect((await breakers()).map((one) => one.receiver).filter(isAt(to.url))).toEqual([]);
    expect(shared.platform.log()).toContain('a receiver does not answer: only probes are sent to it');
  });

  test('a delivery has one workflow, which nobody signals, and an operator can cancel it', async () => {
    const to = await receiver(status(500));
    const { rule, happen } = await ruleFor(client, [webhook(to.url)]);
    await happen();
    await to.untilArrived(1);
    const ofRule = 'SELECT * FROM deliveries WHERE rule_id = $1';
    const [row] = await shared.database.query<Record<string, string>>(ofRule, [rule.rule_id]);
    const id = deliveryWorkflowId(inputOf(row as unknown as DeliveryIds), 1);
    const handle = shared.temporal.workflow.getHandle(id);
    const { events } = await handle.fetchHistory();
    const signals = events?.filter(({ workflowExecutionSignaledEventAttributes: signaled }) => signaled);
    expect(signals).toEqual([]);
    await handle.cancel();
    const [delivery] = await untilDelivered(client, rule.rule_id);
    expect(delivery?.status).toBe('dropped');
  });
});

test('two nodes deliver each event once, and count it once', async () => {
  const peer = await shared.startPeer();
  const each = await receiver();
  const counted = await receiver();
  const { rule, happen } = await ruleFor(client, [webhook(each.url)]);
  const condition = { event: 'agent.registered', filters: { agent_type: rule.name } };
  const counting = {
    name: 'ten',
    condition,
    notifications: [webhook(counted.url)],
    threshold: 10,
    window_seconds: 600,
  };
  expect((await client.post('/policies/new_alert', counting)).status).toBe(200);
  for (let count = 0; count < 15; count += 1) await happen();
  await peer.kill9();
  for (let count = 0; count < 15; count += 1) await happen();
  // What the dead node was on is sent again, under the same id.
  const idsOf = ({ arrived }: Receiver) => new Set(arrived.map(({ body }) => body.delivery_id));
  const late = { timeoutMs: 120_000, what: 'every delivery' };
  await until(() => idsOf(each).size === 30 && idsOf(counted).size === 3, late);
  const deliveries = await untilDelivered(client, rule.rule_id, 30, 60_000);
  expect(deliveries).toHaveLength(30);
  const agents = each.arrived.map(({ body }) => (body.event as { instance_id: string }).instance_id);
  expect(new Set(agents).size).toBe(30);
  const counts = counted.arrived.map(({ body }) => [body.delivery_id, (body.event as { count: number }).count]);
  expect([...new Map(counts as [string, number][]).values()]).toEqual([10, 10, 10]);
});
