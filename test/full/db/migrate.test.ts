import { expect, test } from 'vitest';
import { maintainTables } from '../../../db/maintenance.js';
import { FUNCTION_SCHEMA, migrate, refuseOldServer } from '../../../db/migrate.js';
import { openDb } from '../../../db/pool.js';
import { createLogger } from '../../../runtime/logger.js';
import { freshDatabase } from '../../setup/database.js';
import { until } from '../../setup/until.js';
import { connect } from '../../telemetry/event-writer.js';

const log = createLogger({ level: 'silent' });
const database = await freshDatabase();

async function emptied(): Promise<void> {
  await database.query('DROP SCHEMA public CASCADE');
  await database.query(`DROP SCHEMA IF EXISTS ${FUNCTION_SCHEMA}, fleet_before, fleet_oldest CASCADE`);
  await database.query('CREATE SCHEMA public');
  await database.query('GRANT USAGE ON SCHEMA public TO PUBLIC');
}

async function migrated(): Promise<void> {
  await emptied();
  await migrate(database.url, log);
}

/** As before this build came to the database. */
async function withoutFunctions(): Promise<void> {
  await database.query(`DROP SCHEMA ${FUNCTION_SCHEMA} CASCADE`);
  await database.query('DELETE FROM function_schemas WHERE name = $1', [FUNCTION_SCHEMA]);
}

test.each([
  ['140022', 'The server of DATABASE_URL is Postgres 14, and the platform needs 15 or newer'],
  ['90624', 'Postgres 9, and'],
  ['150000', null],
  ['190001', null],
])('a server that is too old is refused before the first migration: %s', async (version, refusal) => {
  const query = async () => ({ rows: [{ server_version_num: version }] });
  const checked = refuseOldServer({ query } as unknown as Parameters<typeof refuseOldServer>[0]);
  if (refusal === null) await expect(checked).resolves.toBeUndefined();
  else await expect(checked).rejects.toThrow(refusal);
});

test('a file that fails leaves nothing behind', async () => {
  await emptied();
  await database.query('CREATE TABLE credentials (wrong int)');
  await expect(migrate(database.url, log)).rejects.toThrow(/migration 0001_tenants\.sql failed: .*credentials/);
  expect(await database.query('SELECT name FROM schema_migrations')).toEqual([]);
  expect(await database.query("SELECT 1 FROM pg_tables WHERE tablename = 'tenants'")).toEqual([]);
});

test('a database that is ahead of this build is used as it is', async () => {
  await migrated();
  await database.query("INSERT INTO schema_migrations (name, sha256) VALUES ('9999_later.sql', 'x')");
  expect(await migrate(database.url, log)).toEqual({ applied: [] });
});

test.each(['0001_platform.sql', '0001_baseline.sql'])(
  'a database that began with %s is refused untouched',
  async (first) => {
    await emptied();
    await database.query('CREATE TABLE schema_migrations (name text PRIMARY KEY, sha256 text NOT NULL)');
    await database.query(`INSERT INTO schema_migrations VALUES ('${first}', 'x')`);
    await expect(migrate(database.url, log)).rejects.toThrow(/development version .* use an empty one/);
    expect(await database.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")).toEqual([
      { tablename: 'schema_migrations' },
    ]);
  },
);

test('two releases have their functions side by side, and those of the release before last go', async () => {
  await migrated();
  const releases = ['fleet_oldest', 'fleet_before'];
  for (const [index, name] of releases.entries()) {
    await database.query(`CREATE SCHEMA ${name}`);
    await database.query("INSERT INTO function_schemas VALUES ($1, now() + $2 * interval '1 s')", [name, index - 10]);
  }
  const schemas = () => database.column("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'fleet\\_%' ORDER BY 1");
  await migrate(database.url, log);
  expect(await schemas()).toEqual([FUNCTION_SCHEMA, ...releases].sort());
  await withoutFunctions();
  await migrate(database.url, log);
  expect(await schemas()).toEqual([FUNCTION_SCHEMA, 'fleet_before'].sort());
});

test('a change that waits for a lock lets others have their turn, and is made once the lock is free', async () => {
  await migrated();
  await database.query('CREATE SCHEMA fleet_oldest CREATE VIEW held AS SELECT 1 AS one');
  await database.query("INSERT INTO function_schemas VALUES ('fleet_oldest', '-infinity'), ('fleet_before', now())");
  await withoutFunctions();
  const holder = await connect(database.url);
  await holder.query('BEGIN');
  await holder.query('SELECT * FROM fleet_oldest.held');
  const waits: object[] = [];
  const migrating = migrate(database.url, { info: () => undefined, warn: (fields: object) => waits.push(fields) });
  await until(() => waits.length > 0, { what: 'the migration to give up its place' });
  expect(await database.query('SELECT * FROM fleet_oldest.held')).toEqual([{ one: 1 }]);
  await holder.query('COMMIT');
  await migrating;
  expect(waits).toEqual([{ step: 'dropping fleet_oldest' }]);
  expect(await database.query("SELECT 1 FROM pg_namespace WHERE nspname = 'fleet_oldest'")).toEqual([]);
});

test('no release takes rows with it when its functions are dropped', async () => {
  await migrated();
  const tables = await database.query<{ schema: string }>(
    "SELECT DISTINCT relnamespace::regnamespace::text AS schema FROM pg_class WHERE relispartition OR relkind IN ('r', 'p')" +
      " AND relnamespace::regnamespace::text LIKE 'fleet\\_%'",
  );
  expect(tables).toEqual([{ schema: 'public' }]);
  await database.query("UPDATE function_schemas SET applied_at = applied_at - interval '1 h'");
  await database.query('CREATE SCHEMA fleet_before');
  await database.query("INSERT INTO function_schemas VALUES ('fleet_before', now())");
  await migrate(database.url, log); // a roll-back: this build runs again, and is the newest
  const newest = await database.query('SELECT name FROM function_schemas ORDER BY applied_at DESC LIMIT 1');
  expect(newest).toEqual([{ name: FUNCTION_SCHEMA }]);
  await database.query('CREATE SCHEMA fleet_oldest CREATE TABLE kept (id integer)');
  await database.query("INSERT INTO function_schemas VALUES ('fleet_oldest', '-infinity')");
  await withoutFunctions();
  await expect(migrate(database.url, log)).rejects.toThrow('fleet_oldest of an old release holds tables');
});

test('partitions follow each other without a gap after a long stop', async () => {
  await migrated();
  const partitions = () =>
    database.column<string>(
      "SELECT relname FROM pg_class WHERE relispartition AND relname ~ '^dispatches_\\d{4}_\\d\\d$' ORDER BY 1",
    );
  const before = await partitions();
  await database.query(`DROP TABLE ${before.slice(1).join()}`);
  await database.query('SELECT create_partitions(2)');
  expect(await partitions()).toEqual(before);
});

test('an older build whose functions are gone is refused', async () => {
  await migrated();
  await database.query("INSERT INTO schema_migrations (name, sha256) VALUES ('9999_later.sql', 'x')");
  await withoutFunctions();
  await expect(migrate(database.url, log)).rejects.toThrow(/start a newer build/);
});

test('maintenance deletes expired idempotency keys and keeps the others', async () => {
  await migrated();
  await database.query(`INSERT INTO idempotency_keys (idempotency_key, tenant_id, message_id, content_hash, expires_at)
    SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), now() + CASE WHEN n <= 12000 THEN interval '-1 s' ELSE interval '1 h' END FROM generate_series(1, 12100) AS n`);
  const db = openDb({ url: database.url, log });
  await maintainTables(db);
  await db.close();
  expect(await database.value('SELECT count(*)::int FROM idempotency_keys')).toBe(100);
});
