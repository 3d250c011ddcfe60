/** What the console is measured with: requests that wait for a person, and messages that are over. */
import { setTimeout as delay } from 'node:timers/promises';
import { withDatabase } from '../harness/database.mjs';

const POLL_MS = 50;
/** The members of a message that is copied, with a number of its own. */
const COPIED = 'tenant_id, session_id, session_uuid, credential_id, method, metadata, want_agent_type, deadline_ms';

/** An id of the time at which the row was made, `n` milliseconds before now. */
const ID = `left(hex, 8) || '-' || right(hex, 4) || '-7000-8000-' || lpad(n::text, 12, '0')`;
const NUMBERED = `SELECT n, at, lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') AS hex
  FROM generate_series(1, $2::int) n, LATERAL (SELECT now() - n * interval '1 ms' AS at) t`;

/** @returns the message of a request that waits for a person, which the platform has asked */
async function ask(platform) {
  await platform.post('/agents/register', { agent_type: 'payments', instance_id: 'payments-1' });
  await platform.post('/policies/create_policy', {
    ...{ scope: 'admission', name: 'payments', decision: 'require_approval', match: { agent_types: ['payments'] } },
    evaluator: { approval: { timeout_seconds: 86_400 } },
  });
  const message = { kind: 'message', messageId: 'first', role: 'user', parts: [{ kind: 'text', text: 'Pay Ada' }] };
  const params = { message, metadata: { agent_type: 'payments' }, configuration: { blocking: false } };
  const { result } = await platform.post('/send', { jsonrpc: '2.0', id: 1, method: 'message/send', params });
  if (result.status.state === 'failed') throw new Error(JSON.stringify(result));
  while ((await platform.post('/requests/get', {})).requests.length === 0) await delay(POLL_MS);
  return result.id;
}

/** Has so many requests wait for a person: one that was asked, and copies of it. */
export async function addWaiting(platform, count) {
  const first = await ask(platform);
  await withDatabase(platform.dev.database_url, async (client) => {
    await client.query(
      `WITH numbered AS (${NUMBERED}),
       said AS (
         INSERT INTO messages (${COPIED}, message_id, client_message_id, state, parts, created_at, updated_at)
         SELECT ${COPIED}, 'msg_' || ${ID}, 'copy-' || n, state, parts, at, at
           FROM numbered, messages WHERE message_id = $1 RETURNING tenant_id, session_id, message_id, state, created_at),
       waiting AS (
         INSERT INTO running_messages (tenant_id, session_id, message_id, state, created_at, want_agent_type)
         SELECT tenant_id, session_id, message_id, state, created_at, 'payments' FROM said)
       INSERT INTO input_requests
       SELECT (jsonb_populate_record(request, jsonb_build_object(
                 'request_id', 'req_' || ${ID}, 'message_id', 'msg_' || ${ID}, 'requested_at', at,
                 'title', 'May payment ' || n || ' be made?'))).*
         FROM numbered, input_requests request WHERE message_id = $1`,
      [first, count - 1],
    );
    await client.query('ANALYZE');
  });
}

/** Adds so many messages that are over, of ten agents; every tenth has failed. */
export async function addMessages(platform, count) {
  await withDatabase(platform.dev.database_url, async (client) => {
    await client.query(
      `INSERT INTO messages (tenant_id, session_id, session_uuid, credential_id, method, deadline_ms, message_id, client_message_id,
                             parts, state, unsuccessful_state, error_code, agent_type, created_at, updated_at)
       SELECT $1, session_id, session_uuid(uuid_of($1), session_id), 'cred_bench', 'message/send', 1000, 'msg_' || ${ID}, 'over-' || n,
              jsonb_build_array(jsonb_build_object('kind', 'text', 'text', 'Order ' || n)), state,
              CASE state WHEN 'failed' THEN state END, CASE state WHEN 'failed' THEN 'LEDGER_AWAY' END, 'agent-' || n % 10, at, at
         FROM (${NUMBERED}) numbered,
              LATERAL (SELECT 'ses_over_' || n / 10 AS session_id, CASE n % 10 WHEN 0 THEN 'failed' ELSE 'completed' END AS state) made`,
      [platform.dev.tenant_id, count],
    );
    await client.query('ANALYZE');
  });
}
