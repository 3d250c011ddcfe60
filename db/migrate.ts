import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { errorMessage } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';

const MIGRATIONS = new URL('./migrations/', import.meta.url);
const FUNCTIONS = new URL('./functions/', import.meta.url);
/** The same version as in README.md. */
const POSTGRES_MIN = 15;
/** The key of the advisory lock of all processes that migrate. */
const LOCK = 7_301_846_225;
/** How long a change waits for the lock of a table, while requests wait behind it, and how long it then pauses so that they have their turn. */
const LOCK_WAIT_MS = 1_000;
const LOCK_PAUSE_MS = 1_000;
/** Tries until a change fails, and with it the start: ten minutes. */
const TRIES_MAX = 300;
/** How often a process looks whether another one has migrated. */
const TURN_POLL_MS = 100;
/** The end of the names of migrations that run without a transaction. */
const ONLINE = '.online.sql';
/** Postgres error code. */
const LOCK_NOT_AVAILABLE = '55P03';
/** The first migrations of development versions: their databases are not upgraded. */
const UNRELEASED = ['0001_platform.sql', '0001_baseline.sql'];
/** Function schemas that are kept: of this release and of the one before. */
const KEPT_SCHEMAS = 2;

const CREATE_TABLES = `
  CREATE TABLE IF NOT EXISTS schema_migrations (
    name       text PRIMARY KEY,
    sha256     text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
  );
  CREATE TABLE IF NOT EXISTS function_schemas (
    name       text PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
  )`;

/** The SQL files of a folder and of those below it, in the order of their paths. */
function readSql(folder: URL) {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) => path.replaceAll('\\', '/'));
  const names = paths.filter((path) => path.endsWith('.sql'));
  return names.sort().map((name) => {
    const sql = readFileSync(new URL(name, folder), 'utf8');
    return { name, sql, sha256: createHash('sha256').update(sql).digest('hex') };
  });
}

type Migration = ReturnType<typeof readSql>[number];

const functions = readSql(FUNCTIONS);
const digest = createHash('sha256').update(functions.map(({ sha256 }) => sha256).join());

/** The Postgres schema of this build's functions. It is named by their content, so that two releases can run side by side. */
export const FUNCTION_SCHEMA = `fleet_${digest.digest('hex').slice(0, 12)}`;

/** The migrations that are not applied yet. Throws when an applied one has changed, or a new one sorts before an applied one. */
function pendingOf(migrations: ReturnType<typeof readSql>, applied: Map<string, string>) {
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

/** A process that migrates. */
interface Migrating {
  client: pg.Client;
  log: Pick<Logger, 'info' | 'warn'>;
}

/** One try. @returns false when another transaction held a lock for too long: nothing was changed */
async function tryOnce(client: pg.Client, statements: [string, unknown[]?][]): Promise<boolean> {
  try {
    await client.query(`BEGIN; SET LOCAL lock_timeout = ${LOCK_WAIT_MS}`);
    for (const [sql, values] of statements) await client.query(sql, values);
    await client.query('COMMIT');
    return true;
  } catch (error) {
    if ((error as { code?: string }).code !== LOCK_NOT_AVAILABLE) throw error;
    await client.query('ROLLBACK');
    return false;
  }
}

/**
 * Runs statements in one transaction. Requests wait behind a change of a table that waits for its lock, so it gives up soon and is tried
 * again after a pause in which they have their turn.
 */
async function inTransaction(
  { client, log }: Migrating,
  what: string,
  statements: [string, unknown[]?][],
): Promise<void> {
  try {
    for (let tries = 1; !(await tryOnce(client, statements)); tries++) {
      if (tries === TRIES_MAX) throw new Error('a transaction holds a lock that it needs: end it, and start again');
      if (tries === 1) log.warn({ step: what }, 'a migration waits for the lock of a transaction; it is tried again');
      await delay(LOCK_PAUSE_MS);
    }
  } catch (error) {
    throw new Error(`${what} failed: ${errorMessage(error)}`, { cause: error });
  }
}

/** Refuses a server that is too old for the migrations, before any of them. */
export async function refuseOldServer(client: Pick<pg.Client, 'query'>): Promise<void> {
  const { rows } = await client.query('SHOW server_version_num');
  const major = Math.floor(Number(rows[0].server_version_num) / 10_000);
  if (major >= POSTGRES_MIN) return;
  throw new Error(
    `The server of DATABASE_URL is Postgres ${major}, and the platform needs ${POSTGRES_MIN} or newer: upgrade it (pg_upgrade), or set DATABASE_URL to another one.`,
  );
}

/** Refuses the database of a development version, without a change to it. */
async function refuseOld(client: pg.Client): Promise<void> {
  const { rows } = await client.query("SELECT to_regclass('schema_migrations') IS NOT NULL AS is_there");
  if (!rows[0].is_there) return;
  const old = await client.query('SELECT 1 FROM schema_migrations WHERE name = ANY ($1)', [UNRELEASED]);
  if (old.rows.length > 0) {
    throw new Error(
      'this database was made by a development version before the first release and cannot be upgraded: use an empty one (without DATABASE_URL, delete the data directory)',
    );
  }
}

/** Refuses to drop a schema that has tables, because only function schemas may be dropped. */
async function refuseTables(client: pg.Client, schema: string): Promise<void> {
  const { rows } = await client.query(
    'SELECT 1 FROM pg_tables WHERE schemaname = $1 UNION ALL SELECT 1 FROM pg_matviews WHERE schemaname = $1',
    [schema],
  );
  if (rows.length > 0) throw new Error(`the schema ${schema} of an old release holds tables and is not dropped`);
}

/**
 * Creates the schema of this build's functions, once. An older build that starts beside a newer one finds its own schema; if that was
 * dropped and the tables are newer, the build is refused.
 */
async function applyFunctions(migrating: Migrating, isAhead: boolean): Promise<void> {
  const { client, log } = migrating;
  // Each start renews the time, so that after a roll-back the running release's schema is among the newest again.
  const renew = 'UPDATE function_schemas SET applied_at = clock_timestamp() WHERE name = $1';
  if ((await client.query(renew, [FUNCTION_SCHEMA])).rowCount) return;
  if (isAhead) throw new Error('this build is older than the database by more than one release: start a newer build');
  await refuseTables(client, FUNCTION_SCHEMA);
  const body = functions.map(({ sql }) => sql).join('\n');
  await inTransaction(migrating, 'applying the functions', [
    [`DROP SCHEMA IF EXISTS ${FUNCTION_SCHEMA} CASCADE`],
    [`CREATE SCHEMA ${FUNCTION_SCHEMA}`],
    [`GRANT USAGE ON SCHEMA ${FUNCTION_SCHEMA} TO fleet_app, fleet_system`],
    [`SET LOCAL search_path = ${FUNCTION_SCHEMA}, public, pg_temp; SET LOCAL check_function_bodies = off; ${body}`],
    ['INSERT INTO function_schemas (name) VALUES ($1)', [FUNCTION_SCHEMA]],
  ]);
  log.info({ schema: FUNCTION_SCHEMA }, 'database functions applied');
  const old = await client.query<{ name: string }>(
    `SELECT name FROM function_schemas ORDER BY applied_at DESC OFFSET ${KEPT_SCHEMAS}`,
  );
  for (const { name } of old.rows) {
    await refuseTables(client, name);
    await inTransaction(migrating, `dropping ${name}`, [
      [`DROP SCHEMA IF EXISTS ${pg.escapeIdentifier(name)} CASCADE`],
      ['DELETE FROM function_schemas WHERE name = $1', [name]],
    ]);
  }
}

/** Waits until no other process migrates. A statement that waits for the lock would itself hold up changes made online. */
async function takeTurn(client: pg.Client): Promise<void> {
  while (!(await client.query('SELECT pg_try_advisory_lock($1) AS taken', [LOCK])).rows[0].taken)
    await delay(TURN_POLL_MS);
}

/**
 * Applies one migration in one transaction. The statements of an online one, which each end with a line, run one by one without a transaction, as
 * CREATE INDEX CONCURRENTLY needs: each must be fit to be repeated after a crash.
 */
async function applyMigration(migrating: Migrating, { name, sql, sha256 }: Migration): Promise<void> {
  const record: [string, unknown[]] = ['INSERT INTO schema_migrations (name, sha256) VALUES ($1, $2)', [name, sha256]];
  if (!name.endsWith(ONLINE)) return inTransaction(migrating, `migration ${name}`, [[sql], record]);
  const statements = sql.split(/;\s*$/m).filter((statement) => statement.replace(/^--.*$/gm, '').trim() !== '');
  for (const statement of statements) await migrating.client.query(statement);
  await inTransaction(migrating, `migration ${name}`, [record]);
}

/**
 * Applies the missing migrations, each in its own transaction (online ones without), then this build's functions and the partitions of the coming months. One
 * process does so at a time. The tables of a database that is newer than this build stay as they are.
 * @param url a login that may create tables and roles
 * @returns the names of the migrations applied now
 * @throws Error when a file that was applied has changed, one fails, or the database is too old or too new for this build
 */
export async function migrate(url: string, log: Pick<Logger, 'info' | 'warn'>): Promise<{ applied: string[] }> {
  const migrations = readSql(MIGRATIONS);
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: 10_000,
    application_name: 'fleet_migrate',
  });
  client.on('error', (error) => log.warn({ err: error.message }, 'connection lost while migrating'));
  await client.connect();
  try {
    await refuseOldServer(client);
    await takeTurn(client);
    await refuseOld(client);
    await client.query(CREATE_TABLES);
    const { rows } = await client.query<{ name: string; sha256: string }>('SELECT name, sha256 FROM schema_migrations');
    const applied = new Map(rows.map((row) => [row.name, row.sha256]));
    const pending = pendingOf(migrations, applied);
    const ahead = [...applied.keys()].filter((name) => !migrations.some((migration) => migration.name === name));
    if (ahead.length > 0) log.warn({ ahead }, 'the database was migrated by a newer build');
    for (const migration of pending) {
      await applyMigration({ client, log }, migration);
      log.info({ migration: migration.name }, 'migration applied');
    }
    await applyFunctions({ client, log }, ahead.length > 0);
    await client.query(`SET search_path = ${FUNCTION_SCHEMA}, public`);
    await client.query('SELECT create_partitions()');
    return { applied: pending.map(({ name }) => name) };
  } finally {
    await client.end(); // the lock belongs to the connection
  }
}
