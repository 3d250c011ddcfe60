import { expect, test } from 'vitest';
import { recordEvents } from '../../db/events.js';
import { claimQueued } from '../../deliveries/queue.js';
import { createQueueDepths } from '../../platform/metrics/queue-depths.js';
import { DEFAULT_CLOCKS } from '../../runtime/clocks.js';
import { positionEvents } from '../../telemetry/event-sequencer.js';
import { insertTenant } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { queueDeliveries } from './queue-fixture.js';

const database = await freshDatabase();
const db = database.db();
const RECEIVER = 'https://receiver.example';
/** Each from a new reader: one keeps its answer for two seconds. */
const depths = () => createQueueDepths(db, DEFAULT_CLOCKS)();

/** Queues deliveries of a tenant to one receiver. */
const queued = (tenantId: string, count: number) => queueDeliveries(db, tenantId, Array(count).fill(RECEIVER));

test('deliveries that wait, and since when, and those under way are gauges', async () => {
  const tenants = [await insertTenant(database), await insertTenant(database)];
  for (const tenantId of tenants) await queued(tenantId, 5);
  await database.query("UPDATE delivery_queue SET queued_at = now() - interval '1 hour' WHERE tenant_id = $1", [
    tenants[0],
  ]);
  const deliveries = async () => {
    const { queues } = await depths();
    const of = (name: string) => queues.find(({ queue }) => queue === name);
    return { waiting: of('deliveries_waiting'), running: of('deliveries_running') };
  };
  expect(await deliveries()).toMatchObject({ waiting: { depth: 10 }, running: { depth: 0, oldest_seconds: 0 } });
  expect((await deliveries()).waiting?.oldest_seconds).toBeGreaterThanOrEqual(3_600);
  const { length: given } = await claimQueued(db);
  expect(given).toBeGreaterThan(0);
  expect(await deliveries()).toMatchObject({ waiting: { depth: 10 - given }, running: { depth: given } });
});

test('a receiver that gets only probes counts while a delivery waits for it', async () => {
  const tenantId = await insertTenant(database);
  await database.query(
    `INSERT INTO receiver_breakers (tenant_id, receiver, failures, open_until) VALUES ($1, $2, 5, now() + interval '1 hour')`,
    [tenantId, RECEIVER],
  );
  expect((await depths()).unavailableReceivers).toBe(0);
  await queued(tenantId, 2);
  expect((await depths()).unavailableReceivers).toBe(1);
});

test('cursors of tenants that the alert relay has left behind count as the reader `alerts`, by the one furthest behind', async () => {
  const tenants = [await insertTenant(database), await insertTenant(database)];
  const payload = { agent_type: 'a', instance_id: 'a-1', tenant_id: '', connect_mode: 'connected' } as const;
  for (const tenant_id of tenants)
    await db.tenant(tenant_id, (tx) => recordEvents(tx, 'agent.registered', [{ tenant_id, payload }]));
  while ((await positionEvents(db, 100)) !== 0) {} // one batch may leave some to the next
  const stand = (consumer: string, position: string) =>
    database.query(
      `INSERT INTO event_cursors (consumer, position) VALUES ($1, ${position}) ON CONFLICT (consumer) DO UPDATE SET position = ${position}`,
      [consumer],
    );
  const readers = async () =>
    Object.fromEntries((await depths()).readers.map(({ reader, unread }) => [reader, unread]));
  await stand('alerts', 'event_head()');
  await stand('usage', 'event_head()');
  expect(await readers()).toEqual({ alerts: 0, usage: 0 });
  await stand(`alerts/${tenants[0]}`, 'event_head()');
  await stand(`alerts/${tenants[1]}`, '0');
  const groups = await database.value<number>('SELECT count(*)::int FROM event_groups');
  expect(groups).toBeGreaterThanOrEqual(2);
  expect(await readers()).toEqual({ alerts: groups, usage: 0 });
  await database.query("DELETE FROM event_cursors WHERE consumer LIKE 'alerts/%'");
  expect(await readers()).toEqual({ alerts: 0, usage: 0 });
});
