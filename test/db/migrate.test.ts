import { expect, test } from 'vitest';
import { checkSecretKey, SecretKeyMismatch } from '../../auth/secret-check.js';
import { FUNCTION_SCHEMA, migrate } from '../../db/migrate.js';
import { openDb } from '../../db/pool.js';
import { createLogger } from '../../runtime/logger.js';
import { createSecrets } from '../../runtime/secrets.js';
import { freshDatabase } from '../setup/database.js';

const log = createLogger({ level: 'silent' });
const database = await freshDatabase();

async function emptied(): Promise<void> {
  await database.query('DROP SCHEMA public CASCADE');
  await database.query(`DROP SCHEMA IF EXISTS ${FUNCTION_SCHEMA}, fleet_before, fleet_oldest CASCADE`);
  await database.query('CREATE SCHEMA public');
  await database.query('GRANT USAGE ON SCHEMA public TO PUBLIC');
}

test('of several processes that migrate at once one does it', async () => {
  await emptied();
  const results = await Promise.all(Array.from({ length: 4 }, () => migrate(database.url, log)));
  const applied = results.flatMap((result) => result.applied);
  expect(applied).toEqual([...new Set(applied)]);
  expect(await database.column('SELECT name FROM schema_migrations ORDER BY name')).toEqual(applied);
});

test('a file that was changed after it was applied is refused by name', async () => {
  await database.query("UPDATE schema_migrations SET sha256 = 'x' WHERE name = '0001_tenants.sql'");
  await expect(migrate(database.url, log)).rejects.toThrow(/0001_tenants\.sql was changed after it was applied/);
});

test('partitions are there for the coming months and are attached without a gap', async () => {
  const bounds = await database.column<string>(
    `SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relispartition AND relkind = 'r' AND relname LIKE 'messages_%' ORDER BY relname`,
  );
  const edges = bounds.map((bound) => /FROM \((.*)\) TO \((.*)\)/.exec(bound));
  expect(edges.length).toBe(3);
  expect(edges[0]?.[1]).toBe('MINVALUE');
  expect(edges.slice(1).map((edge) => edge?.[1])).toEqual(edges.slice(0, -1).map((edge) => edge?.[2]));
  await database.query('SELECT create_partitions(4)');
  const more = await database.query(
    "SELECT 1 FROM pg_class WHERE relispartition AND relkind = 'r' AND relname LIKE 'event_groups_%'",
  );
  expect(more.length).toBe(5);
});

test('a node whose key does not fit the database refuses to start', async () => {
  const db = openDb({ url: database.url, log });
  const keyOf = (byte: number) => createSecrets(Buffer.alloc(32, byte).toString('base64'));
  try {
    await Promise.all([checkSecretKey(db, keyOf(1)), checkSecretKey(db, keyOf(1))]);
    await expect(checkSecretKey(db, keyOf(2))).rejects.toThrow(SecretKeyMismatch);
    await checkSecretKey(db, keyOf(1));
  } finally {
    await db.close();
  }
});
