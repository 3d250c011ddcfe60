/** Reads all messages from the database after a soak and finds violations. */
import pg from 'pg';
import { expectedAnswer } from './load.mjs';

const MESSAGES = `
  SELECT m.message_id, m.state, m.error_code, m.created_at, m.completed_at, d.dispatches, e.ends,
         (SELECT string_agg(part->>'text', '') FROM jsonb_array_elements(m.parts) part) AS question,
         (SELECT string_agg(part->>'text', '') FROM jsonb_array_elements(m.artifacts) artifact,
                 jsonb_array_elements(artifact->'parts') part) AS answer
    FROM messages m
    LEFT JOIN LATERAL (SELECT coalesce(json_agg(json_build_object('instance_id', instance_id, 'mesh_id', mesh_id, 'state', state,
                          'error_code', error_code, 'created_at', created_at, 'sent_at', sent_at, 'ended_at', ended_at)
                          ORDER BY created_at), '[]') AS dispatches
                         FROM dispatches d WHERE d.tenant_id = m.tenant_id AND d.message_id = m.message_id) d ON true
    LEFT JOIN LATERAL (SELECT count(*)::integer AS ends FROM event_groups g CROSS JOIN LATERAL jsonb_array_elements(g.events) e
                        WHERE g.tenant_id = m.tenant_id AND g.session_id = m.session_id AND g.message_id = right(m.message_id, 36)::uuid
                          AND e->>0 IN ('message.completed', 'message.error', 'message.canceled')) e ON true`;

/** All messages of the database, with their dispatches and the number of their end events. */
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
 * Violations of the guarantees of docs/durability.md.
 * @param rows of `readRecord`
 * @param {{ accepted: Set<string>, started: Map<string, number>, killed: string[] }} observed message ids that callers saw accepted, starts that agents
 *   counted, mesh ids of killed nodes
 */
export function judgeRecord(rows, { accepted, started, killed }) {
  const known = new Set(rows.map((row) => row.message_id));
  const missing = [...accepted].filter((id) => !known.has(id));
  const violations = missing.map((id) => `${id} was accepted and is not in the database`);
  for (const row of rows) {
    const { message_id: id, state, error_code: code } = row;
    const report = (violation) => violations.push(`${id} (${row.question}) ${violation}`);
    if (row.ends !== 1) report(`has ended ${row.ends} times`);
    if ((started.get(id) ?? 0) > 1) report(`was started ${started.get(id)} times by agents`);
    if (state === 'completed' && row.answer !== expectedAnswer(row.question)) report('has another answer');
    if (state === 'failed' && !isAllowedLoss(row, killed)) report(`failed with ${code}: ${dispatchesOf(row)}`);
    if (state !== 'completed' && state !== 'failed') report(`is ${state}`);
  }
  return violations;
}

/** Only a message in flight on a killed node may be lost. */
function isAllowedLoss({ error_code, dispatches }, killed) {
  return error_code === 'AGENT_DISCONNECTED' && killed.includes(dispatches.at(-1)?.mesh_id);
}

/** The dispatches of a message as JSON, to find the cause of a violation. */
function dispatchesOf({ created_at, completed_at, dispatches }) {
  return JSON.stringify({ created_at, completed_at, dispatches });
}
