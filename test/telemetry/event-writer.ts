import pg from 'pg';
import { FUNCTION_SCHEMA } from '../../db/migrate.js';
import type { Db } from '../../db/pool.js';
import { newEventId } from '../../runtime/ids.js';
import { readEvents } from '../../telemetry/event-reader.js';
import { positionEvents } from '../../telemetry/event-sequencer.js';
import { cleanUp } from '../setup/clean-up.js';

const INSERT = `SELECT record_event($1, $2, 'tenant.created', 'info', '', NULL, jsonb_build_object('tenant_id', $1::text, 'name', 'test'))`;

/** What can write an event: the database, or a connection in a transaction of its own. */
interface Writer {
  query(text: string, values: unknown[]): Promise<unknown>;
}

/** A connection that may hold a transaction open, closed after the test. */
export async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, options: `-c search_path=${FUNCTION_SCHEMA},public` });
  client.on('error', () => undefined);
  await client.connect();
  cleanUp(() => client.end());
  return client;
}

/** Writes an event of a tenant. @returns its id */
export async function writeEvent(writer: Writer, tenantId: string, eventId = newEventId()): Promise<string> {
  await writer.query(INSERT, [tenantId, eventId]);
  return eventId;
}

/** The ids of the events after a cursor, in their order. */
export async function idsAfter(db: Db, after: number, tenants?: string[]): Promise<string[]> {
  const page = await db.system((tx) => readEvents(tx, { after, limit: 10_000, ...(tenants && { tenants }) }));
  return page.events.map(({ record }) => record.event_id);
}

/** Gives positions to everything that is committed. @returns the cursor after it */
export async function positionAll(db: Db): Promise<number> {
  while ((await positionEvents(db)) !== 0);
  return (await db.system((tx) => readEvents(tx, { after: 0, limit: 10_000 }))).cursor;
}
