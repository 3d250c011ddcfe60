-- Requests to humans: how they are written, and how a message comes to wait for one.

-- `inputRequestCall` in messages/input/ask.ts. `schema` and `arguments`: JSON as text, because jsonb, in which it
-- comes, sorts members. `event_id`: of the first event.
CREATE TYPE new_input_request AS (
  request_id text, kind text, source text, stage text, title text, prompt text, schema text, fields jsonb, action text,
  tool text, arguments text, executor jsonb, path text, policy_id text, policy_name text, guard text,
  policy_request jsonb, digest text, approvers text[], quorum integer, allow_self boolean, on_reject text,
  reminder_seconds integer, escalate_to text[], timeout_ms bigint, event_id text
);

-- Writes the event that asks about a plan, as `record_request` does.
CREATE FUNCTION record_plan_request(q input_requests, event_id text, reminder jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM record_event(q.tenant_id, event_id, 'plan.approval_required', 'warning', q.session_id, NULL,
    jsonb_build_object(
      'plan_id', q.plan_id, 'session_id', q.session_id, 'request_id', q.request_id, 'title', q.title,
      'description', p.description, 'reason', q.prompt, 'policy_id', q.policy_id, 'guard', q.guard,
      'expires_at', to_char(q.expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) || reminder)
    FROM plans p WHERE p.tenant_id = q.tenant_id AND p.plan_id = q.plan_id;
END $$;

-- Writes the events that ask the human, and the same ones for each reminder, with its number. `ended`: the event of the
-- dispatch that ended with the question, as `event_of` makes it.
CREATE FUNCTION record_request(q input_requests, trace_id text, event_id text, of_dispatch text DEFAULT NULL,
  ended jsonb DEFAULT NULL)
  RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  about jsonb := jsonb_build_object('action', coalesce(q.action, ''), 'tool', q.tool, 'message_id', q.message_id);
  reminder jsonb := CASE WHEN q.reminders > 0 THEN jsonb_build_object('reminder', q.reminders) ELSE '{}' END;
BEGIN
  IF q.plan_id IS NOT NULL THEN
    PERFORM record_plan_request(q, event_id, reminder);
    RETURN;
  END IF;
  PERFORM record_group(q.tenant_id, event_id, q.session_id, q.message_id, of_dispatch, trace_id, ARRAY[ended,
    event_of('message.input_required', jsonb_build_object('message_id', q.message_id, 'session_id', q.session_id,
      'request_id', q.request_id, 'kind', q.kind, 'source', q.source, 'title', q.title) || reminder),
    -- A policy and a guard may ask together.
    CASE WHEN q.policy_id IS NOT NULL THEN event_of('policy.approval_required', about || reminder
      || jsonb_build_object('policy_id', q.policy_id, 'policy_name', q.policy_name, 'session_id', q.session_id),
        'warning') END,
    CASE WHEN q.guard IS NOT NULL THEN event_of('guard.approval_required', about || reminder
      || jsonb_build_object('guard', q.guard, 'path', q.path), 'warning') END]);
END $$;

-- Writes a request, about a message or a plan.
CREATE FUNCTION insert_request(of_tenant text, of_message text, of_plan text, of_session text, n new_input_request)
  RETURNS input_requests
  LANGUAGE plpgsql AS $$
DECLARE
  q input_requests;
BEGIN
  INSERT INTO input_requests (tenant_id, request_id, message_id, plan_id, session_id, kind, source, stage, title,
      prompt, schema, fields, action, tool, arguments, executor, path, policy_id, policy_name, guard, policy_request,
      digest, approvers, quorum, allow_self, on_reject, escalate_to, reminder_seconds, remind_at, state, expires_at)
    VALUES (of_tenant, n.request_id, of_message, of_plan, of_session, n.kind, n.source, n.stage, n.title, n.prompt,
      n.schema::json, n.fields, n.action, n.tool, n.arguments::json, n.executor, n.path, n.policy_id, n.policy_name,
      n.guard, n.policy_request, n.digest, coalesce(n.approvers, '{}'), coalesce(n.quorum, 1),
      coalesce(n.allow_self, true), coalesce(n.on_reject, 'fail'), coalesce(n.escalate_to, '{}'), n.reminder_seconds,
      now() + coalesce(n.reminder_seconds * interval '1 s',
      CASE WHEN n.escalate_to <> '{}' THEN n.timeout_ms / 2 * interval '1 ms' END),
      'pending', now() + n.timeout_ms * interval '1 ms')
    RETURNING * INTO q;
  RETURN q;
END $$;

-- Writes the request about a new plan, with its event where somebody is to be told of it.
CREATE FUNCTION open_plan_request(of_tenant text, of_plan text, of_session text, request jsonb, announced boolean)
  RETURNS void
  LANGUAGE plpgsql AS $$
DECLARE
  n new_input_request := jsonb_populate_record(NULL::new_input_request, request);
  q input_requests := insert_request(of_tenant, NULL, of_plan, of_session, n);
BEGIN
  IF announced THEN
    PERFORM record_request(q, NULL, n.event_id);
  END IF;
END $$;

-- Writes a request and its events, those of `record_request`. The message is `input-required` by the same transaction,
-- and no other request of it is open.
CREATE FUNCTION open_request(of_tenant text, of_message text, of_session text, trace_id text, n new_input_request,
  of_dispatch text DEFAULT NULL, ended jsonb DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  q input_requests := insert_request(of_tenant, of_message, NULL, of_session, n);
BEGIN
  PERFORM record_request(q, trace_id, n.event_id, of_dispatch, ended);
  -- A session that reserves its place gives it up while it waits for a human. The accept transaction does not wait for
  -- the session's row: if another transaction has locked it, the session keeps its place.
  IF n.stage IN ('admission', 'plan')
      AND EXISTS (SELECT 1 FROM sessions s
      WHERE s.tenant_id = of_tenant AND s.session_id = of_session AND s.reserves AND NOT s.suspended)
      AND lock_session_at_once(of_tenant, of_session) THEN
    UPDATE sessions s SET suspended = true WHERE s.tenant_id = of_tenant AND s.session_id = of_session;
  END IF;
END $$;

-- submitted | working → input-required, for a request of the platform itself (askInput). A dispatch that is at work
-- goes on (stage `tool`). Gives false, and nothing is written, when a request is open already.
CREATE FUNCTION ask_about_message(of_tenant text, of_message text, request jsonb) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  n new_input_request := jsonb_populate_record(NULL::new_input_request, request);
  message record;
BEGIN
  UPDATE running_messages r SET state = 'input-required', unrouted_since = NULL, queue = NULL, wait_ends_at = NULL,
      repeat_until = NULL, wake_requested_at = now(),
      holds_slot = r.holds_slot AND n.stage = 'tool'
   WHERE r.tenant_id = of_tenant AND r.message_id = of_message
     AND coalesce(r.state, '') IN ('submitted', 'working'); -- as in open_queued
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  UPDATE messages m SET state = 'input-required', status_message = NULL, updated_at = now()
   WHERE m.tenant_id = of_tenant AND m.message_id = of_message RETURNING m.session_id, m.trace_id INTO message;
  PERFORM note_change(of_tenant, of_message);
  IF n.stage <> 'tool' THEN
    UPDATE sessions s SET suspended = true
      WHERE s.tenant_id = of_tenant AND s.session_id = message.session_id AND s.reserves;
  END IF;
  PERFORM open_request(of_tenant, of_message, message.session_id, message.trace_id, n);
  RETURN true;
END $$;

-- The time from a reminder to the next one: as the policy says, but at least a minute and a thousandth of the request's
-- lifetime, because each reminder costs events, deliveries and a workflow task. NULL: there is no next one.
CREATE FUNCTION next_reminder(reminder_seconds integer, lifetime interval) RETURNS interval LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN reminder_seconds IS NOT NULL
    THEN greatest(reminder_seconds * interval '1 s', interval '60 s', lifetime / 1000) END
$$;

-- Asks again about a request that nobody has decided: the same events with their number, and the next reminder. The
-- first one escalates: from then on `escalate_to` may decide too. Without a reminder of its own, escalation comes at
-- half of the time.
CREATE FUNCTION remind_of_request(of_tenant text, of_request text, at timestamptz, event_id text)
  RETURNS SETOF input_requests
  LANGUAGE plpgsql AS $$
DECLARE
  q input_requests;
BEGIN
  UPDATE input_requests x SET reminders = x.reminders + 1,
      remind_at = at + next_reminder(x.reminder_seconds, x.expires_at - x.requested_at),
        approvers = CASE WHEN x.reminders = 0 THEN x.approvers || x.escalate_to ELSE x.approvers END
   WHERE x.tenant_id = of_tenant AND x.request_id = of_request RETURNING * INTO q;
  PERFORM record_request(q, (SELECT m.trace_id FROM messages m
    WHERE m.tenant_id = q.tenant_id AND m.message_id = q.message_id), event_id);
  RETURN NEXT q;
END $$;

-- Writes the audit row of a request that nobody decided in time, which counts as a refusal. The caller fails the
-- message, or rejects the plan.
CREATE FUNCTION record_expiry(of_tenant text, of_request text, approval_id text) RETURNS void LANGUAGE sql AS $$
  INSERT INTO input_decisions (tenant_id, approval_id, request_id, message_id, plan_id, kind, source, title, tool,
      arguments, executor, resolution, principal_type, principal_id, voter, digest)
    SELECT q.tenant_id, record_expiry.approval_id, q.request_id, q.message_id, q.plan_id, q.kind, q.source, q.title,
           q.tool, q.arguments, q.executor, 'expired', 'system', 'expiry', 'system', q.digest
      FROM input_requests q WHERE q.tenant_id = of_tenant AND q.request_id = of_request
$$;
