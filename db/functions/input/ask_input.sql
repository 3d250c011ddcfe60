-- sent → input_required: the agent asks a human. Its dispatch ends, the message waits, a session that counts by itself is suspended and gives
-- up its slot.

-- `epoch`: of the connection that brought the question. `turn`: the question as an A2A message. `request`: a new_input_request.
-- `event_id`: of dispatch.success.
CREATE TYPE ask_call AS (
  tenant_id text, message_id text, dispatch_id text, session_id text, epoch bigint, artifacts jsonb, usage jsonb, status_message jsonb,
  turn jsonb, remote_task_id text, remote_context_id text, request jsonb, decisions jsonb, event_id text
);

-- Gives `asked`: false, and nothing written, when the dispatch is not sent, not the message's current one or of another epoch; and the
-- messages to wake.
CREATE FUNCTION ask_input(call jsonb) RETURNS TABLE (asked boolean, woken jsonb) LANGUAGE plpgsql AS $$
DECLARE
  c ask_call := jsonb_populate_record(NULL::ask_call, call);
  tenant text := act_for_tenant(c.tenant_id);
  d dispatches;
  message record;
BEGIN
  -- The session first, as wherever a transaction locks both.
  PERFORM 1 FROM sessions s WHERE s.tenant_id = c.tenant_id AND s.session_id = c.session_id FOR NO KEY UPDATE;
  d := lock_dispatch(c.tenant_id, c.message_id, c.dispatch_id);
  IF d.state IS DISTINCT FROM 'sent' OR d.epoch <> c.epoch THEN
    RETURN QUERY SELECT false, NULL::jsonb;
    RETURN;
  END IF;
  UPDATE dispatches x SET state = 'input_required', ended_at = now()
   WHERE x.tenant_id = c.tenant_id AND x.dispatch_id = c.dispatch_id RETURNING * INTO d;
  UPDATE messages m SET state = 'input-required', artifacts = c.artifacts, usage = c.usage, status_message = c.status_message,
      turns = m.turns || c.turn, updated_at = now()
   WHERE m.tenant_id = c.tenant_id AND m.message_id = c.message_id RETURNING m.trace_id INTO message;
  PERFORM note_change(c.tenant_id, c.message_id);
  UPDATE running_messages r SET state = 'input-required', holds_slot = false, resolution = NULL, unrouted_since = NULL,
      remote_task_id = coalesce(c.remote_task_id, r.remote_task_id), remote_context_id = coalesce(c.remote_context_id, r.remote_context_id),
      wake_requested_at = now()
   WHERE r.tenant_id = c.tenant_id AND r.message_id = c.message_id;
  UPDATE sessions s SET suspended = true WHERE s.tenant_id = c.tenant_id AND s.session_id = c.session_id AND s.explicit;
  PERFORM record_dispatch_end(c.event_id, d, message.trace_id);
  -- What the agent asks itself takes the place of what a tool call of it waits for.
  PERFORM close_request(c.tenant_id, c.message_id, 'withdrawn');
  IF c.decisions IS NOT NULL THEN
    PERFORM record_decision_events(c.tenant_id, c.session_id, c.message_id, message.trace_id, c.decisions);
  END IF;
  PERFORM open_request(c.tenant_id, c.message_id, c.session_id, message.trace_id, jsonb_populate_record(NULL::new_input_request, c.request));
  RETURN QUERY SELECT true, wake_queued_messages(c.tenant_id, d.agent_type, d.instance_id, 1);
END $$;
