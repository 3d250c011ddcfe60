import { beforeEach, expect, test } from 'vitest';
import { claimQueued } from '../../deliveries/queue.js';
import { insertTenant } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { queueDeliveries } from './queue-fixture.js';

const database = await freshDatabase();
const db = database.db();

const receiverOf = (nth: number) => `https://receiver-${nth}.example`;

/** Queues deliveries to so many receivers of a tenant. */
const queue = (tenantId: string, receivers: number, each: number) =>
  queueDeliveries(
    db,
    tenantId,
    Array.from({ length: receivers * each }, (_, nth) => receiverOf(nth % receivers)),
  );

/** Slots by tenant and by receiver, after all that are free were given. */
async function slots() {
  while ((await claimQueued(db)).length > 0) {}
  const rows = await database.query<{ tenant_id: string; receiver: string; slots: number }>(
    `SELECT tenant_id, receiver, count(*)::integer AS slots FROM delivery_queue WHERE started_at IS NOT NULL GROUP BY 1, 2`,
  );
  const ofTenant = (tenantId: string) => rows.filter(({ tenant_id }) => tenant_id === tenantId);
  const sum = (of: typeof rows) => of.reduce((total, row) => total + row.slots, 0);
  return {
    ofTenant: (tenantId: string) => sum(ofTenant(tenantId)),
    ofReceivers: (tenantId: string) => ofTenant(tenantId).map((row) => row.slots),
    all: sum(rows),
  };
}

/** A tenant with one receiver and twenty deliveries: so many of them get slots. */
async function slotsOfNext(): Promise<number> {
  const [tenantId] = (await tenants(1)) as [string];
  await queue(tenantId, 1, 20);
  return (await slots()).ofTenant(tenantId);
}
/** So many tenants with seven receivers each, and twenty deliveries for each of them. */
async function busyTenants(count: number): Promise<string[]> {
  const ids = await tenants(count);
  for (const tenantId of ids) await queue(tenantId, 7, 20);
  return ids;
}

const tenants = (count: number) => Promise.all(Array.from({ length: count }, () => insertTenant(database)));
const emptyQueue = () => database.query('DELETE FROM delivery_queue');
beforeEach(emptyQueue);

/** The deliveries under way have had their slots for longer than a receiver that answers lets them wait. */
const grownSlow = () => database.query("UPDATE delivery_queue SET started_at = started_at - interval '6 seconds'");

test('receivers that hang all at once leave half of the slots to others', async () => {
  await busyTenants(10);
  expect((await slots()).all).toBeGreaterThan(150);
  await database.query('DELETE FROM delivery_queue WHERE started_at IS NULL');
  await grownSlow();
  for (let next = 0; next < 6; next += 1) expect(await slotsOfNext()).toBe(8);
});

test('however long they hang, they never get more than twice the slots, and the next tenant finds some', async () => {
  await busyTenants(10);
  for (let turn = 0; turn < 8; turn += 1) {
    expect((await slots()).all).toBeLessThanOrEqual(400);
    await grownSlow();
  }
  expect(await slotsOfNext()).toBe(8);
});

test('however many tenants take what they can, the next one finds a slot', async () => {
  const busy = await busyTenants(4);
  const before = await slots();
  for (const tenantId of busy) expect(before.ofTenant(tenantId)).toBeLessThanOrEqual(50);
  expect(before.all).toBeLessThan(200);
  const [next] = (await tenants(1)) as [string];
  await queue(next, 1, 1);
  expect((await slots()).ofTenant(next)).toBe(1);
});

test('a tenant alone gets no more slots than a tenant may have', async () => {
  const [alone] = (await busyTenants(1)) as [string];
  expect((await slots()).ofTenant(alone)).toBe(50);
});

test('approvals have slots of their own, however many others have theirs', async () => {
  const [tenantId] = await busyTenants(10);
  await slots();
  await queueDeliveries(db, tenantId as string, Array(12).fill(receiverOf(0)), 'policy.approval_required');
  const claimed = await claimQueued(db);
  expect(claimed.map(({ input }) => input.event_type)).toEqual(Array(8).fill('policy.approval_required'));
});

test('of a receiver that is due for a probe one delivery goes out, an approval first', async () => {
  const [tenantId] = (await tenants(1)) as [string];
  await database.query(
    `INSERT INTO receiver_breakers (tenant_id, receiver, failures, open_until) VALUES ($1, $2, 5, now() - interval '1 s')`,
    [tenantId, receiverOf(0)],
  );
  await queue(tenantId, 1, 3);
  await queueDeliveries(db, tenantId, Array(3).fill(receiverOf(0)), 'plan.approval_required');
  expect((await claimQueued(db)).map(({ input }) => input.event_type)).toEqual(['plan.approval_required']);
  expect(await claimQueued(db)).toEqual([]);
});

test('of a tenant with many receivers each claim looks at some, and the next one at those after them', async () => {
  const [tenantId] = (await tenants(1)) as [string];
  await queue(tenantId, 450, 1);
  // All but the last do not answer, and are not due for a probe.
  const last = 'https://receiver-99.example'; // of the receivers in their order
  await database.query(
    `INSERT INTO receiver_breakers (tenant_id, receiver, failures, open_until)
     SELECT tenant_id, receiver, 5, now() + interval '1 hour' FROM delivery_queue WHERE tenant_id = $1 AND receiver <> $2`,
    [tenantId, last],
  );
  const claims: number[] = [];
  for (let turn = 0; turn < 4; turn += 1) claims.push((await claimQueued(db)).length);
  expect(claims).toEqual([0, 0, 1, 0]);
  expect(await database.query('SELECT tenant_id FROM delivery_turns WHERE tenant_id = $1', [tenantId])).toHaveLength(1);
  await emptyQueue();
  await queue(tenantId, 1, 1);
  await claimQueued(db);
  expect(await database.query('SELECT tenant_id FROM delivery_turns WHERE tenant_id = $1', [tenantId])).toEqual([]);
});
