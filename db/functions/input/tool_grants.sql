-- Tool calls that need approval: how a call comes to wait for a human, and how a decision is used once
-- (0004_input_requests.sql). Every function locks the message first, as all transitions do, so that a call, an answer
-- and the end of the dispatch have an order.

-- `use_id`: of this call alone, and the same when it asks again because no answer came. `request`: a
-- `new_input_request`. `event_id`: of the first event, if the message fails.
CREATE TYPE hold_call AS (
  tenant_id text, message_id text, dispatch_id text, node_id text, use_id uuid, target jsonb, call jsonb,
    request jsonb, event_id text
);

-- How a call goes on. Its `kind` is `waits`: for the decision on this request. `occupied`: another request of the
-- message is open, and the call is to be held again once that request is over. `granted`: it passes, with these
-- arguments; the grant is used. `used`: a call with the same idempotency key has used the grant, in a process that this
-- one knows nothing of. `used_by_other`: another call has used the grant, for example a repeat in a later dispatch.
-- `rejected`: a human has said no to this very call. `failed`: the agent asked again and again, and its message has
-- failed; `freed_id` is the agent that had it. `closed`: the dispatch is over, or its caller is gone. `expired`,
-- `withdrawn`: the request is.
CREATE TYPE grant_answer AS (kind text, request_id text, arguments json, comment text, freed_id text);

-- How often the message asked for a tool in vain since its last call of that tool passed.
CREATE FUNCTION asked_in_vain(of_tenant text, of_message text, of_tool text)
  RETURNS integer LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (WITH asked AS (
      SELECT q.state, g.used_at IS NOT NULL AND is_affirmative(q) AS called, q.requested_at
        FROM tool_grants g JOIN input_requests q USING (tenant_id, request_id)
       WHERE g.tenant_id = of_tenant AND g.message_id = of_message AND q.tool = of_tool)
    SELECT count(*)::integer FROM asked a
     WHERE a.state <> 'pending' AND NOT a.called
       AND a.requested_at > coalesce((SELECT max(c.requested_at) FROM asked c WHERE c.called), '-infinity'));
END $$;

-- Whether a request was answered with yes.
CREATE FUNCTION is_affirmative(q input_requests) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT q.state = 'resolved' AND coalesce(q.answer ->> 'resolution', '') IN ('approved', 'confirmed', 'submitted')
$$;

-- Holds a call that needs approval: asks the human, unless the record says already how the call goes on. The same call,
-- that is of the same tool, arguments and target, is asked about once; a grant for edited arguments also lets the call
-- pass that it was asked for.
CREATE FUNCTION hold_tool_call(given jsonb) RETURNS SETOF grant_answer LANGUAGE plpgsql AS $$
DECLARE
  c hold_call := jsonb_populate_record(NULL::hold_call, given);
  n new_input_request := jsonb_populate_record(NULL::new_input_request, c.request);
  d dispatches;
  same record; -- the last grant of the same call
  q input_requests; -- the request of that grant
  left_ms bigint; -- of the dispatch's deadline
BEGIN
  PERFORM act_for_tenant(c.tenant_id);
  d := lock_dispatch(c.tenant_id, c.message_id, c.dispatch_id);
  IF d.state IS DISTINCT FROM 'sent' THEN
    RETURN NEXT ('closed', NULL, NULL, NULL, NULL)::grant_answer;
    RETURN;
  END IF;
  SELECT i AS request, g.used_at, g.used_by,
         coalesce(g.used_at >= d.sent_at
           AND g.call #>> '{payload,idempotency_key}' = c.call #>> '{payload,idempotency_key}', false) AS is_repeat
    INTO same FROM tool_grants g JOIN input_requests i USING (tenant_id, request_id)
   WHERE g.tenant_id = c.tenant_id AND g.message_id = c.message_id AND g.target = c.target AND i.tool = n.tool
     AND n.digest IN (i.digest, g.asked_digest)
   ORDER BY is_repeat DESC, i.requested_at DESC LIMIT 1;
  q := same.request;
  IF q.state = 'pending' THEN
    UPDATE tool_grants g SET node_id = c.node_id, call = c.call, answered_at = NULL
      WHERE g.tenant_id = c.tenant_id AND g.request_id = q.request_id;
    RETURN NEXT ('waits', q.request_id, NULL, NULL, NULL)::grant_answer;
  ELSIF is_affirmative(q) AND (same.used_at IS NULL OR same.used_by = c.use_id) THEN
    UPDATE tool_grants g SET used_at = coalesce(g.used_at, clock_timestamp()), used_by = c.use_id, call = c.call
     WHERE g.tenant_id = c.tenant_id AND g.request_id = q.request_id;
    RETURN NEXT ('granted', q.request_id, q.arguments, NULL, NULL)::grant_answer;
  ELSIF is_affirmative(q) AND same.is_repeat THEN
    RETURN NEXT ('used', q.request_id, NULL, NULL, NULL)::grant_answer;
  ELSIF q.state = 'resolved' AND NOT is_affirmative(q) THEN
    UPDATE tool_grants g SET used_at = coalesce(g.used_at, clock_timestamp())
      WHERE g.tenant_id = c.tenant_id AND g.request_id = q.request_id;
    RETURN NEXT ('rejected', q.request_id, NULL, q.answer ->> 'comment', NULL)::grant_answer;
  -- The third time that it asks again.
  ELSIF asked_in_vain(c.tenant_id, c.message_id, n.tool) >= 3 THEN
    PERFORM fail_message(c.tenant_id, c.message_id,
      CASE WHEN n.source = 'guard' THEN 'GUARD_DENIED' ELSE 'POLICY_DENIED' END,
        'The agent asked for approval of ' || n.tool || ' three times again, each time for another call.',
        'withdrawn', c.event_id);
    RETURN NEXT ('failed', NULL, NULL, NULL, d.instance_id)::grant_answer;
  ELSIF NOT ask_about_message(c.tenant_id, c.message_id, c.request) THEN
    SELECT * INTO q FROM input_requests i
      WHERE i.tenant_id = c.tenant_id AND i.message_id = c.message_id AND i.state = 'pending';
    RETURN NEXT ('occupied', q.request_id, NULL, NULL, NULL)::grant_answer;
  ELSE
    left_ms := greatest(1, milliseconds_between(now(), d.deadline_at));
    UPDATE dispatches x SET deadline_at = NULL WHERE x.tenant_id = c.tenant_id AND x.dispatch_id = c.dispatch_id;
    INSERT INTO tool_grants (tenant_id, request_id, message_id, dispatch_id, deadline_left_ms, asked_digest, target,
      node_id, call)
      VALUES (c.tenant_id, n.request_id, c.message_id, c.dispatch_id, left_ms, n.digest, c.target, c.node_id, c.call);
    RETURN NEXT ('waits', n.request_id, NULL, NULL, NULL)::grant_answer;
  END IF;
END $$;

-- Uses the decision on a request for the call that waits for it, if the dispatch that made the call still lives. If the
-- call `by_use` has used the grant before, it gets `granted` again: it asks because the answer did not reach it.
-- `may_pass` false: the caller is gone, and the grant stays for the next call. A request that was withdrawn because its
-- dispatch ended gives `closed`.
CREATE FUNCTION use_tool_grant(of_tenant text, of_message text, of_dispatch text, of_request text, may_pass boolean,
  by_use uuid)
  RETURNS SETOF grant_answer LANGUAGE plpgsql AS $$
DECLARE
  d dispatches;
  q input_requests;
  used tool_grants;
BEGIN
  PERFORM act_for_tenant(of_tenant);
  d := lock_dispatch(of_tenant, of_message, of_dispatch);
  SELECT * INTO q FROM input_requests i WHERE i.tenant_id = of_tenant AND i.request_id = of_request;
  SELECT * INTO used FROM tool_grants g WHERE g.tenant_id = of_tenant AND g.request_id = of_request;
  IF q.state = 'resolved' AND NOT is_affirmative(q) THEN
    UPDATE tool_grants g SET used_at = coalesce(g.used_at, clock_timestamp())
     WHERE g.tenant_id = of_tenant AND g.request_id = of_request AND d.state = 'sent';
    RETURN NEXT ('rejected', of_request, NULL, q.answer ->> 'comment', NULL)::grant_answer;
  ELSIF q.state = 'expired' THEN
    RETURN NEXT ('expired', of_request, NULL, NULL, NULL)::grant_answer;
  ELSIF d.state IS DISTINCT FROM 'sent' THEN
    RETURN NEXT ('closed', of_request, NULL, NULL, NULL)::grant_answer;
  ELSIF q.state = 'withdrawn' THEN
    RETURN NEXT ('withdrawn', of_request, NULL, NULL, NULL)::grant_answer;
  ELSIF used.used_at IS NOT NULL AND used.used_by IS DISTINCT FROM by_use THEN
    RETURN NEXT ('used_by_other', of_request, NULL, NULL, NULL)::grant_answer;
  ELSIF q.state = 'pending' THEN
    RETURN NEXT ('waits', of_request, NULL, NULL, NULL)::grant_answer;
  ELSIF NOT may_pass AND used.used_at IS NULL THEN
    RETURN NEXT ('closed', of_request, NULL, NULL, NULL)::grant_answer;
  ELSE
    UPDATE tool_grants g SET used_at = coalesce(g.used_at, clock_timestamp()), used_by = by_use
     WHERE g.tenant_id = of_tenant AND g.request_id = of_request;
    RETURN NEXT ('granted', of_request, q.arguments, NULL, NULL)::grant_answer;
  END IF;
END $$;

-- Makes a grant unused again: the call `by_use` passed, but reached no agent or tool.
CREATE FUNCTION return_tool_grant(of_tenant text, of_request text, by_use uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM act_for_tenant(of_tenant);
  UPDATE tool_grants g SET used_at = NULL, used_by = NULL
   WHERE g.tenant_id = of_tenant AND g.request_id = of_request AND g.used_by = by_use;
END $$;

-- input-required → working: the agent has withdrawn the call that waits. Gives whether the request was still open.
CREATE FUNCTION withdraw_tool_call(of_tenant text, of_message text, of_dispatch text, of_request text)
  RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  d dispatches;
BEGIN
  PERFORM act_for_tenant(of_tenant);
  d := lock_dispatch(of_tenant, of_message, of_dispatch);
  UPDATE input_requests q SET state = 'withdrawn', ended_at = now(), wake_requested_at = now()
   WHERE q.tenant_id = of_tenant AND q.request_id = of_request AND q.message_id = of_message AND q.state = 'pending'
     AND d.state = 'sent';
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  UPDATE running_messages r SET state = 'working', wake_requested_at = NULL
    WHERE r.tenant_id = of_tenant AND r.message_id = of_message;
  UPDATE messages m SET state = 'working', updated_at = now()
    WHERE m.tenant_id = of_tenant AND m.message_id = of_message;
  PERFORM note_change(of_tenant, of_message);
  RETURN true;
END $$;

-- Makes another node answer the tool calls of these dispatches that wait or whose result was not sent, and gives them.
-- `used_by` says that a call has passed; what the former node did with it is unknown.
CREATE FUNCTION take_over_tool_calls(of_tenant text, of_dispatches text[], by_node text)
  RETURNS SETOF tool_grants LANGUAGE plpgsql AS $$
BEGIN
  PERFORM act_for_tenant(of_tenant);
  RETURN QUERY UPDATE tool_grants g SET node_id = by_node
    WHERE g.tenant_id = of_tenant AND g.dispatch_id = ANY (of_dispatches) AND g.answered_at IS NULL RETURNING g.*;
END $$;
