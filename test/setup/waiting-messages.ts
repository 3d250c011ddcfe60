import type { FreshDatabase } from './database.js';

/** Puts so many messages on a tenant's record that wait for input. */
export async function waitingMessages(database: FreshDatabase, tenantId: string, count: number): Promise<void> {
  await database.query(
    `INSERT INTO messages (tenant_id, message_id, session_id, credential_id, requested_context, client_message_id, content_hash, state,
       method, parts, user_input, trace_id, deadline_ms)
     SELECT $1, 'msg_waiting_' || n, 'ses_waiting_' || n, 'cred_waiting', '', 'waiting-' || n, '\\x00', 'input-required', 'message/send', '[]',
            '', '0', 1000 FROM generate_series(1, $2::int) AS n`,
    [tenantId, count],
  );
}
