import type { FreshDatabase } from '../../setup/database.js';

/** How messages are made that are on the record already, numbered by `n` from `from` to `to`. Each field is SQL. */
export interface PastMessages {
  tenantId: string;
  from?: number;
  to: number;
  /** When `n` was accepted. */
  at: string;
  /** When it has changed for the last time; when it was accepted, by default. */
  changed?: string;
  /** By default each has a session of its own. */
  session?: string;
  state: string;
  error?: string;
  instance?: string;
}

/** Adds messages that are over, with ids of their times, as the platform leaves them. */
export async function insertPastMessages(
  { query }: Pick<FreshDatabase, 'query'>,
  {
    tenantId,
    from = 1,
    to,
    at,
    changed = 'at',
    session = "'ses_' || n",
    state,
    error = 'NULL',
    instance = 'NULL',
  }: PastMessages,
): Promise<void> {
  await query(
    `WITH made AS (
       SELECT n, at, lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') AS hex
         FROM generate_series($2::int, $3::int) n, LATERAL (SELECT ${at} AS at) t),
     written AS (
       INSERT INTO messages (tenant_id, message_id, session_id, session_uuid, credential_id, client_message_id, method, parts, trace_id,
         deadline_ms, state, unsuccessful_state, error_code, agent_type, instance_id, created_at, updated_at)
       SELECT $1, 'msg_' || left(hex, 8) || '-' || right(hex, 4) || '-7000-8000-' || lpad(n::text, 12, '0'), session_id,
              session_uuid(uuid_of($1), session_id), 'c', 'm' || n, 'message/send', '[]', 't', 1, state,
              CASE WHEN state IN ('failed', 'canceled') THEN state END, ${error}, 'worker', ${instance}, at, ${changed}
         FROM made, LATERAL (SELECT ${session} AS session_id, ${state} AS state) of_message
       RETURNING tenant_id, message_id, session_id, updated_at)
     INSERT INTO late_changes SELECT tenant_id, message_id, session_id, updated_at FROM written WHERE message_id < late_bound(updated_at)`,
    [tenantId, from, to],
  );
  await query('ANALYZE messages');
}
