import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type pg from 'pg';
import { inject } from 'vitest';
import { FUNCTION_SCHEMA } from '../../db/migrate.js';
import { startPostgres } from '../../embedded/postgres.js';
import { userCacheDir } from '../../runtime/cache-dir.js';
import { createLogger } from '../../runtime/logger.js';
import { PGVECTOR_FOLDER, PGVECTOR_PROGRAM } from '../../scripts/test/pgvector.mjs';
import { cleanUp } from './clean-up.js';
import { documentedBlock } from './documented-block.js';
import type { RecordReader } from './histories/record-checker.js';
import { databaseUrl, withClient } from './with-client.js';

const execute = promisify(execFile);

/** `pg_dump` and `pg_restore`, which the embedded Postgres does not have; `npm run test:pgvector` installs them. */
const PROGRAMS = join(userCacheDir(), PGVECTOR_FOLDER, PGVECTOR_PROGRAM, '..');

/** A Postgres cluster of the running file. */
export interface EmptyCluster {
  urlOf(database: string): string;
  /** Runs statements in a database as the superuser. */
  run(database: string, sql: string): Promise<void>;
  /** Reads a migrated database as the superuser, who sees every tenant. */
  reader(database: string): RecordReader;
}

/** Starts a Postgres cluster in which nothing is, as another machine would have it. @param name of its folder */
export async function emptyCluster(name: string): Promise<EmptyCluster> {
  const dataDir = join(inject('runDir'), name);
  mkdirSync(dataDir, { mode: 0o755 });
  const server = await startPostgres({ dataDir, log: createLogger({ level: 'error' }), onLine: () => undefined });
  cleanUp(() => server.stop());
  const urlOf = (database: string) => databaseUrl(server.url, database);
  const query = <Row extends pg.QueryResultRow>(database: string, text: string, values?: unknown[]) => {
    const config = { connectionString: urlOf(database), options: `-c search_path=${FUNCTION_SCHEMA},public` };
    return withClient(config, async (client) => (await client.query<Row>(text, values)).rows);
  };
  const run = async (database: string, sql: string) => void (await query(database, sql));
  return { urlOf, run, reader: (database) => ({ query: (text, values) => query(database, text, values) }) };
}

/** Runs the documented commands of a step of a restore, with `pg_dump` and `pg_restore` on the PATH. @param settings the variables that they name */
export async function runDocumented(marker: string, settings: Record<string, string>): Promise<void> {
  const env = { ...process.env, ...settings, PATH: `${PROGRAMS}:${process.env.PATH}` };
  await execute('bash', ['-euc', documentedBlock('operations.md', 'sh', marker)], { env, cwd: inject('runDir') });
}
