/** What the record says after a soak, and what of it must not be. */
import pg from 'pg';
import { answerTo } from './soak-load.mjs';

const MESSAGES = `
  SELECT m.message_id, m.state, m.error_code, m.user_input, m.assistant_output, m.created_at, m.completed_at, d.dispatches, e.ends
    FROM messages m
    LEFT JOIN LATERAL (SELECT coalesce(json_agg(json_build_object('instance_id', instance_id, 'mesh_id', mesh_id, 'state', state,
                          'error_code', error_code, 'created_at', created_at, 'sent_at', sent_at, 'ended_at', ended_at)
                          ORDER BY created_at), '[]') AS dispatches
                         FROM dispatches d WHERE d.tenant_id = m.tenant_id AND d.message_id = m.message_id) d ON true
    LEFT JOIN LATERAL (SELECT count(*)::integer AS ends FROM events e
                        WHERE e.tenant_id = m.tenant_id AND e.session_id = m.session_id AND e.payload->>'message_id' = m.message_id
                          AND e.event_type IN ('message.completed', 'message.error', 'message.canceled')) e ON true`;

/** Every message of the database. */
export async function readRecord(databaseUrl) {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    return (await client.query(MESSAGES)).rows;
  } finally {
    await client.end();
  }
}

/**
 * Violations of what docs/durability.md promises.
 * @param rows of `readRecord`
 * @param {{ accepted: Set<string>, begun: Map<string, number>, killed: string[] }} seen by the callers, the agents and whoever killed nodes
 */
export function judgeRecord(rows, { accepted, begun, killed }) {
  const known = new Set(rows.map((row) => row.message_id));
  const missing = [...accepted].filter((id) => !known.has(id));
  const violations = missing.map((id) => `${id} was accepted and is not on the record`);
  for (const row of rows) {
    const { message_id: id, state, error_code: code } = row;
    const say = (what) => violations.push(`${id} (${row.user_input}) ${what}`);
    if (row.ends !== 1) say(`has ended ${row.ends} times`);
    if ((begun.get(id) ?? 0) > 1) say(`was begun ${begun.get(id)} times by agents`);
    if (state === 'completed' && row.assistant_output !== answerTo(row.user_input)) say('has another answer');
    if (state === 'failed' && !isAllowedLoss(row, killed)) say(`failed with ${code}: ${pathOf(row)}`);
    if (state !== 'completed' && state !== 'failed') say(`is ${state}`);
  }
  return violations;
}

/** What a node had in hand when it was killed is lost, and nothing else. */
function isAllowedLoss({ error_code, dispatches }, killed) {
  return error_code === 'AGENT_DISCONNECTED' && killed.includes(dispatches.at(-1)?.mesh_id);
}

/** For whoever looks for the cause. */
function pathOf({ created_at, completed_at, dispatches }) {
  return JSON.stringify({ created_at, completed_at, dispatches });
}
