const OF_EVENTS = 'tenant_id = uuid_of($1) AND group_id = ANY (ARRAY(SELECT group_of(id) FROM unnest($4) AS id))';
const CREATED = `event_bit('session.created')`;

/** The first event of a session stays where it was written with those of a message: before the others are erased, with the same parameters. */
export const KEEP_SESSION_CREATED = `
  UPDATE event_groups SET message_id = NULL, dispatch_id = NULL, trace_id = NULL, instance_mark = 0, types = ${CREATED},
    events = json_build_array(events -> 0) WHERE ${OF_EVENTS} AND types & ${CREATED} <> 0`;

/** Plans whose steps the messages did lose what they are about, with the same parameters: the plan itself goes with its session. */
export const FORGET_PLAN_TEXTS = `
  UPDATE plans SET description = '', error_message = NULL WHERE tenant_id = $1
    AND plan_id IN (SELECT p.plan_id FROM plan_messages p WHERE p.tenant_id = $1 AND p.message_id = ANY ($2))`;

/** Sessions of the messages, so that nobody counts these while they are erased; with the same parameters. */
export const LOCK_SESSIONS = `
  SELECT 1 FROM sessions s WHERE s.tenant_id = $1
    AND s.session_id = ANY (ARRAY(SELECT m.session_id FROM messages m WHERE m.tenant_id = $1 AND m.message_id = ANY ($2)))
   ORDER BY s.session_id FOR NO KEY UPDATE`;

/** Totals that have the messages in them are counted anew; with the same parameters, under those locks. */
export const FORGET_TOTALS = `
  DELETE FROM session_totals t WHERE t.tenant_id = $1
    AND t.session_id = ANY (ARRAY(SELECT m.session_id FROM messages m WHERE m.tenant_id = $1 AND m.message_id = ANY ($2)))`;

/** An entry of the audit about a decision keeps who, when, the tool and the digest. */
const FORGET_DECISION = `target_name = NULL, ip = NULL, after = (after::jsonb - '{arguments,comment}'::text[])::json`;
const HOLDS_CONTENT = `(target_name IS NOT NULL OR ip IS NOT NULL OR after::jsonb ?| '{arguments,comment}')`;

/**
 * What belongs to messages, in the order in which it is removed: for each table a statement with the parameters $1 tenant, $2 messages,
 * $3 their dispatches, $4 their events. Every table with a `message_id` or `dispatch_id` is here (a test reads the catalogue). Decisions about
 * the messages keep who, when and the digest, and lose the rest; steps of plans lose their text.
 */
export const MESSAGE_TABLES: Readonly<Record<string, string>> = {
  delivery_queue: `DELETE FROM delivery_queue q WHERE q.tenant_id = $1 AND (q.input ->> 'message_id' = ANY ($2)
    OR q.queue_id IN (SELECT d.delivery_id FROM deliveries d WHERE d.tenant_id = $1 AND d.event_id = ANY ($4)))`,
  push_changes: 'DELETE FROM push_changes WHERE tenant_id = $1 AND message_id = ANY ($2)',
  deliveries: `DELETE FROM deliveries
    WHERE tenant_id = $1 AND (event_id = ANY ($4) OR config_id IS NOT NULL AND message_id = ANY ($2))`,
  push_configs: 'DELETE FROM push_configs WHERE tenant_id = $1 AND message_id = ANY ($2)',
  callback_tokens: 'DELETE FROM callback_tokens WHERE tenant_id = $1 AND message_id = ANY ($2)',
  tool_grants: 'DELETE FROM tool_grants WHERE tenant_id = $1 AND message_id = ANY ($2)',
  input_decisions: `UPDATE input_decisions SET comment = NULL, ip = NULL, title = NULL, arguments = NULL
    WHERE tenant_id = $1 AND message_id = ANY ($2) AND num_nonnulls(comment, ip, title, arguments) > 0`,
  audit_entries: `UPDATE audit_entries SET ${FORGET_DECISION}
    WHERE tenant_id = $1 AND message_id = ANY ($2) AND ${HOLDS_CONTENT}`,
  input_requests: 'DELETE FROM input_requests WHERE tenant_id = $1 AND message_id = ANY ($2)',
  dispatch_transfers: 'DELETE FROM dispatch_transfers WHERE tenant_id = $1 AND dispatch_id = ANY ($3)',
  dispatches: 'DELETE FROM dispatches WHERE tenant_id = $1 AND dispatch_id = ANY ($3)',
  plan_steps: `UPDATE plan_steps SET parts = '[]', description = '', error_message = NULL, message_id = NULL
    WHERE tenant_id = $1 AND (plan_id, place) IN (SELECT p.plan_id, p.place FROM plan_messages p WHERE p.tenant_id = $1 AND p.message_id = ANY ($2))`,
  plan_messages: 'DELETE FROM plan_messages WHERE tenant_id = $1 AND message_id = ANY ($2)',
  idempotency_keys: `DELETE FROM idempotency_keys k USING messages m
    WHERE m.tenant_id = $1 AND m.message_id = ANY ($2) AND k.message_id = uuid_of(m.message_id) AND k.idempotency_key = ANY (ARRAY[
      idempotency_key(m.tenant_id, m.credential_id, NULL, '', m.client_message_id),
      idempotency_key(m.tenant_id, m.credential_id, m.user_id, '', m.client_message_id),
      idempotency_key(m.tenant_id, m.credential_id, NULL, m.session_id, m.client_message_id),
      idempotency_key(m.tenant_id, m.credential_id, m.user_id, m.session_id, m.client_message_id)])`,
  counted_usage: 'DELETE FROM counted_usage WHERE tenant_id = $1 AND message_id = ANY ($2)',
  late_changes: 'DELETE FROM late_changes WHERE tenant_id = $1 AND message_id = ANY ($2)',
  running_messages: 'DELETE FROM running_messages WHERE tenant_id = $1 AND message_id = ANY ($2)',
  event_groups: `DELETE FROM event_groups WHERE ${OF_EVENTS} AND types & ${CREATED} = 0`,
  messages: 'DELETE FROM messages WHERE tenant_id = $1 AND message_id = ANY ($2)',
  // After the messages, whose lock a process holds that adds a span.
  trace_spans: 'DELETE FROM trace_spans WHERE tenant_id = $1 AND message_id = ANY ($2)',
};

const OF_SESSION = 'plan_id IN (SELECT p.plan_id FROM plans p WHERE p.tenant_id = $1 AND p.session_id = $2)';

/** Decisions about the plans of a session keep who, when and the digest, as those about messages do: $1 tenant, $2 session. */
export const FORGET_PLAN_DECISIONS: Readonly<Record<string, string>> = {
  input_decisions: `UPDATE input_decisions SET comment = NULL, ip = NULL, title = NULL, arguments = NULL
    WHERE tenant_id = $1 AND num_nonnulls(comment, ip, title, arguments) > 0 AND ${OF_SESSION}`,
  audit_entries: `UPDATE audit_entries SET ${FORGET_DECISION} WHERE tenant_id = $1 AND ${OF_SESSION} AND ${HOLDS_CONTENT}`,
};

/** What belongs to sessions beside their messages and events: $1 tenant, $2 session. Parts of plans go with them. */
export const SESSION_TABLES: Readonly<Record<string, string>> = {
  // By its hours, which the key has before the session.
  usage_sessions: `DELETE FROM usage_sessions u USING sessions s
    WHERE s.tenant_id = $1 AND s.session_id = $2 AND u.tenant_id = uuid_of($1) AND u.session_uuid = session_uuid(uuid_of($1), $2)
      AND u.hour BETWEEN s.created_at - interval '2 hours' AND coalesce(s.ended_at, now()) + interval '2 hours'`,
  plans: 'DELETE FROM plans WHERE tenant_id = $1 AND session_id = $2',
  session_totals: 'DELETE FROM session_totals WHERE tenant_id = $1 AND session_id = $2',
  session_agents: 'DELETE FROM session_agents WHERE tenant_id = $1 AND session_id = $2',
  sessions: 'DELETE FROM sessions WHERE tenant_id = $1 AND session_id = $2',
};
