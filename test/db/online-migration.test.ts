import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { expect, inject, onTestFinished, test } from 'vitest';
import { createLogger } from '../../runtime/logger.js';
import { freshDatabase } from '../setup/database.js';
import { thisBuildWith } from '../setup/platform/releases.js';
import { until } from '../setup/until.js';

const NAME = '9999_online.online.sql';
/** As docs/development.md asks for: what died half made is dropped first. */
const SQL = `-- An index of a table that is written all the time; a comment with a ; in it.
DROP INDEX CONCURRENTLY IF EXISTS tenants_online;
CREATE INDEX CONCURRENTLY tenants_online ON tenants (name);

-- And what it is for.
COMMENT ON INDEX tenants_online IS 'made
online';
`;

const database = await freshDatabase();
const log = createLogger({ level: 'silent' });
const path = thisBuildWith(join(inject('runDir'), 'online-release'), NAME, SQL);
const { migrate } = (await import(pathToFileURL(path).href)) as typeof import('../../db/migrate.js');

/** Whether the index can be used; undefined where there is none. */
const isValid = () =>
  database.value("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('public.tenants_online')");
const isRecorded = async () =>
  (await database.query('SELECT 1 FROM schema_migrations WHERE name = $1', [NAME])).length === 1;

test('an online migration holds up nobody, and one that dies half-way is repeated by the next start', async () => {
  const holder = new pg.Client({ connectionString: database.url });
  await holder.connect();
  onTestFinished(() => holder.end());
  await holder.query("BEGIN; INSERT INTO tenants (tenant_id, name) VALUES ('ten_held', 'held')");
  const died = migrate(database.url, log).then(
    () => 'migrated',
    () => 'died',
  );
  const migrating = await until(
    () =>
      database.value<number>(
        `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%CREATE INDEX CONCURRENTLY%'`,
      ),
    { what: 'the index to wait for the open transaction' },
  );
  await database.query("INSERT INTO tenants (tenant_id, name) VALUES ('ten_beside', 'beside')");
  await database.query('SELECT pg_terminate_backend($1)', [migrating]);
  expect(await died).toBe('died');
  expect([await isValid(), await isRecorded()]).toEqual([false, false]);
  await holder.query('COMMIT');
  expect(await migrate(database.url, log)).toEqual({ applied: [NAME] });
  expect([await isValid(), await isRecorded()]).toEqual([true, true]);
  expect(await database.query("SELECT obj_description('public.tenants_online'::regclass) AS text")).toEqual([
    { text: 'made\nonline' },
  ]);
  expect(await migrate(database.url, log)).toEqual({ applied: [] });
});
