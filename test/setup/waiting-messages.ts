import type { FreshDatabase } from './database.js';

/** Puts so many messages on a tenant's record that wait for input. */
export async function waitingMessages(database: FreshDatabase, tenantId: string, count: number): Promise<void> {
  await database.query(
    `WITH waiting AS (
       INSERT INTO messages (tenant_id, message_id, session_id, session_uuid, credential_id, client_message_id, state, method, parts, deadline_ms)
       SELECT $1, 'msg_00000000-0000-7000-8000-' || lpad(n::text, 12, '0'), 'ses_waiting_' || n, session_uuid(uuid_of($1), 'ses_waiting_' || n), 'cred_waiting', 'waiting-' || n, 'input-required', 'message/send', '[]',
              1000 FROM generate_series(1, $2::int) AS n RETURNING *),
     keys AS (
       INSERT INTO idempotency_keys (idempotency_key, tenant_id, content_hash, message_id, expires_at)
       SELECT idempotency_key(tenant_id, credential_id, NULL, '', client_message_id), uuid_of(tenant_id), gen_random_uuid(), uuid_of(message_id), now() + interval '1 h' FROM waiting)
     INSERT INTO running_messages (tenant_id, message_id, session_id, state)
     SELECT tenant_id, message_id, session_id, state FROM waiting`,
    [tenantId, count],
  );
}
