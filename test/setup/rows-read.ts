import { type Db, openDb } from '../../db/pool.js';
import { createLogger } from '../../runtime/logger.js';
import type { FreshDatabase } from './database.js';
import { until } from './until.js';

const READ = 'sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))';

/** How long a connection of the platform has to end, in milliseconds. */
const END_MS = 30_000;

/** Ends the platform's connections: a connection writes what it has read to the statistics by its end, else later. The test's own two write it at once. */
async function statisticsWritten(database: FreshDatabase): Promise<void> {
  const written = () => database.query('SELECT pg_stat_force_next_flush()');
  await Promise.all([written(), written()]);
  // It waits for the end of each; the platform connects again meanwhile, and those connections are none of these.
  const ended = await database.query<{ pid: number; is_ended: boolean }>(
    `SELECT pid, pg_terminate_backend(pid, $1) AS is_ended
       FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'fleet%'`,
    [END_MS],
  );
  // One that was ending by itself could not be ended any more.
  const others = ended.filter(({ is_ended }) => !is_ended).map(({ pid }) => pid);
  const left = await database.query('SELECT FROM pg_stat_activity WHERE pid = ANY ($1)', [others]);
  if (left.length > 0) throw new Error(`A connection did not end within ${END_MS} ms.`);
}

/** How many rows of the tables the platform reads while `work` runs; entries of an index that are enough by themselves do not count. */
export async function rowsRead(database: FreshDatabase, tables: RegExp, work: () => Promise<void>): Promise<number> {
  await statisticsWritten(database);
  await database.query('SELECT pg_stat_reset()');
  await work();
  await statisticsWritten(database);
  const read = async () => {
    const [found] = await database.query<{ rows: string }>(
      `SELECT ${READ} AS rows FROM pg_stat_user_tables WHERE relname ~ $1`,
      [tables.source],
    );
    return Number(found?.rows ?? 0);
  };
  return until(read, { what: 'the statistics' });
}

/**
 * Rows that `work` reads by each index of the tables. It has connections of its own, so that its plans are from the first on. Dead rows do not
 * count: how many there are is chance.
 */
export async function rowsByIndex(
  database: FreshDatabase,
  tables: RegExp,
  work: (db: Db) => Promise<unknown>,
): Promise<Record<string, number>> {
  await statisticsWritten(database);
  await database.query('SELECT pg_stat_reset()');
  const db = openDb({ url: database.url, max: 2, log: createLogger({ level: 'silent' }) });
  await work(db);
  await db.close();
  await statisticsWritten(database);
  const read = await database.query<{ name: string; rows: string }>(
    `SELECT indexrelname AS name, idx_tup_fetch AS rows FROM pg_stat_user_indexes WHERE idx_tup_fetch > 0 AND relname ~ $1`,
    [tables.source],
  );
  return Object.fromEntries(read.map(({ name, rows }) => [name, Number(rows)]));
}

/** Vacuums a table until its index alone says which of its rows there are: not while an older transaction may see others. */
export async function vacuumed(database: FreshDatabase, table: string): Promise<void> {
  const isVisible = async () => {
    await database.query(`VACUUM (ANALYZE) ${table}`);
    const pages = "SELECT FROM pg_class WHERE relkind = 'r' AND relname ~ $1 AND relallvisible < relpages";
    return (await database.query(pages, [`^${table}(_|$)`])).length === 0;
  };
  await until(isVisible, { what: `the visibility map of ${table}` });
}
