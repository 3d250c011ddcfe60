/** What is measured on both databases of `npm run bench:rows`. */
import pg from 'pg';
import { reapAgents } from '../../dist/agents/agent-watch.js';
import { openDb } from '../../dist/db/pool.js';
import { createLogger } from '../../dist/runtime/logger.js';
import { Caller } from '../harness/caller.mjs';
import { measured } from '../harness/measure.mjs';
import { silence } from './fill.mjs';

const CALLS = { calls: 200, maxMs: 10_000 };
const AT_16 = { width: 16, rampMs: 300, ms: 2_000 };
/** Ids that `get` reads, from all months. */
const SAMPLE = 500;

async function sampleIds(databaseUrl, tenantId) {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { rows: partitions } = await client.query(
      "SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'messages'::regclass",
    );
    const ids = [];
    for (const { name } of partitions) {
      const { rows } = await client.query(
        `SELECT message_id, session_id FROM ${name} WHERE tenant_id = $1 AND state = 'completed' ORDER BY random() LIMIT $2`,
        [tenantId, SAMPLE],
      );
      ids.push(...rows);
    }
    return ids.sort(() => Math.random() - 0.5).slice(0, SAMPLE);
  } finally {
    await client.end();
  }
}

const isOk = (answer) => answer.ok === true;
const p50Of = (work) => async () => (await measured(work).sequential(CALLS)).p50Ms;

/** Times `reapAgents` on agents with a long past. @returns milliseconds for one agent */
function reaping(databaseUrl, tenantId) {
  return async () => {
    const db = openDb({ url: databaseUrl, max: 4, log: createLogger({ level: 'error' }) });
    try {
      for (;;) {
        await silence(databaseUrl, tenantId);
        const from = performance.now();
        const found = await reapAgents(db);
        // The platform's own watch may have come first.
        if (found > 0) return (performance.now() - from) / found;
      }
    } finally {
      await db.close();
    }
  };
}

/** The operations by name: each gives milliseconds of one call, except the last, which gives calls per second. */
export async function operationsOf({ dev, token }) {
  const { database_url: url, tenant_id: tenantId } = dev;
  const caller = new Caller(dev.base_url, token);
  const sample = await sampleIds(url, tenantId);
  let next = 0;
  const some = (key) => () => JSON.stringify({ [key]: sample[next++ % sample.length][key] });
  const list = (filter) => () => JSON.stringify(filter);
  return {
    '`/send`': p50Of(caller.send('echo')),
    '`/messages/get_by_id`': p50Of(caller.call('/messages/get_by_id', some('message_id'), isOk)),
    '`/messages/get`': p50Of(caller.call('/messages/get', list({}), isOk)),
    '`/messages/get` of a session': p50Of(caller.call('/messages/get', some('session_id'), isOk)),
    '`/messages/pending`': p50Of(caller.call('/messages/pending', list({}), isOk)),
    '`/telemetry/get_events` of a session': p50Of(caller.call('/telemetry/get_events', some('session_id'), isOk)),
    'reap an agent': reaping(url, tenantId),
    '`/send`, 16 callers, per s': async () => (await measured(caller.send('echo')).throughput(AT_16)).perSecond,
  };
}
