/** What is measured on both databases of `npm run bench:rows`. */
import pg from 'pg';
import { reapAgents } from '../../dist/agents/agent-watch.js';
import { WatchRound } from '../../dist/agents/watch-round.js';
import { openDb } from '../../dist/db/pool.js';
import { createLogger } from '../../dist/runtime/logger.js';
import { Caller } from '../harness/caller.mjs';
import { measured } from '../harness/measure.mjs';
import { LONG_SESSION, silence } from './fill.mjs';

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

const listTasks = (filter) => ({ jsonrpc: '2.0', id: 1, method: 'ListTasks', params: { pageSize: 25, ...filter } });

/** Reads the page of tasks that follows the first, by its token. */
async function nextTasks(caller, filter) {
  const { result } = await caller.post('/send', listTasks(filter));
  const next = JSON.stringify(listTasks({ ...filter, pageToken: result.nextPageToken }));
  return p50Of(
    caller.call(
      '/send',
      () => next,
      (answer) => answer.result?.tasks.length > 0,
    ),
  );
}

const isOk = (answer) => answer.ok === true;
const p50Of = (work) => async () => (await measured(work).sequential(CALLS)).p50Ms;

/** Times `reapAgents` on agents with a long past. @returns milliseconds for one agent */
function reaping(databaseUrl, tenantId) {
  return async () => {
    const log = createLogger({ level: 'error' });
    const db = openDb({ url: databaseUrl, max: 4, log });
    const round = new WatchRound({ log, beat: () => undefined, signal: new AbortController().signal });
    try {
      for (;;) {
        await silence(databaseUrl, tenantId);
        const from = performance.now();
        const found = await reapAgents(db, round);
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
  const tasks = new Caller(dev.base_url, token, { 'a2a-version': '1.0' });
  const sample = await sampleIds(url, tenantId);
  let next = 0;
  const some = (key) => () => JSON.stringify({ [key]: sample[next++ % sample.length][key] });
  const list = (filter) => () => JSON.stringify(filter);
  const p50 = (path, body) => p50Of(caller.call(path, body, isOk));
  const long = { session_id: LONG_SESSION };
  return {
    '`/send`': p50Of(caller.send('echo')),
    '`/messages/get_by_id`': p50('/messages/get_by_id', some('message_id')),
    '`/messages/get`': p50('/messages/get', list({})),
    '`/messages/get`, page 20': p50('/messages/get', list({ page: 20 })),
    '`/messages/get` of a session': p50('/messages/get', some('session_id')),
    '`/messages/get` of a long session': p50('/messages/get', list(long)),
    '`/messages/get` of a long session, page 20': p50('/messages/get', list({ ...long, page: 20 })),
    '`ListTasks`, the page after a token': await nextTasks(tasks, {}),
    '`ListTasks` of a long session, the page after a token': await nextTasks(tasks, { contextId: LONG_SESSION }),
    '`/messages/pending`': p50('/messages/pending', list({})),
    '`/sessions/get`': p50('/sessions/get', list({})),
    '`/sessions/get`, page 20': p50('/sessions/get', list({ page: 20 })),
    '`/sessions/get_by_id` of a long session': p50('/sessions/get_by_id', list(long)),
    '`/agents/get`': p50('/agents/get', list({})),
    '`/telemetry/get_events`': p50('/telemetry/get_events', list({})),
    '`/telemetry/get_events` of a session': p50('/telemetry/get_events', some('session_id')),
    '`/telemetry/get_events` of a long session': p50('/telemetry/get_events', list(long)),
    'reap an agent': reaping(url, tenantId),
    '`/send`, 16 callers, per s': async () => (await measured(caller.send('echo')).throughput(AT_16)).perSecond,
  };
}
