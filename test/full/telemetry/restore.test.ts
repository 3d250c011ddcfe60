import pg from 'pg';
import { expect, test } from 'vitest';
import { migrate } from '../../../db/migrate.js';
import { createLogger } from '../../../runtime/logger.js';
import { consumeEvents } from '../../../telemetry/event-reader.js';
import { positionEvents } from '../../../telemetry/event-sequencer.js';
import { cleanUp } from '../../setup/clean-up.js';
import { insertTenant } from '../../setup/core.js';
import { databaseAt, type FreshDatabase, freshDatabase } from '../../setup/database.js';
import { emptyCluster } from '../../setup/postgres-dump.js';
import { connect, idsAfter, positionAll, writeEvent } from '../../telemetry/event-writer.js';

/** A migrated database in a cluster of its own, whose transaction ids begin anew. */
async function newCluster(): Promise<FreshDatabase> {
  const url = (await emptyCluster('restored')).urlOf('postgres');
  await migrate(url, createLogger({ level: 'error' }));
  const database = databaseAt(url, async () => undefined);
  cleanUp(database.drop);
  return database;
}

/** Copies every row, as `pg_dump` and `pg_restore` do: all tables with one snapshot, columns as they are. */
async function copyAll(from: FreshDatabase, to: pg.Client): Promise<void> {
  const source = await connect(from.url);
  await source.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
  const { rows } = await source.query<{ name: string; columns: string }>(
    `SELECT c.relname AS name, (SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
        WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '') AS columns
      FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
       AND c.relname NOT IN ('schema_migrations', 'function_schemas')`,
  );
  const tables = rows.map(({ name }) => pg.escapeIdentifier(name));
  await to.query(`BEGIN; SET LOCAL session_replication_role = replica; TRUNCATE ${tables}`);
  for (const [place, table] of tables.entries()) {
    const columns = rows[place]?.columns;
    const content = await source.query<{ row: string }>(`SELECT t::text AS row FROM ${table} t`);
    const insert = `INSERT INTO ${table} (${columns}) OVERRIDING SYSTEM VALUE
      SELECT ${columns} FROM unnest($1::text[]) r CROSS JOIN LATERAL (SELECT (r::${table}).*) AS row`;
    await to.query(insert, [content.rows.map(({ row }) => row)]);
  }
  await to.query('COMMIT');
  await source.query('COMMIT');
}

const newestId = async (client: pg.Client) =>
  BigInt((await client.query('SELECT pg_current_xact_id()::text AS id')).rows[0].id);

test('a dump that is restored into a new cluster keeps its cursors, and they go on', async () => {
  const old = await freshDatabase();
  const tenantId = await insertTenant(old);
  const oldDb = old.db();
  const consumer = { consumer: 'relay', limit: 100 };
  const takeAll = async (_tx: unknown, events: unknown[]) => events.length;
  await consumeEvents(oldDb, consumer, takeAll);
  const slow = await connect(old.url);
  await slow.query('BEGIN');
  const late = await writeEvent(slow, tenantId);
  const read = [await writeEvent(old, tenantId), await writeEvent(old, tenantId)];
  const cursor = await positionAll(oldDb);
  expect(await consumeEvents(oldDb, consumer, takeAll)).toBe(2);
  await slow.query('COMMIT');
  const unpositioned = [late, await writeEvent(old, tenantId)];
  const oldest = await newestId(slow);

  const restored = await newCluster();
  const db = restored.db();
  const client = await connect(restored.url);
  await copyAll(old, client);
  expect(await newestId(client)).toBeLessThan(oldest);
  const written = [await writeEvent(client, tenantId)]; // before the first batch
  expect(await positionEvents(db, 2)).toBe(2);
  expect(await positionEvents(db, 2)).toBe(1);
  expect(await idsAfter(db, cursor)).toEqual([...unpositioned, ...written]);
  expect(await idsAfter(db, 0)).toEqual([...read, ...unpositioned, ...written]);

  // The new cluster comes to the transaction ids of the old one, beside an open transaction that is older.
  const open = await connect(restored.url);
  await open.query('BEGIN');
  const last = await writeEvent(open, tenantId);
  written.push(await writeEvent(client, tenantId));
  expect(await positionEvents(db)).toBe(1);
  const ahead = Number(oldest - (await newestId(client))) + 10;
  await client.query(`DO $$ BEGIN FOR n IN 1..${ahead} LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$`);
  written.push(await writeEvent(client, tenantId));
  await open.query('COMMIT');
  await positionAll(db);
  expect(await idsAfter(db, cursor)).toEqual([...unpositioned, ...written.slice(0, 2), last, ...written.slice(2)]);
  const handed: string[] = [];
  await consumeEvents(db, consumer, async (_tx, events) => {
    handed.push(...events.map(({ record }) => record.event_id));
    return events.length;
  });
  expect(handed).toEqual(await idsAfter(db, cursor));
});
