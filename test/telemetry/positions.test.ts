import pg from 'pg';
import { expect, test } from 'vitest';
import { FUNCTION_SCHEMA } from '../../db/migrate.js';
import { openDb } from '../../db/pool.js';
import { newId } from '../../runtime/ids.js';
import { createLogger } from '../../runtime/logger.js';
import { consumeEvents, readEvents } from '../../telemetry/event-reader.js';
import { positionEvents } from '../../telemetry/event-sequencer.js';
import { cleanUp } from '../setup/clean-up.js';
import { insertTenant } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { gate, until } from '../setup/until.js';

const database = await freshDatabase();
const db = database.db();
const tenant_id = await insertTenant(database);

const INSERT = `INSERT INTO events (tenant_id, event_id, event_type, category, source, severity, payload)
  VALUES ($1, $2, 'tenant.created', 'tenant', 'test', 'info', '{}')`;

/** A connection of its own, to hold a transaction open. */
async function connect(): Promise<pg.Client> {
  const options = `-c search_path=${FUNCTION_SCHEMA},public`;
  const client = new pg.Client({ connectionString: database.url, options });
  client.on('error', () => undefined);
  await client.connect();
  cleanUp(() => client.end());
  return client;
}

async function writeEvent(
  client: pg.Client | null = null,
  eventId = newId('evt'),
  tenant = tenant_id,
): Promise<string> {
  if (client) await client.query(INSERT, [tenant, eventId]);
  else await database.query(INSERT, [tenant, eventId]);
  return eventId;
}

const read = (after: number, limit = 1_000, tenants?: string[]) =>
  db.system((tx) => readEvents(tx, { after, limit, ...(tenants && { tenants }) }));
const idsOf = async (after: number, limit?: number) =>
  (await read(after, limit)).events.map(({ record }) => record.event_id);
const head = async () => {
  while (((await positionEvents(db)) ?? 0) > 0);
  return (await read(0, 10_000)).cursor;
};

test('a transaction that begins first and commits last is read last, and keeps no other waiting', async () => {
  const start = await head();
  const slow = await connect();
  await slow.query('BEGIN');
  const late = await writeEvent(slow);
  const early = [await writeEvent(), await writeEvent()];
  await positionEvents(db);
  const before = await read(start);
  expect(before.events.map(({ record }) => record.event_id)).toEqual(early);
  await positionEvents(db);
  const next = await writeEvent();
  await positionEvents(db);
  expect(await idsOf(before.cursor)).toEqual([next]);
  await slow.query('COMMIT');
  await positionEvents(db);
  expect(await idsOf(before.cursor)).toEqual([next, late]);
  expect(await positionEvents(db)).toBe(0);
});
