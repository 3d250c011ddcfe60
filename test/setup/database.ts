import { randomBytes } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { inject } from 'vitest';
import { FUNCTION_SCHEMA } from '../../db/migrate.js';
import { type Db, openDb } from '../../db/pool.js';
import { createLogger } from '../../runtime/logger.js';
import { cleanUp, once } from './clean-up.js';
import { databaseUrl, withClient } from './with-client.js';

/** Any number, the same for all files: two copies of one template cannot be made at once. */
const COPY_LOCK = 74_032_117;

export interface FreshDatabase {
  url: string;
  /** Queries as the owner, who sees every tenant. */
  query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]>;
  /** The first column of the first row. */
  value<T>(text: string, values?: unknown[]): Promise<T | undefined>;
  /** The first column of all rows. */
  column<T>(text: string, values?: unknown[]): Promise<T[]>;
  /** The platform's own pool on it, opened once. */
  db(): Db;
  /** Done after the test or the file, where nobody has done it before. */
  drop(): Promise<void>;
}

/** Queries on a pool. */
export function queriesOf(pool: pg.Pool): Pick<FreshDatabase, 'query' | 'value' | 'column'> {
  const column = async <T>(text: string, values?: unknown[]) => {
    const { rows } = await pool.query<[T]>({ text, values, rowMode: 'array' });
    return rows.map(([first]) => first);
  };
  return {
    query: async <Row extends pg.QueryResultRow>(text: string, values?: unknown[]) =>
      (await pool.query<Row>(text, values)).rows,
    value: async <T>(text: string, values?: unknown[]) => (await column<T>(text, values))[0],
    column,
  };
}

/** A migrated database of the running test's or the file's own, dropped after it; whoever is still connected is disconnected. */
export async function freshDatabase(): Promise<FreshDatabase> {
  const database = await createDatabase();
  cleanUp(database.drop);
  return database;
}

/** The same, dropped by whoever asked for it, or at the end of the run. */
export async function createDatabase(): Promise<FreshDatabase> {
  const name = `fleet_${randomBytes(6).toString('hex')}`;
  appendFileSync(join(inject('runDir'), 'databases'), `${name}\n`);
  await withClient(inject('postgresUrl'), async (client) => {
    await client.query('SELECT pg_advisory_lock($1)', [COPY_LOCK]);
    await client.query(`CREATE DATABASE ${name} TEMPLATE ${inject('templateDatabase')}`);
  });
  const drop = `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`;
  return databaseAt(databaseUrl(inject('postgresUrl'), name), () =>
    withClient(inject('postgresUrl'), (client) => client.query(drop)),
  );
}

/** A database that there is, which `end` drops once nothing here is connected to it. @param ownerUrl where its owner is another login */
export function databaseAt(url: string, end: () => Promise<unknown>, ownerUrl = url): FreshDatabase {
  const options = `-c search_path=${FUNCTION_SCHEMA},public`;
  // Its connections stay: a test may keep the server from taking new ones.
  const owner = new pg.Pool({ connectionString: ownerUrl, max: 2, options, idleTimeoutMillis: 0 });
  owner.on('error', () => undefined); // the server may be stopped by the test itself
  let opened: Db | undefined;
  return {
    url,
    ...queriesOf(owner),
    db: () => {
      opened ??= openDb({ url, log: createLogger({ level: 'error' }) });
      return opened;
    },
    drop: once(async () => {
      await opened?.close();
      await owner.end();
      await end();
    }),
  };
}
