import { expect, test } from 'vitest';
import { UNCOUNTED } from '../../messages/accept/accept-transaction.js';
import { positionEvents } from '../../telemetry/event-sequencer.js';
import { rollUpUsage } from '../../usage/roll-up.js';
import { freshDatabase } from '../setup/database.js';
import { RecordFixture } from '../setup/record-fixture.js';
import { rowsByIndex } from '../setup/rows-read.js';
import { until } from '../setup/until.js';
import { waitingMessages } from '../setup/waiting-messages.js';

const MESSAGES = 100;
/** Rows that the accept and complete transactions of one message may read together by one index; a scan of its tenant would read hundreds. */
const ROWS_MOST = 10;
const TABLES = /^(messages.*|running_messages|dispatches.*|sessions|session_agents|event_.*|agents|idempotency_keys)$/;
const WORKER = { agent_type: 'worker' };
const database = await freshDatabase();
const fixture = new RecordFixture(database);
await fixture.reset();
await fixture.agent('a', { max_concurrent_sessions: 5 });
const TENANT = fixture.tenantId;

/** Indexes that gave more rows than a message needs, while so many were sent and completed. @param sender the type of the agent that sends */
async function scanned(wish: { agent_type?: string }, sender?: string): Promise<object> {
  const read = await rowsByIndex(database, TABLES, async (db) => {
    const own = new RecordFixture(database, { db });
    own.tenantId = TENANT;
    const counting = { ...UNCOUNTED, in_flight_limit: 100 };
    for (let sent = 0; sent < MESSAGES; sent += 1) {
      const message = await own.send(wish, { counting, sender });
      expect(message.verdict).toBe('dispatched');
      expect(await own.dispatches.end(message, { state: 'completed' }, 1)).not.toBeNull();
    }
  });
  expect(read).toHaveProperty('running_messages_pkey');
  return Object.fromEntries(Object.entries(read).filter(([, rows]) => rows > ROWS_MOST * MESSAGES));
}

/** Leaves an empty table with statistics of a moment when one message was at work, as any analysis may: one row seems to be all that a tenant has. */
async function statisticsOfOne(): Promise<void> {
  await database.query('DELETE FROM running_messages');
  await database.query('VACUUM FULL running_messages');
  await database.query(
    `INSERT INTO running_messages (tenant_id, message_id, session_id, state, instance_id, holds_slot)
     VALUES ($1, 'msg_1', 'ses_1', 'working', 'a', true)`,
    [TENANT],
  );
  await database.query('ANALYZE running_messages');
  await database.query('DELETE FROM running_messages');
}

test('plans that were made on an empty database look at a few rows of a full one', async () => {
  expect(await scanned({})).toEqual({});
});

test('plans that were made on an empty database find a message and a dispatch by their keys', async () => {
  // Another index with the tenant first gives the one row as well, after a look at each of the tenant's entries.
  const read = await database.column<string>(
    `SELECT DISTINCT relname || ' ' || regexp_replace(indexrelname, '^.*_', '') AS name FROM pg_stat_user_indexes
      WHERE idx_scan >= $1 AND relname ~ '^(messages|dispatches)_' ORDER BY 1`,
    [MESSAGES / 2],
  );
  expect(read.map((name) => name.replace(/_[0-9_]+/, ''))).toEqual(['dispatches pkey', 'messages pkey']);
});

test('plans that were made on an empty database add up the usage of events that they find by their keys', async () => {
  const read = await rowsByIndex(database, TABLES, async (db) => {
    await positionEvents(db);
    await until(async () => (await rollUpUsage(db)) === 0, { what: 'the end of the events' });
  });
  expect(Object.keys(read).some((name) => /^event_groups.*pkey$/.test(name))).toBe(true);
  expect(Object.entries(read).filter(([, rows]) => rows > ROWS_MOST * MESSAGES)).toEqual([]);
});

test('messages that wait for input are not read with each message', async () => {
  await statisticsOfOne();
  await waitingMessages(database, TENANT, 5_000);
  expect(await scanned(WORKER)).toEqual({});
});

test('the agent of a type is found without a look at those of others', async () => {
  await database.query(
    `INSERT INTO agents (tenant_id, instance_id, agent_type, deployment_mode, status, mesh_id, connection_epoch, max_concurrent_sessions)
     SELECT $1, 'other-' || n, 'other-' || n, 'connected', 'available', 'mesh_1', 1, 5 FROM generate_series(1, 500) AS n`,
    [TENANT],
  );
  expect(await scanned(WORKER)).toEqual({});
});

test('the type of a message that names none is found without a look at the agents of others', async () => {
  await database.query("UPDATE tenants SET default_agent_type = 'worker' WHERE tenant_id = $1", [TENANT]);
  expect(await scanned({})).toEqual({});
});

test('what an agent that sends works on is found without a look at what others work on', async () => {
  expect(await scanned(WORKER, 'worker')).toEqual({});
});

test('messages that wait are not read although the index of those at work has as many pages of rows that are gone', async () => {
  // With the same costs the planner takes either: the key, and so all messages of the tenant.
  await database.query('ALTER TABLE running_messages SET (autovacuum_enabled = off)');
  await statisticsOfOne();
  await database.query(
    `INSERT INTO running_messages (tenant_id, message_id, session_id, state, instance_id, holds_slot)
     SELECT $1, 'msg_' || n, 'ses_' || n, 'working', 'other', true FROM generate_series(1, 1000) AS n`,
    [TENANT],
  );
  await database.query('DELETE FROM running_messages');
  await database.query(
    `INSERT INTO running_messages (tenant_id, message_id, session_id, state)
     SELECT tenant_id, message_id, session_id, state FROM messages WHERE state = 'input-required'`,
  );
  expect(await scanned(WORKER, 'worker')).toEqual({});
});
