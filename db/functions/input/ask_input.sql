-- sent → input_required: the agent asks a human, or a guard does about its answer, which is held until then. The
-- dispatch ends, the message waits, and a session that reserves its place is suspended and gives up its slot.

-- `epoch`: of the connection that brought the answer. `turn`: the agent's question as an A2A message. `held_output`:
-- what waits for the human, as text; the message's own output is as it was before. `request`: a new_input_request.
CREATE TYPE ask_call AS (
  tenant_id text, message_id text, dispatch_id text, session_id text, epoch bigint, artifacts jsonb, usage jsonb,
  status_message jsonb, turn jsonb, remote_task_id text, remote_context_id text, held_output text, request jsonb,
  decisions jsonb
);

-- submitted | working → input-required, with the output so far. The caller holds the locks of session and message.
-- `ended`: as in open_request.
CREATE FUNCTION wait_for_answer(c ask_call, ended jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  trace text;
BEGIN
  UPDATE messages m SET state = 'input-required', artifacts = c.artifacts, usage = c.usage,
      status_message = c.status_message, turns = CASE WHEN c.turn IS NULL THEN m.turns ELSE m.turns || c.turn END,
        updated_at = now()
   WHERE m.tenant_id = c.tenant_id AND m.message_id = c.message_id RETURNING m.trace_id INTO trace;
  PERFORM note_change(c.tenant_id, c.message_id);
  UPDATE running_messages r SET state = 'input-required', holds_slot = false, resolution = NULL, unrouted_since = NULL,
      wait_ends_at = NULL, repeat_until = NULL, remote_task_id = coalesce(c.remote_task_id, r.remote_task_id),
      remote_context_id = coalesce(c.remote_context_id, r.remote_context_id), held_output = c.held_output::json,
      wake_requested_at = now()
   WHERE r.tenant_id = c.tenant_id AND r.message_id = c.message_id;
  UPDATE sessions s SET suspended = true WHERE s.tenant_id = c.tenant_id AND s.session_id = c.session_id AND s.reserves;
  IF c.decisions IS NOT NULL THEN
    PERFORM record_decision_events(c.tenant_id, c.session_id, c.message_id, trace, c.decisions);
  END IF;
  PERFORM open_request(c.tenant_id, c.message_id, c.session_id, trace,
    jsonb_populate_record(NULL::new_input_request, c.request), c.dispatch_id, ended);
END $$;

-- Gives the agent that had the dispatch; NULL, and nothing written, when the dispatch is not sent, not the message's
-- current one or of another epoch.
CREATE FUNCTION ask_input(call jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  c ask_call := jsonb_populate_record(NULL::ask_call, call);
  d dispatches;
BEGIN
  PERFORM act_for_tenant(c.tenant_id);
  -- The session first, as wherever a transaction locks both.
  PERFORM 1 FROM sessions s WHERE s.tenant_id = c.tenant_id AND s.session_id = c.session_id FOR NO KEY UPDATE;
  d := lock_dispatch(c.tenant_id, c.message_id, c.dispatch_id);
  IF d.state IS DISTINCT FROM 'sent' OR d.epoch <> c.epoch THEN
    RETURN NULL;
  END IF;
  UPDATE dispatches x SET state = 'input_required', ended_at = now()
   WHERE x.tenant_id = c.tenant_id AND x.dispatch_id = c.dispatch_id RETURNING * INTO d;
  -- The agent has answered: a question about a tool call of the message is withdrawn.
  PERFORM close_request(c.tenant_id, c.message_id, 'withdrawn');
  PERFORM wait_for_answer(c, dispatch_end_event(d));
  RETURN d.instance_id;
END $$;

-- working → input-required: a human has approved the question that was held. The caller holds the locks of session and
-- message.
CREATE FUNCTION ask_held_question(call jsonb) RETURNS void LANGUAGE sql AS $$
  SELECT wait_for_answer(jsonb_populate_record(NULL::ask_call, call), NULL)
$$;

-- working → completed: a human has approved the answer that was held, and its dispatch (input_required → completed) has
-- brought it. The caller holds the lock of the message.
CREATE FUNCTION deliver_held_answer(of_tenant text, of_message text, given_artifacts jsonb, given_status jsonb,
  event_id text) RETURNS void
  LANGUAGE plpgsql AS $$
DECLARE
  r running_messages;
  message record;
BEGIN
  DELETE FROM running_messages x WHERE x.tenant_id = of_tenant AND x.message_id = of_message RETURNING * INTO r;
  UPDATE dispatches d SET state = 'completed'
   WHERE d.tenant_id = of_tenant AND d.dispatch_id = r.current_dispatch_id AND d.state = 'input_required';
  UPDATE messages m SET state = 'completed', artifacts = given_artifacts, status_message = given_status,
    completed_at = now(), updated_at = now()
   WHERE m.tenant_id = of_tenant AND m.message_id = of_message RETURNING m.trace_id, m.created_at INTO message;
  PERFORM note_change(of_tenant, of_message);
  PERFORM record_group(of_tenant, event_id, r.session_id, of_message, NULL, message.trace_id, ARRAY[
    event_of('message.completed', jsonb_build_object('duration_ms', milliseconds_between(message.created_at, now())))]);
  PERFORM settle_approvals(of_tenant, of_message);
  IF r.ordered THEN
    PERFORM wake_next_in_order(of_tenant, r.session_id);
  END IF;
END $$;
