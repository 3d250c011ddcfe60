/** Reads what the database says of all messages after a long run. */
import { withDatabase } from '../database.mjs';

const MESSAGES = `
  SELECT m.tenant_id, m.message_id, m.session_id, m.client_message_id, m.state, m.error_code, m.error_message, m.usage, m.created_at, m.completed_at,
         d.dispatches, e.ends,
         (SELECT string_agg(part->>'text', '') FROM jsonb_array_elements(m.parts) part) AS question,
         (SELECT string_agg(part->>'text', '') FROM jsonb_array_elements(m.artifacts) artifact,
                 jsonb_array_elements(artifact->'parts') part) AS answer
    FROM messages m
    LEFT JOIN LATERAL (SELECT coalesce(json_agg(json_build_object('dispatch_id', dispatch_id, 'instance_id', instance_id, 'mesh_id', mesh_id,
                          'state', state, 'error_code', error_code, 'created_at', created_at, 'sent_at', sent_at, 'ended_at', ended_at)
                          ORDER BY created_at), '[]') AS dispatches
                         FROM dispatches d WHERE d.tenant_id = m.tenant_id AND d.message_id = m.message_id) d ON true
    LEFT JOIN LATERAL (SELECT coalesce(sum(count_of(g.types, event_bits('{message.completed,message.error,message.canceled}'))), 0)::integer AS ends
                         FROM event_groups g WHERE g.tenant_id = uuid_of(m.tenant_id) AND g.session_uuid = session_uuid(uuid_of(m.tenant_id), m.session_id)
                          AND g.message_id = uuid_of(m.message_id)) e ON true`;

/** All messages of the database, with their dispatches and the number of their end events. */
export function readRecord(databaseUrl) {
  return withDatabase(databaseUrl, async (client) => (await client.query(MESSAGES)).rows);
}

/** The same of one message. @param client connected to the database */
export async function readMessage(client, messageId) {
  const { rows } = await client.query(`${MESSAGES} WHERE m.message_id = $1`, [messageId]);
  return rows[0];
}

/** The dispatches of a message as JSON, to find the cause of a violation. */
export function dispatchesOf({ created_at, completed_at, dispatches }) {
  return JSON.stringify({ created_at, completed_at, dispatches });
}
