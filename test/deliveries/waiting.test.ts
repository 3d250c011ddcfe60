import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import type { GetDeliveriesRequest } from '../../contracts/api/deliveries.js';
import { listDeliveries } from '../../deliveries/delivery-list.js';
import { type NewAlertDelivery, writeDeliveries } from '../../deliveries/delivery-store.js';
import { PushChanges } from '../../deliveries/push/push-changes.js';
import { redeliver } from '../../deliveries/redeliver.js';
import { purgeDeliveries } from '../../deliveries/retention.js';
import { createOutbound } from '../../http/outbound.js';
import { newEventId, newId } from '../../runtime/ids.js';
import { createSecrets } from '../../runtime/secrets.js';
import { cleanUp } from '../setup/clean-up.js';
import { insertTenant } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { writeChange } from './push-fixture.js';
import { insertRule } from './queue-fixture.js';

const database = await freshDatabase();
const db = database.db();
const RECEIVER = 'https://receiver.example';
const outbound = createOutbound({ allowCidrs: [] });
cleanUp(() => outbound.close());
const clients = { outbound, slackApiUrl: '', email: { smtpUrl: undefined, from: '' } };
const deps = { db, secrets: createSecrets(randomBytes(32).toString('base64')), clients };

/** A tenant with a rule and its channel. */
async function tenantWithRule() {
  const tenant_id = await insertTenant(database);
  const ids = await insertRule(database, tenant_id, { type: 'webhook', config: { url: RECEIVER } });
  const delivery = (receiver = RECEIVER): NewAlertDelivery => ({
    ...{ ...ids, session_id: '', delivery_id: newId('dlv'), event_id: newEventId(), event_type: 'agent.registered' },
    ...{ url: receiver, receiver, body: Buffer.from('sealed'), max_attempts: 3 },
  });
  const write = (deliveries: NewAlertDelivery[]) => db.tenant(tenant_id, (tx) => writeDeliveries(tx, deliveries));
  const list = async (of: Partial<GetDeliveriesRequest> = {}) =>
    (await listDeliveries(db, tenant_id, { ...of, page: 1, page_size: 100 })).rows;
  return { tenant_id, rule_id: ids.rule_id, delivery, write, list };
}

const errorsOf = (deliveries: Awaited<ReturnType<typeof listDeliveries>>['rows']) =>
  deliveries.map(({ status, attempts }) => [status, ...attempts.map(({ error }) => error)]);

test('of more than 10,000 deliveries that are pending for one receiver the others fail with QUEUE_FULL, and can be redelivered', async () => {
  const { tenant_id, rule_id, delivery, write, list } = await tenantWithRule();
  const other = await tenantWithRule();
  await database.query(
    `INSERT INTO deliveries (tenant_id, delivery_id, event_type, session_id, message_id, config_id, url, receiver, status, max_attempts)
     SELECT $1, 'dlv_waiting_' || n, 'task.working', '', 'msg_' || n, 'c', '', $2, 'pending', 3 FROM generate_series(1, 9999) n`,
    [tenant_id, RECEIVER],
  );
  const ordinary = [delivery(), delivery(), delivery('https://another.example'), delivery()];
  const given = [...ordinary, { ...delivery(), event_type: 'message.input_required' }];
  await write(given);
  await other.write([other.delivery()]);
  const written = () => list({ rule_id });
  const [pending, full] = [['pending'], ['failed', 'QUEUE_FULL']];
  expect(errorsOf((await written()).reverse())).toEqual([pending, full, pending, full, pending]);
  expect(errorsOf(await other.list())).toEqual([['pending']]);
  const [refused] = (await written()).filter(({ status }) => status === 'failed');
  expect(await list({ status: 'failed', since: new Date(Date.now() - 60_000).toISOString() })).toHaveLength(2);
  expect(await list({ status: 'failed', since: new Date(Date.now() + 60_000).toISOString() })).toEqual([]);
  expect(refused?.attempts).toMatchObject([{ status_code: null, response_time_ms: 0, success: false }]);
  const queued = async () => {
    const one = 'SELECT queue_id FROM delivery_queue WHERE queue_id = $1';
    return (await database.query(one, [refused?.delivery_id])).length;
  };
  expect(await queued()).toBe(0);
  expect(await redeliver(deps, tenant_id, refused?.delivery_id ?? '')).toBe('pending');
  expect(await queued()).toBe(1);
});

/** Lets the queue wait so long already. */
const waited = (queueId: string, time: string) =>
  database.query(`UPDATE delivery_queue SET queued_at = now() - $2::interval WHERE queue_id = $1`, [queueId, time]);

test('a delivery waits 24 hours for its receiver, and then has failed', async () => {
  const { delivery, write, list } = await tenantWithRule();
  const [late, waiting, sent] = [delivery(), delivery(), delivery()];
  await write([late, waiting, sent]);
  await waited(late.delivery_id, '24 hours 1 minute');
  await waited(waiting.delivery_id, '23 hours 59 minutes');
  await waited(sent.delivery_id, '25 hours');
  await database.query('UPDATE delivery_queue SET started_at = now() WHERE queue_id = $1', [sent.delivery_id]);
  await purgeDeliveries(db);
  expect(errorsOf((await list()).reverse())).toEqual([['failed', 'RECEIVER_UNAVAILABLE'], ['pending'], ['pending']]);
  const queued = 'SELECT queue_id FROM delivery_queue WHERE queue_id = ANY ($1)';
  const ids = [late, waiting, sent].map(({ delivery_id }) => delivery_id);
  expect((await database.column(queued, [ids])).sort()).toEqual([waiting.delivery_id, sent.delivery_id].sort());
});

test('a push notification does so too', async () => {
  const { tenant_id, list } = await tenantWithRule();
  const messages = [newId('msg'), newId('msg')];
  for (const messageId of messages) await writeChange(database, { tenant_id, message_id: messageId, url: RECEIVER });
  while (await new PushChanges(db).relay()) {}
  await waited(`${messages[0]}/c`, '24 hours 1 minute');
  await waited(`${messages[1]}/c`, '23 hours 59 minutes');
  await purgeDeliveries(db);
  const found = new Map((await list()).map((delivery) => [delivery.task_id, delivery]));
  expect(errorsOf(messages.flatMap((id) => found.get(id) ?? []))).toEqual([
    ['failed', 'RECEIVER_UNAVAILABLE'],
    ['pending'],
  ]);
});

test('everything that is old goes in one round, however much it is', async () => {
  const { tenant_id, rule_id } = await tenantWithRule();
  await database.query(
    `INSERT INTO deliveries (tenant_id, delivery_id, event_type, session_id, event_id, rule_id, channel_id, url, receiver, status, max_attempts, ended_at)
     SELECT $1, 'dlv_old_' || n, 'agent.registered', '', 'evt_' || n, $2, 'c', '', '', 'delivered', 3, now() - interval '8 days' FROM generate_series(1, 5001) n`,
    [tenant_id, rule_id],
  );
  await database.query(
    `INSERT INTO receiver_breakers (tenant_id, receiver, failures, changed_at)
     SELECT $1, 'https://host-' || n, 1, now() - n * interval '6 days' FROM generate_series(1, 2) n`,
    [tenant_id],
  );
  await database.query(
    `INSERT INTO callback_tokens (token_hash, tenant_id, message_id, request_id, digest, rule_id, writers, expires_at)
     SELECT int4send(n), $1, 'm', 'r', '', '', '{}', now() - n * interval '60 days' FROM generate_series(1, 2) n`,
    [tenant_id],
  );
  await purgeDeliveries(db);
  const left = (table: string) =>
    database.value(`SELECT count(*)::integer FROM ${table} WHERE tenant_id = $1`, [tenant_id]);
  expect(await left('deliveries')).toBe(0);
  expect(await left('receiver_breakers')).toBe(1);
  expect(await left('callback_tokens')).toBe(1);
});
