import pg from 'pg';
import { beforeEach, expect, test } from 'vitest';
import { dispatchTotals, settleTotals } from '../../agents/agent-connections.js';
import { Retention } from '../../db/retention.js';
import { getApprovals } from '../../messages/input/audit.js';
import { getMessage } from '../../messages/read/read.js';
import { uuidBound, uuidOf } from '../../runtime/ids.js';
import { createLogger } from '../../runtime/logger.js';
import { readDetails } from '../../sessions/session-records.js';
import { rollUpAll } from '../../usage/roll-up.js';
import { cleanUp } from '../setup/clean-up.js';
import { callerOf, insertAgent, insertTenant, messageCore } from '../setup/core.js';
import { type FreshDatabase, freshDatabase } from '../setup/database.js';
import { createGateway } from '../setup/gateway.js';
import { RowLock } from '../setup/row-lock.js';
import { until } from '../setup/until.js';

const DAY_MS = 86_400_000;
const TABLES = { messages: 'msg', dispatches: 'dsp', event_groups: null, event_positions: null };
/** Partitions of the past. The newest is kept for its age, the others go. */
const MONTHS_AGO = [5, 4, 3, 2, 1];
const KEPT_DAYS = Math.floor((Date.now() - Date.parse(month(1).first)) / DAY_MS);
/** What retention writes on a partition before it detaches it. */
const MARK = "'detached by retention, to be dropped'";

let database: FreshDatabase;
let tenantId: string;

/** The name and the first day of a month. */
function month(ago: number): { suffix: string; first: string; middle: Date } {
  const today = new Date();
  const day = new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() - ago, 1));
  const first = day.toISOString().slice(0, 10);
  return { suffix: first.slice(0, 7).replace('-', '_'), first, middle: new Date(day.getTime() + 14 * DAY_MS) };
}

/** An id that was made at a time. */
function idAt(prefix: string, at: Date, place = 0): string {
  const hex = at.getTime().toString(16).padStart(12, '0');
  return `${prefix}_${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-${String(place).padStart(12, '0')}`;
}

/** Partitions from the oldest of those months on, as a platform has them that has run for so long. */
async function pastPartitions(): Promise<void> {
  const rows = await database.query<{ name: string }>(
    "SELECT relname AS name FROM pg_class WHERE relispartition AND relkind = 'r' AND relnamespace = 'public'::regnamespace",
  );
  await database.query(`DROP TABLE ${rows.map(({ name }) => name).join()}`);
  const [oldest = 0] = MONTHS_AGO;
  for (const [table, prefix] of Object.entries(TABLES)) {
    const bound = `(SELECT id_bound(${prefix && `'${prefix}'`}, '${month(oldest - 1).first}'))`;
    const [row] = await database.query<{ bound: string }>(`SELECT ${bound} AS bound`);
    await database.query(
      `CREATE TABLE public.${table}_${month(oldest).suffix} PARTITION OF ${table} FOR VALUES FROM (MINVALUE) TO ('${row?.bound}')`,
    );
  }
  await database.query('SELECT create_partitions()');
}

interface Written {
  message_id: string;
  session_id: string;
}

/** A message that was answered in the middle of a month, with its session, dispatch, event, question and push configuration. */
async function message(ago: number, state = 'completed'): Promise<Written> {
  const at = month(ago).middle;
  const message_id = idAt('msg', at);
  const session_id = idAt('ses', at);
  const written = [tenantId, message_id, session_id, at];
  await database.query(
    `INSERT INTO sessions (tenant_id, session_id, explicit, status, idle_timeout_seconds, created_by, created_at, ended_at)
     VALUES ($1, $2, false, 'expired', 60, 'cred_1', $3, $3)`,
    [tenantId, session_id, at],
  );
  await database.query(
    "INSERT INTO session_agents (tenant_id, session_id, agent_type, instance_id, join_reason) VALUES ($1, $2, 'worker', 'a', 'routed')",
    [tenantId, session_id],
  );
  await database.query(
    `INSERT INTO messages (tenant_id, message_id, session_id, credential_id, client_message_id, method, parts, trace_id, deadline_ms, state, created_at)
     VALUES ($1, $2, $3, 'cred_1', $2, 'message/send', '[]', '', 1000, $5, $4)`,
    [...written, state],
  );
  await database.query(
    `INSERT INTO dispatches (tenant_id, dispatch_id, message_id, instance_id, agent_type, deployment_mode, epoch, attempt, state, created_at, sent_at, ended_at)
     VALUES ($1, $2, $3, 'a', 'worker', 'connected', 1, 1, 'completed', $4, $4, $4)`,
    [tenantId, idAt('dsp', at), message_id, at],
  );
  await database.query(
    `INSERT INTO event_groups (tenant_id, group_id, session_id, message_id, events)
     VALUES ($1, $3, $2, $4, '[["message.received", {}]]')`,
    [tenantId, session_id, uuidBound(at.getTime()), uuidOf(message_id)],
  );
  await database.query(
    `WITH asked AS (
       INSERT INTO input_requests (tenant_id, request_id, message_id, session_id, kind, source, stage, title, prompt, digest, state, expires_at)
       VALUES ($1, $2, $2, $3, 'confirmation', 'agent', 'agent', '', '', 'd', 'resolved', now()))
     INSERT INTO input_decisions (tenant_id, approval_id, request_id, message_id, kind, source, resolution, principal_type, principal_id, voter,
         digest, comment, ip)
       VALUES ($1, $2, $2, $2, 'confirmation', 'agent', 'confirmed', 'credential', 'cred_1', 'credential:cred_1', 'd', 'private', '10.0.0.1')`,
    [tenantId, message_id, session_id],
  );
  await database.query(
    `WITH config AS (
       INSERT INTO push_configs (tenant_id, message_id, config_id, url, schemes, protocol_version) VALUES ($1, $2, 'c', '', '{}', '0.3'))
     INSERT INTO deliveries (tenant_id, delivery_id, event_type, session_id, message_id, config_id, url, receiver, status, max_attempts, ended_at)
     VALUES ($1, $2, 'task.completed', $3, $2, 'c', '', '', 'delivered', 3, now())`,
    [tenantId, message_id, session_id],
  );
  return { message_id, session_id };
}

/** All events so far get their positions, and the consumers of events read them. */
async function readEvents(): Promise<void> {
  await database.query('SELECT position_events(1000)');
  await database.query('UPDATE event_cursors SET position = event_head()');
}

function retention(
  days: { messages?: number; events?: number } = { messages: KEPT_DAYS, events: KEPT_DAYS },
): Retention {
  const db = database.db();
  const made = new Retention({
    url: database.url,
    db,
    log: createLogger({ level: 'silent' }),
    days: { messages: days.messages, events: days.events },
    settleTotals: (before) => settleTotals(db, before),
    rollUpUsage: () => rollUpAll(db),
  });
  cleanUp(() => made.stop());
  return made;
}

/** The months for which a table has partitions, of those in the past: how long ago. */
async function monthsOf(table: string): Promise<number[]> {
  const rows = await database.query<{ name: string }>('SELECT name FROM partitions_of($1)', [table]);
  const names = new Set(rows.map(({ name }) => name));
  return MONTHS_AGO.filter((ago) => names.has(`${table}_${month(ago).suffix}`));
}

/** Message ids in a table of what belongs to messages. */
async function rest(): Promise<Record<string, number>> {
  const tables = ['sessions', 'session_agents', 'input_requests', 'input_decisions', 'push_configs', 'deliveries'];
  const counts = tables.map((table) => `(SELECT count(*)::int FROM ${table}) AS ${table}`);
  const [row] = await database.query<Record<string, number>>(`SELECT ${counts.join()}`);
  return row ?? {};
}

beforeEach(async () => {
  database = await freshDatabase();
  tenantId = await insertTenant(database);
  await insertAgent(database, { tenant_id: tenantId, instance_id: 'a' });
  await pastPartitions();
});

test('whole months that are older than the retention go, with all that belongs to their messages', async () => {
  const old = await message(4);
  const recent = await message(1);
  expect(await rest()).toMatchObject({ sessions: 2, input_decisions: 2, deliveries: 2 });
  await readEvents();
  await retention().turn();
  for (const table of Object.keys(TABLES)) expect(await monthsOf(table)).toEqual([1]);
  const { input_decisions, ...others } = await rest();
  expect(new Set(Object.values(others))).toEqual(new Set([1]));
  const db = database.db();
  // Who decided, when and about what outlives the message; what they wrote and from where does not.
  expect(input_decisions).toBe(2);
  const [erased] = await getApprovals(db, callerOf(tenantId), 'message', old.message_id);
  expect(erased).toMatchObject({
    principal: { type: 'credential', id: 'cred_1' },
    resolution: 'confirmed',
    digest: 'd',
  });
  expect(erased).not.toHaveProperty('comment');
  expect(erased).not.toHaveProperty('ip');
  expect((await getApprovals(db, callerOf(tenantId), 'message', recent.message_id))[0]).toMatchObject({
    comment: 'private',
    ip: '10.0.0.1',
  });
  await expect(getMessage(db, callerOf(tenantId), old.message_id)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  await expect(readDetails(db, callerOf(tenantId), old.session_id)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  expect(await getMessage(db, callerOf(tenantId), recent.message_id)).toMatchObject({ state: 'completed' });
  expect(await dispatchTotals(db, tenantId, 'a')).toMatchObject({ dispatches_succeeded: 2 });
});

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
  const sums = await database.query('SELECT session_id, messages::int FROM usage_sessions');
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

test('a session is kept while it is active or has a message, and as long as messages are', async () => {
  const [active, shared, fresh] = [await message(5), await message(4), await message(3)];
  const newest = await message(1);
  await database.query("UPDATE sessions SET status = 'active', ended_at = NULL WHERE session_id = $1", [
    active.session_id,
  ]);
  await database.query('UPDATE messages SET session_id = $1 WHERE message_id = $2', [
    shared.session_id,
    newest.message_id,
  ]);
  await database.query('UPDATE sessions SET ended_at = now() WHERE session_id = $1', [fresh.session_id]);
  await retention().turn();
  const left = await database.query<{ session_id: string }>('SELECT session_id FROM sessions ORDER BY session_id');
  const kept = [active, shared, fresh, newest].map((row) => row.session_id);
  expect(left.map(({ session_id }) => session_id)).toEqual(kept);
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
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  cleanUp(() => client.end());
  const core = messageCore(database.db());
  const gateway = createGateway(core);
  const send = () =>
    gateway.accept(
      callerOf(tenantId),
      {
        message: {
          kind: 'message',
          role: 'user',
          messageId: crypto.randomUUID(),
          parts: [{ kind: 'text', text: 'hello' }],
        },
        metadata: { agent_type: 'worker' },
      },
      { method: 'message/send' },
    );
  await client.query('BEGIN');
  await client.query('SELECT count(*) FROM messages'); // uses every partition until it ends
  const other = retention({ messages: KEPT_DAYS });
  const turn = other.turn();
  const waiting = () =>
    database.query<{ query: string }>(
      "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'fleet_retention' AND wait_event_type = 'Lock'",
    );
  await until(async () => (await waiting()).some(({ query }) => query.includes('messages')), {
    what: 'retention to wait',
  });
  const sent = await Promise.all(Array.from({ length: 20 }, send));
  expect(new Set(sent.map(({ message_id }) => message_id)).size).toBe(20);
  const waiters = await database.query<{ name: string }>(
    `SELECT a.application_name AS name FROM pg_locks l JOIN pg_stat_activity a USING (pid)
      WHERE NOT l.granted AND a.datname = current_database()`,
  );
  expect(waiters.map(({ name }) => name)).toEqual(['fleet_retention']);
  await turn; // has given up for now
  await client.query('COMMIT');
  await send();
  await retention({ messages: KEPT_DAYS }).turn();
  expect(await monthsOf('messages')).toEqual([1]);
  const tables = await database.query('SELECT 1 FROM pg_class WHERE relname = $1', [`messages_${month(4).suffix}`]);
  expect(tables).toEqual([]);
});

test('a process that dies between the steps leaves nothing behind, and an archive of an operator stays', async () => {
  await message(4);
  const [dead, archive] = [`messages_${month(4).suffix}`, `messages_${month(3).suffix}`];
  await database.query(`COMMENT ON TABLE ${dead} IS ${MARK}`);
  for (const name of [dead, archive]) await database.query(`ALTER TABLE messages DETACH PARTITION ${name}`);
  await retention().turn();
  const left = await database.query('SELECT relname AS name FROM pg_class WHERE relname = ANY ($1)', [[dead, archive]]);
  expect(left).toEqual([{ name: archive }]);
  const { input_decisions, ...others } = await rest();
  expect(new Set(Object.values(others))).toEqual(new Set([0]));
  expect(input_decisions).toBe(1);
});

test('several processes drop each month once', async () => {
  await message(4);
  await readEvents();
  await Promise.all(Array.from({ length: 3 }, () => retention().turn()));
  for (const table of Object.keys(TABLES)) expect(await monthsOf(table)).toEqual([1]);
});
