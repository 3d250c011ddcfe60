import { expect, test } from 'vitest';
import {
  database,
  idAt,
  KEPT_DAYS,
  MARK,
  MONTHS_AGO,
  message,
  month,
  monthsOf,
  readEvents,
  rest,
  retention,
  TABLES,
  tenantId,
  usePastMonths,
} from '../../db/retention-fixture.js';
import { callerOf, messageCore, textMessage } from '../../setup/core.js';
import { createGateway } from '../../setup/gateway.js';
import { RowLock } from '../../setup/row-lock.js';
import { until } from '../../setup/until.js';
import { connect } from '../../telemetry/event-writer.js';

usePastMonths();

test('without a retention nothing goes, and each setting concerns its own tables', async () => {
  await message(4);
  await readEvents();
  await retention({}).turn();
  for (const table of Object.keys(TABLES)) expect(await monthsOf(table)).toEqual(MONTHS_AGO);
  await retention({ events: KEPT_DAYS }).turn();
  expect(await monthsOf('event_groups')).toEqual([1]);
  expect(await monthsOf('messages')).toEqual(MONTHS_AGO);
  expect(await rest()).toMatchObject({ sessions: 1, input_requests: 1 });
});

test('nothing goes before its usage is added up', async () => {
  const { session_id } = await message(4);
  await readEvents();
  await database.query("INSERT INTO event_cursors (consumer, position) VALUES ('usage', 0)");
  const held = await RowLock.on(database.url, "SELECT 1 FROM event_cursors WHERE consumer = 'usage'", []);
  await retention().turn();
  for (const table of Object.keys(TABLES)) expect(await monthsOf(table)).toEqual(MONTHS_AGO);
  await held.release();
  await retention().turn();
  for (const table of Object.keys(TABLES)) expect(await monthsOf(table)).toEqual([1]);
  const sums = await database.query(
    'SELECT session_of(session_uuid, session_name) AS session_id, messages::int FROM usage_sessions',
  );
  expect(sums).toEqual([{ session_id, messages: 1 }]);
});

test('a month is kept while a message of it is not over', async () => {
  const { message_id, session_id } = await message(4, 'input-required');
  await message(3);
  const running = 'INSERT INTO running_messages (tenant_id, message_id, session_id, state) VALUES ($1, $2, $3, $4)';
  await database.query(running, [tenantId, message_id, session_id, 'input-required']);
  await retention().turn();
  expect(await monthsOf('messages')).toEqual([4, 1]);
  expect(await monthsOf('dispatches')).toEqual([4, 3, 2, 1]);
  await database.query('DELETE FROM running_messages');
  await retention().turn();
  expect([await monthsOf('messages'), await monthsOf('dispatches')]).toEqual([[1], [1]]);
});

test('a month is kept while a notification about a message of it is not delivered', async () => {
  const { message_id } = await message(4);
  await database.query("UPDATE deliveries SET status = 'pending', ended_at = NULL");
  await retention().turn();
  expect(await monthsOf('messages')).toEqual([4, 1]);
  await database.query("UPDATE deliveries SET status = 'delivered', ended_at = now()");
  const change = 'INSERT INTO push_changes (tenant_id, message_id, config_id, state) VALUES ($1, $2, $3, $4)';
  await database.query(change, [tenantId, message_id, 'c', 'completed']);
  await retention().turn();
  expect(await monthsOf('messages')).toEqual([4, 1]);
});

test('a month and those after it are kept while a consumer has not read its events, or they have no position yet', async () => {
  await message(4);
  const kept = [4, 3, 2, 1];
  await retention().turn();
  expect(await monthsOf('event_groups')).toEqual(kept);
  await database.query('SELECT position_events(1000)');
  await retention().turn();
  expect([await monthsOf('event_groups'), await monthsOf('event_positions')]).toEqual([kept, kept]);
  await readEvents();
  await retention().turn();
  expect([await monthsOf('event_groups'), await monthsOf('event_positions')]).toEqual([[1], [1]]);
});

test('a month is kept while a tenant that the alert relay has left behind has not read its events', async () => {
  await message(4);
  await database.query('SELECT position_events(1000)');
  await database.query("INSERT INTO event_cursors (consumer, position) VALUES ('alerts/' || $1, 0)", [tenantId]);
  await database.query("UPDATE event_cursors SET position = event_head() WHERE consumer <> 'alerts/' || $1", [
    tenantId,
  ]);
  await retention().turn();
  expect(await monthsOf('event_groups')).toEqual([4, 3, 2, 1]);
  await readEvents();
  await retention().turn();
  expect(await monthsOf('event_groups')).toEqual([1]);
  await database.query("DELETE FROM event_cursors WHERE consumer LIKE 'alerts/%'");
});

test('a session is kept while it is active or has a message, and as long as messages are', async () => {
  const [active, shared, fresh] = [await message(5), await message(4), await message(3)];
  const newest = await message(1);
  await database.query("UPDATE sessions SET status = 'active', ended_at = NULL WHERE session_id = $1", [
    active.session_id,
  ]);
  await database.query(
    'UPDATE messages SET session_id = $1, session_uuid = session_uuid(uuid_of(tenant_id), $1) WHERE message_id = $2',
    [shared.session_id, newest.message_id],
  );
  await database.query('UPDATE sessions SET ended_at = now() WHERE session_id = $1', [fresh.session_id]);
  await retention().turn();
  const kept = [active, shared, fresh, newest].map((row) => row.session_id);
  expect(await database.column('SELECT session_id FROM sessions ORDER BY session_id')).toEqual(kept);
  // It has ended since, and goes with the next month.
  await database.query(
    "UPDATE sessions SET status = 'expired', ended_at = now() - interval '1 year' WHERE session_id = $1",
    [active.session_id],
  );
  await database.query(`COMMENT ON TABLE public.messages_${month(1).suffix} IS ${MARK}`);
  await database.query(`ALTER TABLE messages DETACH PARTITION public.messages_${month(1).suffix}`);
  await retention().turn();
  expect((await database.query('SELECT 1 FROM sessions WHERE session_id = $1', [active.session_id])).length).toBe(0);
});

test('writers and readers go on while a transaction keeps retention waiting, which later finishes', async () => {
  await message(4);
  const client = await connect(database.url);
  const gateway = createGateway(messageCore(database.db()));
  const send = () => {
    const params = { message: textMessage(), metadata: { agent_type: 'worker' } };
    return gateway.accept(callerOf(tenantId), params, { method: 'message/send' });
  };
  await client.query('BEGIN');
  await client.query('SELECT count(*) FROM messages'); // uses every partition until it ends
  const turn = retention({ messages: KEPT_DAYS }).turn();
  const waiting = () =>
    database.column<string>(
      "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'fleet_retention' AND wait_event_type = 'Lock'",
    );
  const waits = async () => (await waiting()).some((query) => query.includes('messages'));
  await until(waits, { what: 'retention to wait' });
  const sent = await Promise.all(Array.from({ length: 20 }, send));
  expect(new Set(sent.map(({ message_id }) => message_id)).size).toBe(20);
  const waiters = await database.column(
    `SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)
      WHERE NOT l.granted AND a.datname = current_database()`,
  );
  expect(waiters).toEqual(['fleet_retention']);
  await turn; // has given up for now
  await client.query('COMMIT');
  await send();
  await retention({ messages: KEPT_DAYS }).turn();
  expect(await monthsOf('messages')).toEqual([1]);
  expect(await database.value('SELECT to_regclass($1)', [`public.messages_${month(4).suffix}`])).toBeNull();
});

test('several processes drop each month once', async () => {
  await message(4);
  await readEvents();
  await Promise.all(Array.from({ length: 3 }, () => retention().turn()));
  for (const table of Object.keys(TABLES)) expect(await monthsOf(table)).toEqual([1]);
});

test('the log of deliveries goes with the events that they told of, unless they are still to be made', async () => {
  await message(4);
  await readEvents();
  const insert = (delivery_id: string, ago: number, endedAt: Date | null) =>
    database.query(
      `INSERT INTO deliveries (tenant_id, delivery_id, event_id, rule_id, channel_id, event_type, session_id, url, receiver, body, status,
         max_attempts, ended_at) VALUES ($1, $2, $3, 'r', 'c', '', '', '', '', '', 'delivered', 1, $4)`,
      [tenantId, delivery_id, idAt('evt', month(ago).middle, delivery_id.length), endedAt],
    );
  await insert('told', 4, new Date());
  await insert('waits', 4, null);
  await insert('newer', 1, new Date());
  await retention().turn();
  expect(await database.column('SELECT delivery_id FROM deliveries ORDER BY 1')).toEqual(['newer', 'waits']);
});
