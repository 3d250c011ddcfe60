import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import pg from 'pg';
import { errorMessage } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';

const FOLDER = new URL('./migrations/', import.meta.url);
/** Any constant will do; it only has to be the same in every process that migrates. */
const LOCK = 7_301_846_225;

const CREATE_TABLE = `
  CREATE TABLE IF NOT EXISTS schema_migrations (
    name       text PRIMARY KEY,
    sha256     text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
  )`;

interface Migration {
  name: string;
  sha256: string;
  sql: string;
}

async function readMigrations(): Promise<Migration[]> {
  const names = (await readdir(FOLDER)).filter((name) => name.endsWith('.sql')).sort();
  return Promise.all(
    names.map(async (name) => {
      const sql = await readFile(new URL(name, FOLDER), 'utf8');
      return { name, sql, sha256: createHash('sha256').update(sql).digest('hex') };
    }),
  );
}

/** The migrations that are still to be applied. Throws when an applied one has changed, or would come before an applied one. */
function pendingOf(migrations: Migration[], applied: Map<string, string>): Migration[] {
  const changed = migrations.find(({ name, sha256 }) => (applied.get(name) ?? sha256) !== sha256);
  if (changed) {
    throw new Error(
      `migration ${changed.name} was changed after it was applied to this database: restore the file and put the change into a new one`,
    );
  }
  const pending = migrations.filter(({ name }) => !applied.has(name));
  const newest = [...applied.keys()].sort().at(-1) ?? '';
  const late = pending.find(({ name }) => name < newest);
  if (late)
    throw new Error(`migration ${late.name} sorts before ${newest}, which is applied already: give it a later name`);
  return pending;
}

async function apply(client: pg.Client, { name, sql, sha256 }: Migration): Promise<void> {
  try {
    await client.query('BEGIN');
    await client.query(sql);
    await client.query('INSERT INTO schema_migrations (name, sha256) VALUES ($1, $2)', [name, sha256]);
    await client.query('COMMIT');
  } catch (error) {
    throw new Error(`migration ${name} failed: ${errorMessage(error)}`, { cause: error });
  }
}

/**
 * Brings the database to the schema of this build: forward only, each file in a transaction of its own, one process at a
 * time. A database that is ahead of this build is left as it is.
 * @param url a login that may create tables and roles
 * @returns the names of the files applied now
 * @throws Error when a file that was applied has changed, or one fails
 */
export async function migrate(url: string, log: Pick<Logger, 'info' | 'warn'>): Promise<{ applied: string[] }> {
  const migrations = await readMigrations();
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: 10_000,
    application_name: 'fleet_migrate',
  });
  client.on('error', (error) => log.warn({ err: error.message }, 'connection lost while migrating'));
  await client.connect();
  try {
    await client.query('SELECT pg_advisory_lock($1)', [LOCK]);
    await client.query(CREATE_TABLE);
    const { rows } = await client.query<{ name: string; sha256: string }>('SELECT name, sha256 FROM schema_migrations');
    const applied = new Map(rows.map((row) => [row.name, row.sha256]));
    const pending = pendingOf(migrations, applied);
    const ahead = [...applied.keys()].filter((name) => !migrations.some((migration) => migration.name === name));
    if (ahead.length > 0) log.warn({ ahead }, 'the database was migrated by a newer build');
    for (const migration of pending) {
      await apply(client, migration);
      log.info({ migration: migration.name }, 'migration applied');
    }
    return { applied: pending.map(({ name }) => name) };
  } finally {
    await client.end(); // the lock belongs to the connection
  }
}
