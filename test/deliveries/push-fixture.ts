import type { FreshDatabase } from '../setup/database.js';

interface Changed {
  tenant_id: string;
  message_id: string;
  url: string;
  state?: string;
}

/** Writes a change of state of a message, of which its config `c` is to be notified; the message and the config with its first change. */
export async function writeChange(
  database: FreshDatabase,
  { tenant_id, message_id, url, state = 'completed' }: Changed,
): Promise<void> {
  await database.query(
    `INSERT INTO messages (tenant_id, message_id, session_id, session_uuid, credential_id, client_message_id, method, parts, trace_id, deadline_ms, state)
     VALUES ($1, $2, 'ses_1', session_uuid(uuid_of($1), 'ses_1'), 'cred_1', $2, 'message/send', '[]', '', 1000, $3) ON CONFLICT DO NOTHING`,
    [tenant_id, message_id, state],
  );
  await database.query(
    `INSERT INTO push_configs (tenant_id, message_id, config_id, url, schemes, protocol_version) VALUES ($1, $2, 'c', $3, '{}', '0.3')
       ON CONFLICT DO NOTHING`,
    [tenant_id, message_id, url],
  );
  const change = "INSERT INTO push_changes (tenant_id, message_id, config_id, state) VALUES ($1, $2, 'c', $3)";
  await database.query(change, [tenant_id, message_id, state]);
}
