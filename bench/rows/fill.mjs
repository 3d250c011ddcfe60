/** Fills the tables of a platform with years of messages, by SQL and in parallel: what is measured is how the platform reads them. */
import pg from 'pg';

/** Connections that fill at the same time. */
const PARALLEL = 3;
/** Instances that served messages and are gone: `reap` finds their like with as long a past. */
const PAST_AGENTS = 50;
/** Tenants beside the one that is measured, which has half of all messages. */
const OTHER_TENANTS = 40;
/** Messages of one statement. */
const SLICE = 250_000;

const TABLES = { messages: 'msg', dispatches: 'dsp', event_groups: null, event_positions: null };

/** Text that makes a UUID of version 7 of a number and a time in milliseconds; both are SQL. */
const uuid = (
  ms,
  n,
) => `substr(lpad(to_hex(${ms}), 12, '0'), 1, 8) || '-' || substr(lpad(to_hex(${ms}), 12, '0'), 9) || '-7'
  || lpad(to_hex(${n} & 4095), 3, '0') || '-8000-' || lpad(to_hex(${n}), 12, '0')`;

/** Rows `n` of a slice with their time, tenant, instance and ids. Sessions have four messages each. */
const ROWS = `
  SELECT n, at, to_timestamp(at / 1000.0) AS moment, tenant_id, instance_id, ${uuid('at', 'n')} AS id,
         'ses_' || ${uuid('(at - at % 4000)', 'n / 4')} AS session_id
    FROM (SELECT n, $1::bigint + ((n - $3::bigint) * (($2::bigint - $1::bigint)::float8 / $5::bigint))::bigint AS at,
                 CASE WHEN n / 4 % 2 = 0 THEN $6 ELSE 'ten_00000000-0000-7000-8000-' || lpad((n / 8 % ${OTHER_TENANTS})::text, 12, '0') END AS tenant_id,
                 CASE WHEN n % 2 = 0 THEN 'echo-1' ELSE 'past-' || n / 8 % ${PAST_AGENTS} END AS instance_id
            FROM generate_series($3::bigint, $4::bigint - 1) AS n) made`;

const INSERTS = [
  `INSERT INTO messages (tenant_id, message_id, session_id, credential_id, client_message_id, method, parts, trace_id, deadline_ms, state,
      instance_id, agent_type, want_agent_type, artifacts, error_code, created_at, updated_at, started_at, completed_at)
    SELECT tenant_id, 'msg_' || id, session_id, 'cred_past', 'm-' || n, 'message/send', '[{"kind": "text", "text": "A question."}]', '', 600000,
      CASE WHEN n % 50 = 0 THEN 'failed' ELSE 'completed' END, instance_id, 'echo', 'echo',
      '[{"artifactId": "a", "parts": [{"kind": "text", "text": "An answer."}]}]', CASE WHEN n % 50 = 0 THEN 'HANDLER_ERROR' END,
      moment, moment, moment, moment FROM (${ROWS}) r`,
  `INSERT INTO dispatches (tenant_id, dispatch_id, message_id, instance_id, agent_type, deployment_mode, epoch, attempt, state,
      created_at, sent_at, ended_at)
    SELECT tenant_id, 'dsp_' || id, 'msg_' || id, instance_id, 'echo', 'connected', 1, 1,
      CASE WHEN n % 50 = 0 THEN 'failed' ELSE 'completed' END, moment, moment, moment FROM (${ROWS}) r`,
  `INSERT INTO sessions (tenant_id, session_id, explicit, agent_type, instance_id, status, idle_timeout_seconds, created_at,
      ended_at, ended_reason)
    SELECT tenant_id, session_id, false, 'echo', instance_id, 'expired', 1800, moment, moment, 'idle'
      FROM (${ROWS}) r WHERE n % 4 = 0 ON CONFLICT DO NOTHING`,
  // As of a transaction long ago, which the sequencer of events does not look at.
  `INSERT INTO event_groups (transaction_id, tenant_id, types, group_id, session_uuid, message_id, occurred_at, events)
    SELECT '3', uuid_of(tenant_id), event_bit('message.completed'), id::uuid, uuid_of(session_id), id::uuid, moment, '[{"duration_ms":5}]'
      FROM (${ROWS}) r`,
];

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

/**
 * Writes so many messages, spread evenly from so many months ago until a day ago, each with a dispatch, an event (a real one has five) and a
 * session for every four. No idempotency keys: they live for a week.
 * @param {string} databaseUrl of a platform that has had no message yet
 * @param {{ tenantId: string, messages: number, months: number, progress: (text: string) => void }} options
 */
export async function fill(databaseUrl, { tenantId, messages, months, progress }) {
  const from = await connected(databaseUrl, (client) => pastPartitions(client, months));
  const to = Date.now() - 86_400_000;
  const jobs = [];
  for (let first = 0; first < messages; first += SLICE) {
    const end = Math.min(messages, first + SLICE);
    const at = (n) => Math.round(from + ((to - from) * n) / messages);
    for (const insert of INSERTS) jobs.push([insert, [at(first), at(end), first, end, end - first, tenantId]]);
  }
  let done = 0;
  const worker = () =>
    connected(databaseUrl, async (client) => {
      for (let job = jobs.shift(); job; job = jobs.shift()) {
        await client.query(...job);
        done += 1;
        progress(`filling: ${done} of ${done + jobs.length} steps`);
      }
    });
  await Promise.all(Array.from({ length: PARALLEL }, worker));
  await connected(databaseUrl, (client) =>
    client.query(
      `INSERT INTO tenants (tenant_id, name) SELECT 'ten_other-' || n, 'other' FROM generate_series(0, ${OTHER_TENANTS - 1}) AS n`,
    ),
  );
  progress('filling: VACUUM ANALYZE');
  await connected(databaseUrl, (client) =>
    client.query('VACUUM (ANALYZE) messages, dispatches, sessions, event_groups'),
  );
  return connected(databaseUrl, async (client) => {
    await client.query('CHECKPOINT');
    return (await client.query('SELECT pg_database_size(current_database())::float8 AS bytes')).rows[0].bytes;
  });
}

/** Puts messages on the record that wait for input, and agents without a sign of life for an hour, which have served half of the past. */
export async function prepare(databaseUrl, { tenantId, waiting }) {
  await connected(databaseUrl, async (client) => {
    await client.query(
      `WITH waiting AS (
         INSERT INTO messages (tenant_id, message_id, session_id, credential_id, client_message_id, method, parts, trace_id, deadline_ms, state)
         SELECT $1, 'msg_' || ${uuid('at', 'n')}, 'ses_waiting-' || n, 'cred_past', 'w-' || n, 'message/send', '[]', '', 600000, 'input-required'
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
