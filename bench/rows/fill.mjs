/** Fills the tables of a platform with years of messages, by SQL and in parallel: what is measured is how the platform reads them. */
import pg from 'pg';
import { INSERTS, OTHER_TENANTS, otherTenant, PAST_AGENTS, uuid } from './past.mjs';

/** Connections that fill at the same time. */
const PARALLEL = 3;
/** Messages of one statement. */
const SLICE = 250_000;
/** The share of the messages, beside all others, that one session has. Its name comes first in a list of sessions. */
const LONG_SHARE = 1 / 50;
export const LONG_SESSION = 'the-long-session';
/** How many messages it has on the empty platform: more than a few pages. */
const SHORT_MESSAGES = 1_000;
const FILLED = 'messages, dispatches, sessions, event_groups, event_positions, usage_hours, usage_sessions, usage_days';

const TABLES = { messages: 'msg', dispatches: 'dsp', event_groups: null, event_positions: null };

async function connected(url, work) {
  const client = new pg.Client({ connectionString: url, options: '-c synchronous_commit=off' });
  await client.connect();
  try {
    const { rows } = await client.query(
      "SELECT nspname AS name FROM pg_namespace WHERE nspname ~ '^fleet_[0-9a-f]{12}$'",
    );
    await client.query(`SET search_path = ${rows[0].name}, public`);
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Partitions from so many months ago on, in place of the empty ones that a new platform has. */
async function pastPartitions(client, months) {
  const first = new Date();
  first.setUTCDate(1);
  first.setUTCMonth(first.getUTCMonth() - months);
  const next = new Date(first);
  next.setUTCMonth(next.getUTCMonth() + 1);
  const day = (date) => date.toISOString().slice(0, 10);
  const { rows } = await client.query(
    `SELECT c.oid::regclass::text AS name FROM pg_class c JOIN pg_inherits ON inhrelid = c.oid WHERE c.relkind = 'r'`,
  );
  await client.query(`DROP TABLE ${rows.map(({ name }) => name).join()}`);
  for (const [table, prefix] of Object.entries(TABLES)) {
    const bound = (await client.query('SELECT id_bound($1, $2::date) AS bound', [prefix, day(next)])).rows[0].bound;
    const name = `public.${table}_${day(first).slice(0, 7).replace('-', '_')}`;
    await client.query(`CREATE TABLE ${name} PARTITION OF ${table} FOR VALUES FROM (MINVALUE) TO ('${bound}')`);
  }
  await client.query('SELECT create_partitions()');
  return Date.parse(day(first));
}

/** The statements that write `count` messages, the first of which has the number `first`, evenly from one time to another, in slices. */
function slices({ tenantId, session = null, from, to, first, count }) {
  const jobs = [];
  for (let done = 0; done < count; done += SLICE) {
    const end = Math.min(count, done + SLICE);
    const at = (n) => Math.round(from + ((to - from) * n) / count);
    const values = [at(done), at(end), first + done, first + end, end - done, tenantId, session];
    for (const insert of INSERTS) jobs.push([insert, values]);
  }
  return jobs;
}

/** Opens the long session, which began at a time. */
const openLong = (client, tenantId, from) =>
  client.query(
    `INSERT INTO sessions (tenant_id, session_id, explicit, agent_type, instance_id, status, idle_timeout_seconds, created_at)
     VALUES ($1, $2, false, 'echo', 'echo-1', 'active', 0, to_timestamp($3 / 1000.0))`,
    [tenantId, LONG_SESSION, from],
  );

/** Counts the messages of the long session, as the usage roll-up does while they come. */
async function countLong(client, tenantId) {
  for (let more = true; more; ) {
    const { rows } = await client.query('SELECT advance_totals($1, $2) AS counted', [tenantId, LONG_SESSION]);
    more = rows[0].counted > 0;
  }
}

/**
 * Writes so many messages, spread evenly from so many months ago until a day ago, each with a dispatch, an event (a real one has five), its
 * position and usage, and a session for every four; and a long session beside them. No idempotency keys: they live for a week.
 * @param {string} databaseUrl of a platform that has had no message yet
 * @param {{ tenantId: string, messages: number, months: number, progress: (text: string) => void }} options
 */
export async function fill(databaseUrl, { tenantId, messages, months, progress }) {
  const from = await connected(databaseUrl, (client) => pastPartitions(client, months));
  const to = Date.now() - 86_400_000;
  await connected(databaseUrl, async (client) => {
    await client.query(
      `INSERT INTO tenants (tenant_id, name) SELECT ${otherTenant('n')}, 'other' FROM generate_series(0, ${OTHER_TENANTS - 1}) AS n`,
    );
    await openLong(client, tenantId, from);
  });
  const long = { session: LONG_SESSION, first: messages, count: Math.ceil(messages * LONG_SHARE) };
  const jobs = [
    ...slices({ tenantId, from, to, first: 0, count: messages }),
    ...slices({ tenantId, from, to, ...long }),
  ];
  const steps = jobs.length;
  const begun = Date.now();
  let done = 0;
  const worker = () =>
    connected(databaseUrl, async (client) => {
      for (let job = jobs.shift(); job; job = jobs.shift()) {
        await client.query(...job);
        done += 1;
        progress(`filling: ${done} of ${steps} steps, ${((Date.now() - begun) / 1_000).toFixed(0)} s`);
      }
    });
  await Promise.all(Array.from({ length: PARALLEL }, worker));
  progress('filling: VACUUM ANALYZE');
  return connected(databaseUrl, async (client) => {
    await client.query(`VACUUM (ANALYZE) ${FILLED}`);
    await countLong(client, tenantId);
    await client.query('CHECKPOINT');
    return (await client.query('SELECT pg_database_size(current_database())::float8 AS bytes')).rows[0].bytes;
  });
}

/** Writes the long session of a platform without a past: a thousand messages of the last hour. */
export async function fillShort(databaseUrl, tenantId) {
  const to = Date.now() - 60_000;
  const from = to - 3_600_000;
  await connected(databaseUrl, async (client) => {
    await openLong(client, tenantId, from);
    const short = { tenantId, session: LONG_SESSION, from, to, first: 0, count: SHORT_MESSAGES };
    for (const job of slices(short)) await client.query(...job);
    await countLong(client, tenantId);
  });
}

/** Puts messages on the record that wait for input, and agents without a sign of life for an hour, which have served half of the past. */
export async function prepare(databaseUrl, { tenantId, waiting }) {
  await connected(databaseUrl, async (client) => {
    await client.query(
      `WITH waiting AS (
         INSERT INTO messages (tenant_id, message_id, session_id, session_uuid, credential_id, client_message_id, method, parts, trace_id, deadline_ms, state)
         SELECT $1, 'msg_' || ${uuid('at', 'n')}, 'ses_waiting-' || n, session_uuid(uuid_of($1), 'ses_waiting-' || n), 'cred_past', 'w-' || n, 'message/send', '[]', '', 600000, 'input-required'
           FROM generate_series(1, $2::bigint) AS n, (SELECT (extract(epoch FROM now()) * 1000)::bigint AS at) t RETURNING *),
       running AS (
         INSERT INTO running_messages (tenant_id, message_id, session_id, state, supervised_at)
         SELECT tenant_id, message_id, session_id, state, now() + interval '1 day' FROM waiting)
       INSERT INTO input_requests (tenant_id, request_id, message_id, session_id, kind, source, stage, title, prompt, digest, state, expires_at)
       SELECT tenant_id, replace(message_id, 'msg_', 'req_'), message_id, session_id, 'confirmation', 'agent', 'agent', 'Go on?', '', '', 'pending',
              now() + interval '1 day' FROM waiting`,
      [tenantId, waiting],
    );
  });
}

const SILENT = `
  INSERT INTO agents AS a (tenant_id, instance_id, agent_type, deployment_mode, status, max_concurrent_sessions, last_seen, registered_at)
    SELECT $1, 'past-' || n, 'past', 'connected', 'offline', 8, now() - interval '1 hour', now() - interval '1 day'
      FROM generate_series(0, ${PAST_AGENTS - 1}) AS n
    ON CONFLICT (tenant_id, instance_id) DO UPDATE SET deregistered_at = NULL, status = 'offline', last_seen = now() - interval '1 hour'`;

/** Registers the agents of the past, silent for an hour, so that they are reaped next. */
export async function silence(databaseUrl, tenantId) {
  await connected(databaseUrl, async (client) => {
    await client.query("UPDATE mesh_nodes SET started_at = now() - interval '1 hour'");
    await client.query(SILENT, [tenantId]);
  });
}
