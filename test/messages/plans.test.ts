import { expect, test } from 'vitest';
import { openDb } from '../../db/pool.js';
import { runAcceptTransaction } from '../../messages/accept/accept-transaction.js';
import { draftOf } from '../../messages/accept/draft.js';
import { createDispatches } from '../../messages/dispatch/dispatch-store.js';
import { newId } from '../../runtime/ids.js';
import { createLogger } from '../../runtime/logger.js';
import { positionEvents } from '../../telemetry/event-sequencer.js';
import { rollUpUsage } from '../../usage/roll-up.js';
import { callerOf, insertAgent, insertTenant, messageCore } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { until } from '../setup/until.js';
import { waitingMessages } from '../setup/waiting-messages.js';

const MESSAGES = 400;
/** Rows that the accept and complete transactions of one message may read together by one index; a scan of its tenant would read hundreds. */
const ROWS_MOST = 10;
const TABLES = [
  'messages%',
  'running_messages',
  'dispatches%',
  'sessions',
  'session_agents',
  'event_%',
  'agents',
  'idempotency_keys',
];
const TENANT = newId('ten');
const CALLER = callerOf(TENANT);
const database = await freshDatabase();
await insertTenant(database, TENANT);
const AGENT = {
  tenant_id: TENANT,
  instance_id: 'a',
  mesh_id: 'mesh_1',
  connection_epoch: 1,
  max_concurrent_sessions: 5,
};
await insertAgent(database, AGENT);

/**
 * Rows that one message's accept and complete transactions read by each index since the last reset. Dead ones do not count: how many
 * there are is chance.
 */
async function rowsRead(): Promise<Record<string, number>> {
  const rows = await database.query<{ name: string; read: string }>(
    `SELECT indexrelname AS name, idx_tup_fetch AS read FROM pg_stat_user_indexes WHERE idx_tup_fetch > 0
        AND relname LIKE ANY ($1)`,
    [TABLES],
  );
  return Object.fromEntries(rows.map(({ name, read }) => [name, Number(read) / MESSAGES]));
}

/** Sends so many messages over connections of their own, so that their plans are from the first on. @returns rows read by each index */
async function rowsOf(metadata: { agent_type?: string }, sender = CALLER): Promise<Record<string, number>> {
  await database.query('SELECT pg_stat_reset()');
  const db = openDb({ url: database.url, max: 2, log: createLogger({ level: 'silent' }) });
  const dispatches = createDispatches(messageCore(db));
  const message = { kind: 'message', role: 'user', parts: [{ kind: 'text', text: 'hello' }] } as const;
  for (let sent = 0; sent < MESSAGES; sent += 1) {
    const params = { message: { ...message, messageId: newId('msg'), parts: [...message.parts] }, metadata };
    const draft = draftOf(sender, params, { method: 'message/send' });
    const dispatch_id = newId('dsp');
    const row = await runAcceptTransaction(db, draft, {
      counting: { in_flight_limit: 100, waiting_limit: 0, waiting_full: false },
      offer: { dispatch_id, mesh_id: 'mesh_1', any_mesh: false },
      idempotencyHours: 1,
    });
    expect(row.verdict).toBe('dispatched');
    const { message_id, session_id } = row;
    const sent = { tenant_id: TENANT, message_id, dispatch_id, session_id, produced: { artifacts: [], usage: null } };
    expect(await dispatches.end(sent, { state: 'completed' }, 1)).not.toBeNull();
  }
  await db.close(); // which writes their statistics
  return until(async () => ((await rowsRead()).running_messages_pkey ? rowsRead() : undefined), {
    what: 'the statistics',
  });
}

const scanned = (read: Record<string, number>) => Object.entries(read).filter(([, rows]) => rows > ROWS_MOST);

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
  expect(scanned(await rowsOf({}))).toEqual([]);
});

test('plans that were made on an empty database find a message and a dispatch by their keys', async () => {
  // Another index with the tenant first gives the one row as well, after a look at each of the tenant's entries.
  const read = await database.query<{ name: string }>(
    `SELECT DISTINCT relname || ' ' || regexp_replace(indexrelname, '^.*_', '') AS name FROM pg_stat_user_indexes
      WHERE idx_scan >= $1 AND relname ~ '^(messages|dispatches)_' ORDER BY 1`,
    [MESSAGES / 2],
  );
  expect(read.map(({ name }) => name.replace(/_[0-9_]+/, ''))).toEqual(['dispatches pkey', 'messages pkey']);
});

test('plans that were made on an empty database add up the usage of events that they find by their keys', async () => {
  await database.query('SELECT pg_stat_reset()');
  const db = openDb({ url: database.url, max: 1, log: createLogger({ level: 'silent' }) });
  await positionEvents(db);
  await until(async () => (await rollUpUsage(db)) === 0, { what: 'the end of the events' });
  await db.close();
  const ofEvents = async () => Object.entries(await rowsRead()).filter(([name]) => /^event_groups.*pkey$/.test(name));
  await until(async () => (await ofEvents()).length > 0, { what: 'the statistics' });
  expect(scanned(await rowsRead())).toEqual([]);
});

test('messages that wait for input are not read with each message', async () => {
  await statisticsOfOne();
  await waitingMessages(database, TENANT, 5_000);
  expect(scanned(await rowsOf({ agent_type: 'worker' }))).toEqual([]);
});

test('the agent of a type is found without a look at those of others', async () => {
  await database.query(
    `INSERT INTO agents (tenant_id, instance_id, agent_type, deployment_mode, status, mesh_id, connection_epoch, max_concurrent_sessions)
     SELECT $1, 'other-' || n, 'other-' || n, 'connected', 'available', 'mesh_1', 1, 5 FROM generate_series(1, 500) AS n`,
    [TENANT],
  );
  expect(scanned(await rowsOf({ agent_type: 'worker' }))).toEqual([]);
});

test('the type of a message that names none is found without a look at the agents of others', async () => {
  await database.query("UPDATE tenants SET default_agent_type = 'worker' WHERE tenant_id = $1", [TENANT]);
  expect(scanned(await rowsOf({}))).toEqual([]);
});

test('what an agent that sends works on is found without a look at what others work on', async () => {
  const sender = { ...CALLER, agent_type: 'worker' };
  expect(scanned(await rowsOf({ agent_type: 'worker' }, sender))).toEqual([]);
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
  const sender = { ...CALLER, agent_type: 'worker' };
  await database.query(
    `INSERT INTO running_messages (tenant_id, message_id, session_id, state)
     SELECT tenant_id, message_id, session_id, state FROM messages WHERE state = 'input-required'`,
  );
  expect(scanned(await rowsOf({ agent_type: 'worker' }, sender))).toEqual([]);
});
