import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import type { DeliveryAttempt } from '../../contracts/api/deliveries.js';
import { attemptDelivery } from '../../deliveries/attempt-delivery.js';
import { newDeliveryCounts, receiverOf } from '../../deliveries/attempts.js';
import { noteAnswer } from '../../deliveries/breakers.js';
import { listDeliveries } from '../../deliveries/delivery-list.js';
import { type NewAlertDelivery, writeDeliveries } from '../../deliveries/delivery-store.js';
import { sealBody } from '../../deliveries/envelope.js';
import { PushChanges } from '../../deliveries/push/push-changes.js';
import { claimQueued, type QueuedDelivery } from '../../deliveries/queue.js';
import { createOutbound } from '../../http/outbound.js';
import { newEventId, newId } from '../../runtime/ids.js';
import { createLogger } from '../../runtime/logger.js';
import { createSecrets } from '../../runtime/secrets.js';
import { cleanUp } from '../setup/clean-up.js';
import { insertTenant } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { receiver, status } from '../setup/receiver.js';
import { writeChange } from './push-fixture.js';
import { insertRule } from './queue-fixture.js';

const database = await freshDatabase();
const db = database.db();
const secrets = createSecrets(randomBytes(32).toString('base64'));
const outbound = createOutbound({ allowCidrs: ['127.0.0.0/8'] });
cleanUp(() => outbound.close());
const clients = { outbound, slackApiUrl: '', email: { smtpUrl: undefined, from: '' } };
const log = createLogger({ level: 'silent' });
const deps = { db, secrets, clients, log, counts: newDeliveryCounts() };

/** The delivery of a rule's event to a channel. */
async function written(
  url: string,
  type: 'webhook' | 'email' = 'webhook',
  max_attempts = 3,
): Promise<NewAlertDelivery> {
  const tenant_id = await insertTenant(database);
  const config = type === 'email' ? { recipients: ['a@example.com'] } : { url };
  const ids = await insertRule(database, tenant_id, { type, config });
  const to = receiverOf(type === 'email' ? 'smtp:' : url, ids.channel_id);
  const delivery = {
    ...{ ...ids, session_id: '', delivery_id: newId('dlv'), event_id: newEventId(), event_type: 'agent.registered' },
    ...{ url, receiver: to, body: sealBody(secrets, '{"hello":"ünï"}'), max_attempts },
  };
  await db.tenant(tenant_id, (tx) => writeDeliveries(tx, [delivery]));
  return delivery;
}

/** What is queued of a tenant, once it has its slots. */
async function claimed(tenantId: string): Promise<QueuedDelivery[]> {
  return (await claimQueued(db)).filter(({ tenant_id }) => tenant_id === tenantId);
}

/** A delivery that has its slot. */
async function due(...of: Parameters<typeof written>) {
  const delivery = await written(...of);
  const [queued] = await claimed(delivery.tenant_id);
  return { ...delivery, queued };
}

const attempt = (queued: QueuedDelivery | undefined, made: number | null, by = deps) => {
  if (!queued) throw new Error('nothing is queued');
  return attemptDelivery(by, queued.input, made, new AbortController().signal);
};
const ofTenant = async (tenantId: string) =>
  (await listDeliveries(db, tenantId, { page: 1, page_size: 100 })).rows.reverse();
const breakersOf = (tenantId: string) =>
  database.query('SELECT receiver, failures FROM receiver_breakers WHERE tenant_id = $1', [tenantId]);
const queuedOf = (tenantId: string) =>
  database.query('SELECT queue_id FROM delivery_queue WHERE tenant_id = $1', [tenantId]);

test.each([
  [3, [1, 5]],
  [4, [1, 5, 30]],
])(
  'a receiver that answers 500 gets %i attempts, each after its pause, of the same bytes under the same id',
  async (most, pauses) => {
    const to = await receiver(status(500));
    const { tenant_id, delivery_id, queued } = await due(to.url, 'webhook', most);
    const seconds: number[] = [];
    for (let next = await attempt(queued, null); next; next = await attempt(queued, next.made))
      seconds.push(Math.ceil(next.wait_ms / 1_000));
    expect(seconds).toEqual(pauses);
    expect(to.arrived.map(({ headers }) => headers['webhook-id'])).toEqual(Array(most).fill(delivery_id));
    expect(new Set(to.arrived.map(({ raw }) => raw.toString())).size).toBe(1);
    const attempts = Array(most).fill({ status_code: 500, success: false });
    expect(await ofTenant(tenant_id)).toMatchObject([{ status: 'failed', attempts }]);
  },
);

test('an attempt that was recorded before a crash is followed by its whole pause', async () => {
  const to = await receiver(status(503));
  const { tenant_id, queued } = await due(to.url);
  expect(await attempt(queued, null)).toMatchObject({ made: 1 });
  // The process died before its workflow knew: the activity is run again.
  const again = await attempt(queued, null);
  expect(again).toMatchObject({ made: 1 });
  expect(again?.wait_ms).toBeGreaterThan(0);
  expect(again?.wait_ms).toBeLessThanOrEqual(1_000);
  expect(to.arrived).toHaveLength(1);
  await database.query(
    `UPDATE deliveries SET attempts = jsonb_set(attempts, '{0,at}', to_jsonb(now() - interval '2 s')) WHERE tenant_id = $1`,
    [tenant_id],
  );
  expect(await attempt(queued, null)).toMatchObject({ made: 2 });
  expect(to.arrived).toHaveLength(2);
});

test('two runs of one attempt are logged once', async () => {
  const { tenant_id, queued } = await due((await receiver()).url);
  await Promise.all([attempt(queued, null), attempt(queued, null)]);
  expect(await ofTenant(tenant_id)).toMatchObject([{ status: 'delivered', attempts: [{ success: true }] }]);
  expect(await queuedOf(tenant_id)).toEqual([]);
});

test('what no present key opens ends as UNREADABLE, and gives its slot up', async () => {
  const { tenant_id, queued } = await due('http://127.0.0.1:9/');
  await database.query('UPDATE deliveries SET body = $2 WHERE tenant_id = $1', [tenant_id, Buffer.from('garbage')]);
  expect(await attempt(queued, null)).toBeNull();
  const [delivery] = await ofTenant(tenant_id);
  const attempts: Partial<DeliveryAttempt>[] = [{ status_code: null, success: false, error: 'UNREADABLE' }];
  expect(delivery).toMatchObject({ status: 'failed', attempts });
  expect(await queuedOf(tenant_id)).toEqual([]);
  expect(await breakersOf(tenant_id)).toEqual([]);
});

test('a process without the key in use leaves what it cannot read to others', async () => {
  const { tenant_id, queued } = await due('http://127.0.0.1:9/');
  const set = `INSERT INTO platform_facts (name, value) VALUES ('secret_key_check', $1)`;
  await database.query(set, [secrets.check()]);
  const old = { ...deps, secrets: createSecrets(randomBytes(32).toString('base64')) };
  await expect(attempt(queued, null, old)).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
  await database.query("DELETE FROM platform_facts WHERE name = 'secret_key_check'");
  expect(await ofTenant(tenant_id)).toMatchObject([{ status: 'pending', attempts: [] }]);
  expect(await queuedOf(tenant_id)).toHaveLength(1);
});

test.each([
  ['a forbidden address', 'http://10.0.0.1:9/', 'webhook', 'FORBIDDEN_ADDRESS'],
  ['email without a mail server', 'mailto:a@example.com', 'email', 'SMTP_NOT_CONFIGURED'],
] as const)('%s says nothing about the receiver', async (_what, url, type, error) => {
  const { tenant_id, receiver: to, queued } = await due(url, type);
  const of = { tenant_id, queue_id: 'earlier', receiver: to };
  await db.tenant(tenant_id, (tx) => noteAnswer(tx, of, false));
  expect(await attempt(queued, null)).toBeNull();
  expect(await ofTenant(tenant_id)).toMatchObject([{ status: 'failed', attempts: [{ status_code: null, error }] }]);
  expect(await breakersOf(tenant_id)).toEqual([{ receiver: to, failures: 1 }]);
});

test('a redirect is an answer: the receiver is there', async () => {
  const to = await receiver((response) => response.writeHead(302, { location: 'http://127.0.0.1:9/' }).end());
  const { tenant_id, receiver: name, queued } = await due(to.url);
  await db.tenant(tenant_id, (tx) => noteAnswer(tx, { tenant_id, queue_id: 'earlier', receiver: name }, false));
  expect(await attempt(queued, null)).toBeNull();
  expect(await breakersOf(tenant_id)).toEqual([]);
});

test('the push notifications of a config go out one after the other, at one place in the queue, each with its own attempts', async () => {
  const to = await receiver((response, count) => status(count === 2 ? 500 : 200)(response));
  const tenant_id = await insertTenant(database);
  const message_id = newId('msg');
  for (const state of ['working', 'completed'])
    await writeChange(database, { tenant_id, message_id, url: to.url, state });
  const changes = new PushChanges(db);
  while (await changes.relay()) {}
  const [queued, ...others] = await claimed(tenant_id);
  expect(others).toEqual([]);
  expect(await attempt(queued, null)).toEqual({ event_type: 'task.completed', made: 0, wait_ms: 0 });
  await writeChange(database, { tenant_id, message_id, url: to.url, state: 'failed' });
  while (await changes.relay()) {}
  expect(await queuedOf(tenant_id)).toHaveLength(1);
  expect(await attempt(queued, 0)).toMatchObject({ event_type: 'task.completed', made: 1 });
  expect(await attempt(queued, 1)).toEqual({ event_type: 'task.failed', made: 0, wait_ms: 0 });
  expect(await attempt(queued, 0)).toBeNull();
  const shown = (await ofTenant(tenant_id)).map(({ event_type, attempts }) => [event_type, attempts.length]);
  expect(shown).toEqual([
    ['task.working', 1],
    ['task.completed', 2],
    ['task.failed', 1],
  ]);
  expect(to.arrived[2]?.raw.equals(to.arrived[1]?.raw as Buffer)).toBe(true);
  expect(await queuedOf(tenant_id)).toEqual([]);
});

test('the bytes of a push notification are sealed at its first attempt, and are not readable in the database', async () => {
  const to = await receiver(status(500));
  const tenant_id = await insertTenant(database);
  const message_id = newId('msg');
  await writeChange(database, { tenant_id, message_id, url: to.url });
  await new PushChanges(db).relay();
  const [queued] = await claimed(tenant_id);
  await attempt(queued, null);
  const change = "UPDATE messages SET error_message = 'changed since', updated_at = now() WHERE message_id = $1";
  await database.query(change, [message_id]);
  const sealed = 'SELECT body FROM deliveries WHERE message_id = $1';
  const body = await database.value<Buffer>(sealed, [message_id]);
  expect(body?.toString('latin1')).not.toContain(message_id);
  await attempt(queued, 1);
  const [first, second] = to.arrived.map(({ raw }) => raw.toString());
  expect(second).toBe(first);
});

test('the changes of a tenant with many of them do not hold up those of others', async () => {
  const [busy = '', other = ''] = [await insertTenant(database), await insertTenant(database)].sort();
  const flooded = newId('msg');
  await writeChange(database, { tenant_id: busy, message_id: flooded, url: 'https://a.example/' });
  await database.query(
    `INSERT INTO push_changes (tenant_id, message_id, config_id, state) SELECT $1, $2, 'c', 'working' FROM generate_series(1, 500)`,
    [busy, flooded],
  );
  await writeChange(database, { tenant_id: other, message_id: newId('msg'), url: 'https://a.example/' });
  expect(await new PushChanges(db).relay()).toBe(true);
  expect(await queuedOf(other)).toHaveLength(1);
  const count = 'SELECT count(*)::int AS count FROM push_changes WHERE tenant_id = $1';
  expect(await database.value(count, [busy])).toBe(501 - 32);
  const changes = new PushChanges(db);
  while (await changes.relay()) {}
  expect(await queuedOf(busy)).toHaveLength(1);
  expect(await ofTenant(busy)).toHaveLength(100); // the page
});
