/** The rows of years, as SQL: what messages of the past have left in each table. */

/** Instances that served messages and are gone: `reap` finds their like with as long a past. */
export const PAST_AGENTS = 50;
/** Tenants beside the one that is measured, which has half of all messages. */
export const OTHER_TENANTS = 40;
export const otherTenant = (n) => `'ten_00000000-0000-7000-8000-' || lpad((${n})::text, 12, '0')`;
/** Groups of events that one transaction wrote; they share a row of positions. */
const GROUPS_TOGETHER = 4;

/** Text that makes a UUID of version 7 of a number and a time in milliseconds; both are SQL. */
export const uuid = (
  ms,
  n,
) => `substr(lpad(to_hex(${ms}), 12, '0'), 1, 8) || '-' || substr(lpad(to_hex(${ms}), 12, '0'), 9) || '-7'
  || lpad(to_hex(${n} & 4095), 3, '0') || '-8000-' || lpad(to_hex(${n}), 12, '0')`;

/**
 * Rows `n` of a slice with their time, tenant, instance and ids. Sessions have four messages each, but where $7 names the session of them all.
 * $1 to $2: the milliseconds of the slice, $3 to $4: its numbers, $5: how many these are, $6: the tenant.
 */
const ROWS = `
  SELECT n, at, to_timestamp(at / 1000.0) AS moment, tenant_id, instance_id, ${uuid('at', 'n')} AS id,
         coalesce($7, 'ses_' || ${uuid('(at - at % 4000)', 'n / 4')}) AS session_id
    FROM (SELECT n, $1::bigint + ((n - $3::bigint) * (($2::bigint - $1::bigint)::float8 / $5::bigint))::bigint AS at,
                 CASE WHEN $7::text IS NOT NULL OR n / 4 % 2 = 0 THEN $6
                   ELSE ${otherTenant(`n / 8 % ${OTHER_TENANTS}`)} END AS tenant_id,
                 CASE WHEN n % 2 = 0 THEN 'echo-1' ELSE 'past-' || n / 8 % ${PAST_AGENTS} END AS instance_id
            FROM generate_series($3::bigint, $4::bigint - 1) AS n) made`;

/** The column of a row's session in other tables. Most sessions have a UUID, which is quickly taken out. */
const SESSION_UUID =
  'CASE WHEN $7::text IS NULL THEN uuid_of(session_id) ELSE session_uuid(uuid_of(tenant_id), session_id) END';

/** What is counted of a slice, added up: how long usage is kept, the keys that the sums have, the values of these. */
const usage = (table, days, keys, values) => `
  INSERT INTO ${table} AS u (${keys.join()}, messages, ${table === 'usage_days' ? 'tokens' : 'dispatches, tool_calls, input_tokens, output_tokens, duration_ms'}, cost_usd)
    SELECT ${values.join()}, count(*), ${table === 'usage_days' ? '0' : 'count(*), 0, 0, 0, 5 * count(*)'}, 0
      FROM (${ROWS}) r WHERE moment > now() - interval '${days} days' GROUP BY ${values.map((_, place) => place + 1).join()} ORDER BY 1, 2, 3
    ON CONFLICT (${keys.filter((key) => key !== 'session_name').join()}) DO UPDATE SET messages = u.messages + excluded.messages`;

/** One for each table, for a slice of the past. */
export const INSERTS = [
  `INSERT INTO messages (tenant_id, message_id, session_id, session_uuid, credential_id, client_message_id, method, parts, trace_id, deadline_ms, state,
      instance_id, agent_type, want_agent_type, artifacts, unsuccessful_state, error_code, created_at, updated_at, started_at, completed_at)
    SELECT tenant_id, 'msg_' || id, session_id, session_uuid(uuid_of(tenant_id), session_id), 'cred_past', 'm-' || n, 'message/send', '[{"kind": "text", "text": "A question."}]', '', 600000,
      CASE WHEN n % 50 = 0 THEN 'failed' ELSE 'completed' END, instance_id, 'echo', 'echo',
      '[{"artifactId": "a", "parts": [{"kind": "text", "text": "An answer."}]}]', CASE WHEN n % 50 = 0 THEN 'failed' END, CASE WHEN n % 50 = 0 THEN 'HANDLER_ERROR' END,
      moment, moment, moment, moment FROM (${ROWS}) r`,
  `INSERT INTO dispatches (tenant_id, dispatch_id, message_id, instance_id, agent_type, deployment_mode, epoch, attempt, state,
      created_at, sent_at, ended_at)
    SELECT tenant_id, 'dsp_' || id, 'msg_' || id, instance_id, 'echo', 'connected', 1, 1,
      CASE WHEN n % 50 = 0 THEN 'failed' ELSE 'completed' END, moment, moment, moment FROM (${ROWS}) r`,
  `INSERT INTO sessions (tenant_id, session_id, explicit, agent_type, instance_id, status, idle_timeout_seconds, created_at,
      ended_at, ended_reason)
    SELECT tenant_id, session_id, false, 'echo', instance_id, 'expired', 1800, moment, moment, 'idle'
      FROM (${ROWS}) r WHERE n % 4 = 0 AND $7::text IS NULL ON CONFLICT DO NOTHING`,
  // As of a transaction long ago, which the sequencer of events does not look at.
  `INSERT INTO event_groups (transaction_id, tenant_id, types, group_id, session_uuid, session_name, message_id, occurred_at, events)
    SELECT '3', uuid_of(tenant_id), event_bit('message.completed'), id::uuid, ${SESSION_UUID}, session_name(session_id),
           id::uuid, moment, '[{"duration_ms":5}]'
      FROM (${ROWS}) r`,
  // Below zero, where every consumer has read.
  `INSERT INTO event_positions (position, transaction_id, tenant_id, last_group_id, earlier_group_ids)
    SELECT max(n) - 1000000000000, '3', uuid_of(tenant_id), (array_agg(id::uuid ORDER BY n))[count(*)],
           nullif((array_agg(id::uuid ORDER BY n))[:count(*) - 1], '{}')
      FROM (${ROWS}) r GROUP BY n / ${GROUPS_TOGETHER}, tenant_id`,
  usage(
    'usage_hours',
    400,
    ['tenant_id', 'hour', 'agent_type', 'instance_id', 'model'],
    ['tenant_id', `date_trunc('hour', moment, 'UTC')`, `'echo'`, 'instance_id', `''`],
  ),
  usage(
    'usage_sessions',
    32,
    ['tenant_id', 'hour', 'session_uuid', 'session_name'],
    ['uuid_of(tenant_id)', `date_trunc('hour', moment, 'UTC')`, SESSION_UUID, 'session_name(session_id)'],
  ),
  usage('usage_days', 400, ['tenant_id', 'day'], ['tenant_id', `(moment AT TIME ZONE 'UTC')::date`]),
];
