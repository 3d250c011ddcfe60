import { expect, test } from 'vitest';
import { checkSecretKey, SecretKeyMismatch } from '../../auth/secret-check.js';
import { migrate } from '../../db/migrate.js';
import { openDb } from '../../db/pool.js';
import { createLogger } from '../../runtime/logger.js';
import { createSecrets } from '../../runtime/secrets.js';
import { freshDatabase } from '../setup/database.js';

const log = createLogger({ level: 'silent' });
const database = await freshDatabase();

async function emptied(): Promise<void> {
  await database.query('DROP SCHEMA public CASCADE');
  await database.query('CREATE SCHEMA public');
  await database.query('GRANT USAGE ON SCHEMA public TO PUBLIC');
}

test('a migrated database is left as it is', async () => {
  expect(await migrate(database.url, log)).toEqual({ applied: [] });
});

test('of several processes that migrate at once one does it', async () => {
  await emptied();
  const results = await Promise.all(Array.from({ length: 4 }, () => migrate(database.url, log)));
  const applied = results.flatMap((result) => result.applied);
  expect(applied).toEqual([...new Set(applied)]);
  const rows = await database.query<{ name: string }>('SELECT name FROM schema_migrations ORDER BY name');
  expect(rows.map(({ name }) => name)).toEqual(applied);
});

test('a file that was changed after it was applied is refused by name', async () => {
  await database.query("UPDATE schema_migrations SET sha256 = 'x' WHERE name = '0001_platform.sql'");
  await expect(migrate(database.url, log)).rejects.toThrow(/0001_platform\.sql was changed after it was applied/);
});

test('a file that fails leaves nothing behind', async () => {
  await emptied();
  await database.query('CREATE TABLE events (wrong int)');
  await expect(migrate(database.url, log)).rejects.toThrow(/migration 0001_platform\.sql failed: .*events/);
  expect(await database.query('SELECT name FROM schema_migrations')).toEqual([]);
  expect(await database.query("SELECT 1 FROM pg_tables WHERE tablename = 'tenants'")).toEqual([]);
});

test('a database that is ahead of this build is used as it is', async () => {
  await emptied();
  await migrate(database.url, log);
  await database.query("INSERT INTO schema_migrations (name, sha256) VALUES ('9999_later.sql', 'x')");
  expect(await migrate(database.url, log)).toEqual({ applied: [] });
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
