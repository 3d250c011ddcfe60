-- A human decides about an open request. Request, audit row, message or plan, and events are written in one
-- transaction. The caller holds the lock of the message, or that of the plan, and has checked who decides and that the
-- answer fits. No session may be locked from here on: wherever a transaction locks both, it locks the session first.

-- `voter`: counts once towards the quorum. `stands_for`: the credentials of which this may be the vote: two approvals
-- with one in common do not both count. `arguments`: those that the approver edited, as text, else NULL. `digest`: of
-- what is approved. `answer`: what the next dispatch carries. `turn`: the answer to an agent's question as an A2A
-- message. `resolved_by`: in the event. `event_id`: of the first event.
CREATE TYPE resolve_call AS (
  tenant_id text, message_id text, request_id text, approval_id text, principal_type text, principal_id text,
  voter text, stands_for text[], resolution text,
  positive boolean, arguments text, digest text, comment text, ip text, answer jsonb, turn jsonb, resolved_by text,
  event_id text
);

-- Whether an approval with this digest could be the second one of the same person: the `stands_for` of an earlier one
-- has a credential in common.
CREATE FUNCTION is_second_approval(q input_requests, for_digest text, stands_for text[])
  RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT q.quorum > 1 AND EXISTS (SELECT 1 FROM input_decisions d
    WHERE d.tenant_id = q.tenant_id AND d.request_id = q.request_id AND d.digest = for_digest
      AND d.stands_for && is_second_approval.stands_for)
$$;

-- Writes the audit row of a decision. Gives false when the same voter has decided about the same before, and for a
-- second approval.
CREATE FUNCTION record_approval(q input_requests, c resolve_call) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF c.positive AND is_second_approval(q, c.digest, c.stands_for) THEN
    RETURN false;
  END IF;
  INSERT INTO input_decisions (tenant_id, approval_id, request_id, message_id, plan_id, kind, source, title, tool,
      arguments, executor, resolution, principal_type, principal_id, voter, stands_for, digest, arguments_changed,
        comment, ip)
    VALUES (q.tenant_id, c.approval_id, q.request_id, q.message_id, q.plan_id, q.kind, q.source, q.title, q.tool,
      q.arguments, q.executor, c.resolution, c.principal_type, c.principal_id, c.voter, c.stands_for, c.digest,
        c.arguments IS NOT NULL, c.comment, c.ip)
    ON CONFLICT (tenant_id, request_id, voter, digest) DO NOTHING;
  RETURN FOUND;
END $$;

-- Takes a decision about a request, of a message or a plan. Gives the request's state afterwards: `pending` while the
-- quorum is not reached, else `resolved`. NULL where record_approval gives false: the caller undoes the transaction.
CREATE FUNCTION take_decision(c resolve_call) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  q input_requests;
BEGIN
  UPDATE input_requests x SET arguments = coalesce(c.arguments::json, x.arguments), digest = c.digest
   WHERE x.tenant_id = c.tenant_id AND x.request_id = c.request_id RETURNING * INTO q;
  IF NOT record_approval(q, c) THEN
    RETURN NULL;
  END IF;
  -- One rejection ends a request, so all earlier decisions about it are approvals.
  IF c.positive AND q.quorum > (SELECT count(*) FROM input_decisions d
       WHERE d.tenant_id = q.tenant_id AND d.request_id = q.request_id AND d.digest = q.digest) THEN
    RETURN 'pending';
  END IF;
  UPDATE input_requests x SET state = 'resolved', answer = c.answer, ended_at = now()
   WHERE x.tenant_id = q.tenant_id AND x.request_id = q.request_id;
  RETURN 'resolved';
END $$;

-- Takes a decision about the request of a plan, whose lock the caller holds. Gives what take_decision gives.
CREATE FUNCTION resolve_plan_request(call jsonb) RETURNS text LANGUAGE sql AS $$
  SELECT take_decision(jsonb_populate_record(NULL::resolve_call, call))
$$;

-- input-required → working: the message goes on. A dispatch whose tool call waited stays the current one while it is at
-- work. Held output is delivered afterwards (deliver_held_answer), and no agent gets that answer.
CREATE FUNCTION continue_message(q input_requests, c resolve_call) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  dispatch_lives boolean;
BEGIN
  SELECT q.stage = 'tool' AND EXISTS (SELECT 1 FROM dispatches d
      WHERE d.tenant_id = q.tenant_id AND d.dispatch_id = r.current_dispatch_id AND d.state IN ('open', 'sent'))
        INTO dispatch_lives
    FROM running_messages r WHERE r.tenant_id = q.tenant_id AND r.message_id = q.message_id;
  UPDATE running_messages r SET state = 'working', approved = r.approved OR c.positive, unrouted_since = NULL,
      wake_requested_at = CASE WHEN NOT dispatch_lives THEN now() END,
      resolution = CASE WHEN dispatch_lives OR q.stage = 'output' THEN r.resolution ELSE c.answer END,
      current_dispatch_id = CASE WHEN dispatch_lives OR q.stage = 'output' THEN r.current_dispatch_id END
   WHERE r.tenant_id = q.tenant_id AND r.message_id = q.message_id;
  UPDATE messages m SET state = 'working', status_message = NULL, updated_at = now(),
      turns = CASE WHEN c.turn IS NULL THEN m.turns ELSE m.turns || c.turn END
   WHERE m.tenant_id = q.tenant_id AND m.message_id = q.message_id;
  PERFORM note_change(q.tenant_id, q.message_id);
END $$;

-- Gives the message's state afterwards: 'working'; 'failed' when a rejection ends it; 'input-required' while the quorum
-- is not reached. NULL as take_decision.
CREATE FUNCTION resolve_input(call jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  c resolve_call := jsonb_populate_record(NULL::resolve_call, call);
  request_state text := take_decision(c);
  q input_requests;
  trace text;
  continues boolean;
  resolved jsonb;
BEGIN
  IF request_state IS NULL THEN
    RETURN NULL;
  END IF;
  SELECT * INTO q FROM input_requests x WHERE x.tenant_id = c.tenant_id AND x.request_id = c.request_id;
  -- a worker wakes the message's workflow
  UPDATE input_requests x SET wake_requested_at = now() WHERE x.tenant_id = c.tenant_id AND x.request_id = c.request_id;
  IF request_state = 'pending' THEN
    UPDATE messages m SET updated_at = now() WHERE m.tenant_id = q.tenant_id AND m.message_id = q.message_id;
    PERFORM note_change(q.tenant_id, q.message_id);
    -- With edited arguments it is another question, so everybody who was asked is asked again.
    IF c.arguments IS NOT NULL THEN
      SELECT m.trace_id INTO trace FROM messages m WHERE m.tenant_id = q.tenant_id AND m.message_id = q.message_id;
      PERFORM record_request(q, trace, c.event_id);
    END IF;
    RETURN 'input-required';
  END IF;
  resolved := event_of('message.resolved', jsonb_build_object('message_id', q.message_id, 'session_id', q.session_id,
    'request_id', q.request_id, 'resolution', c.resolution, 'resolved_by', c.resolved_by));
  -- An agent that asked gets the refusal, and so does one that made a tool call where the policy says so.
  continues := c.positive OR q.stage = 'agent' OR q.stage = 'tool' AND q.on_reject = 'tell_agent';
  IF NOT continues THEN
    PERFORM fail_message(q.tenant_id, q.message_id, 'APPROVAL_REJECTED', 'The approval was rejected: ' || q.title,
      'withdrawn', c.event_id, resolved);
    RETURN 'failed';
  END IF;
  SELECT m.trace_id INTO trace FROM messages m WHERE m.tenant_id = q.tenant_id AND m.message_id = q.message_id;
  PERFORM record_group(q.tenant_id, c.event_id, q.session_id, q.message_id, NULL, trace, ARRAY[resolved]);
  PERFORM continue_message(q, c);
  RETURN 'working';
END $$;
