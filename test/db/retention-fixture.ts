import { beforeEach } from 'vitest';
import { settleTotals } from '../../agents/agent-connections.js';
import { Retention, type RetentionOptions } from '../../db/retention.js';
import { uuidBound, uuidOf } from '../../runtime/ids.js';
import { createLogger } from '../../runtime/logger.js';
import { rollUpAll } from '../../usage/roll-up.js';
import { cleanUp } from '../setup/clean-up.js';
import { insertAgent, insertTenant } from '../setup/core.js';
import { type FreshDatabase, freshDatabase } from '../setup/database.js';

const DAY_MS = 86_400_000;
export const TABLES = { messages: 'msg', dispatches: 'dsp', event_groups: null, event_positions: null };
/** Partitions of the past. The newest is kept for its age, the others go. */
export const MONTHS_AGO = [5, 4, 3, 2, 1];
export const KEPT_DAYS = Math.floor((Date.now() - Date.parse(month(1).first)) / DAY_MS);
/** What retention writes on a partition before it detaches it. */
export const MARK = "'detached by retention, to be dropped'";

export let database: FreshDatabase;
export let tenantId: string;

/** The name and the first day of a month. */
export function month(ago: number): { suffix: string; first: string; middle: Date } {
  const today = new Date();
  const day = new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() - ago, 1));
  const first = day.toISOString().slice(0, 10);
  return { suffix: first.slice(0, 7).replace('-', '_'), first, middle: new Date(day.getTime() + 14 * DAY_MS) };
}

/** An id that was made at a time. */
export function idAt(prefix: string, at: Date, place = 0): string {
  const hex = at.getTime().toString(16).padStart(12, '0');
  return `${prefix}_${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-${String(place).padStart(12, '0')}`;
}

/** Partitions from the oldest of those months on, as a platform has them that has run for so long. */
async function pastPartitions(): Promise<void> {
  const names = await database.column<string>(
    "SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r' AND relnamespace = 'public'::regnamespace",
  );
  await database.query(`DROP TABLE ${names.join()}`);
  const [oldest = 0] = MONTHS_AGO;
  for (const [table, prefix] of Object.entries(TABLES)) {
    const bound = `(SELECT id_bound(${prefix && `'${prefix}'`}, '${month(oldest - 1).first}'))`;
    const end = await database.value<string>(`SELECT ${bound}`);
    await database.query(
      `CREATE TABLE public.${table}_${month(oldest).suffix} PARTITION OF ${table} FOR VALUES FROM (MINVALUE) TO ('${end}')`,
    );
  }
  await database.query('SELECT create_partitions()');
}

interface Written {
  message_id: string;
  session_id: string;
}

/** A message that was answered in the middle of a month, with its session, dispatch, event, question and push configuration. */
export async function message(ago: number, state = 'completed'): Promise<Written> {
  const at = month(ago).middle;
  const message_id = idAt('msg', at);
  const session_id = idAt('ses', at);
  const written = [tenantId, message_id, session_id, at];
  await database.query(
    `INSERT INTO sessions (tenant_id, session_id, explicit, status, idle_timeout_seconds, created_at, ended_at)
     VALUES ($1, $2, false, 'expired', 60, $3, $3)`,
    [tenantId, session_id, at],
  );
  await database.query(
    "INSERT INTO session_agents (tenant_id, session_id, agent_type, instance_id, join_reason) VALUES ($1, $2, 'worker', 'a', 'routed')",
    [tenantId, session_id],
  );
  await database.query(
    `INSERT INTO messages (tenant_id, message_id, session_id, session_uuid, credential_id, client_message_id, method, parts, trace_id, deadline_ms, state, created_at)
     VALUES ($1, $2, $3, session_uuid(uuid_of($1), $3), 'cred_1', $2, 'message/send', '[]', '', 1000, $5, $4)`,
    [...written, state],
  );
  await database.query(
    `INSERT INTO dispatches (tenant_id, dispatch_id, message_id, instance_id, agent_type, deployment_mode, epoch, attempt, state, created_at, sent_at, ended_at)
     VALUES ($1, $2, $3, 'a', 'worker', 'connected', 1, 1, 'completed', $4, $4, $4)`,
    [tenantId, idAt('dsp', at), message_id, at],
  );
  await database.query(
    `INSERT INTO event_groups (tenant_id, group_id, session_uuid, session_name, message_id, types, events)
     VALUES (uuid_of($1), $3, session_uuid(uuid_of($1), $2), session_name($2), $4, event_bit('message.received'), '[{}]')`,
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
export async function readEvents(): Promise<void> {
  await database.query('SELECT position_events(1000)');
  await database.query('UPDATE event_cursors SET position = event_head()');
}

export const BOTH: { messages?: number; events?: number } = { messages: KEPT_DAYS, events: KEPT_DAYS };

export function retention(days = BOTH, over: Partial<RetentionOptions> = {}): Retention {
  const db = over.db ?? database.db();
  const made = new Retention({
    url: database.url,
    log: createLogger({ level: 'silent' }),
    days: { messages: days.messages, events: days.events },
    settleTotals: (before) => settleTotals(db, before),
    rollUpUsage: () => rollUpAll(db),
    ...over,
    db,
  });
  cleanUp(() => made.stop());
  return made;
}

/** The months for which a table has partitions, of those in the past: how long ago. */
export async function monthsOf(table: string): Promise<number[]> {
  const names = new Set(await database.column<string>('SELECT name FROM partitions_of($1)', [table]));
  return MONTHS_AGO.filter((ago) => names.has(`${table}_${month(ago).suffix}`));
}

/** Message ids in a table of what belongs to messages. */
export async function rest(): Promise<Record<string, number>> {
  const tables = ['sessions', 'session_agents', 'input_requests', 'input_decisions', 'push_configs', 'deliveries'];
  const counts = tables.map((table) => `(SELECT count(*)::int FROM ${table}) AS ${table}`);
  const [row] = await database.query<Record<string, number>>(`SELECT ${counts.join()}`);
  return row ?? {};
}

/** A database with months of the past for each test of the file. */
export function usePastMonths(): void {
  beforeEach(async () => {
    database = await freshDatabase();
    tenantId = await insertTenant(database);
    await insertAgent(database, { tenant_id: tenantId, instance_id: 'a' });
    await pastPartitions();
  });
}
