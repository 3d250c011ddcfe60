/** What is stored for short messages: the growth of every table and index while they are sent through `/send`. */
import pg from 'pg';
import { Caller } from '../harness/caller.mjs';
import { measured } from '../harness/measure.mjs';
import { markdownTable } from '../harness/report.mjs';

/** Bytes in all files of each table's rows and of each index; partitions count for their table. */
const SIZES = `
  SELECT regexp_replace(c.relname, '_\\d{4}_\\d\\d(?=_|$)', '') AS name, c.relkind = 'i' AS is_index, sum(CASE WHEN c.relkind = 'i'
           THEN pg_relation_size(c.oid) ELSE pg_table_size(c.oid) END)::bigint AS bytes
    FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'i') GROUP BY 1, 2`;
/** What autovacuum does in time: it frees the room of old row versions, and of running rows, for the next messages. */
const VACUUM =
  'VACUUM messages, dispatches, event_groups, sessions, idempotency_keys, running_messages, session_agents';
/** Ten words. */
const TEXT = 'Which of our invoices from last week are still unpaid?';
const AT_16 = { width: 16, rampMs: 0 };

async function sizes(client) {
  await client.query(VACUUM);
  const { rows } = await client.query(SIZES);
  return new Map(rows.map((row) => [row.name, { ...row, bytes: Number(row.bytes) }]));
}

/**
 * Sends messages of ten words that a connected agent answers with as many, and counts what the database grew by. A first round fills what
 * is made once, such as first pages.
 * @returns a Markdown table, and the bytes per message
 */
export async function measureSize(platform, messages) {
  const client = new pg.Client({ connectionString: platform.dev.database_url });
  await client.connect();
  const caller = new Caller(platform.dev.base_url, platform.token);
  const { throughput } = measured(caller.send('echo', '/send', TEXT));
  const send = async (count) => {
    const counted = 'SELECT count(*)::integer AS n FROM messages';
    const before = (await client.query(counted)).rows[0].n;
    for (let sent = 0; sent < count; ) {
      await throughput({ ...AT_16, ms: 1_000 });
      sent = (await client.query(counted)).rows[0].n - before;
    }
    return (await client.query(counted)).rows[0].n - before;
  };
  try {
    await send(messages);
    const before = await sizes(client);
    const count = await send(messages);
    const after = await sizes(client);
    const grown = [...after.values()].map((row) => ({
      ...row,
      bytes: (row.bytes - (before.get(row.name)?.bytes ?? 0)) / count,
    }));
    const total = grown.reduce((sum, { bytes }) => sum + bytes, 0);
    const shown = grown.filter(({ bytes }) => bytes >= 1).sort((a, b) => b.bytes - a.bytes);
    const rows = shown.map(({ name, is_index, bytes }) => [name, is_index ? 'index' : 'rows', bytes.toFixed(0)]);
    return {
      bytes: total,
      table: markdownTable(
        ['', 'of', 'bytes a message'],
        [...rows, [`all, of ${count} messages`, '', total.toFixed(0)]],
      ),
    };
  } finally {
    await client.end();
    await caller.close();
  }
}
