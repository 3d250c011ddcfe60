/** State of the tables that every message writes: sizes, dead rows, last vacuum and analyze. */
import pg from 'pg';
import { markdownTable } from '../harness/report.mjs';

const TABLES = ['messages', 'dispatches', 'sessions', 'event_groups'];

const OF_TABLES = `
  SELECT relname AS name, pg_size_pretty(pg_table_size(relid)) AS rows_size, pg_size_pretty(pg_indexes_size(relid)) AS indexes,
         n_live_tup AS live, n_dead_tup AS dead, n_tup_hot_upd AS hot_updates, n_tup_upd AS updates,
         to_char(last_autovacuum, 'HH24:MI:SS') AS last_autovacuum, autovacuum_count AS vacuums,
         to_char(last_autoanalyze, 'HH24:MI:SS') AS last_autoanalyze, to_char(now(), 'HH24:MI:SS') AS now
    FROM pg_stat_user_tables WHERE relname = ANY ($1) ORDER BY array_position($1, relname::text)`;

const OF_INDEXES = `
  SELECT indexrelname AS name, relname AS of, pg_size_pretty(pg_relation_size(indexrelid)) AS size, idx_scan AS scans
    FROM pg_stat_user_indexes WHERE relname = ANY ($1)
   ORDER BY array_position($1, relname::text), pg_relation_size(indexrelid) DESC, indexrelname`;

async function report(databaseUrl, statement) {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { fields, rows } = await client.query({ text: statement, values: [TABLES], rowMode: 'array' });
    const cells = rows.map((row) => row.map((value) => value ?? 'never'));
    return markdownTable(
      fields.map(({ name }) => name.replaceAll('_', ' ')),
      cells,
    );
  } finally {
    await client.end();
  }
}

/** Sizes, live and dead rows, last automatic vacuum and analyze, as a Markdown table. */
export function tableHealth(databaseUrl) {
  return report(databaseUrl, OF_TABLES);
}

/** Size and use of each index, as a Markdown table. */
export function indexHealth(databaseUrl) {
  return report(databaseUrl, OF_INDEXES);
}
