-- input-required → working: a human has answered. Request, audit row, message and event; the next dispatch carries the answer. The caller
-- holds the message's lock and has checked that the request is open and the answer fits. Gives the session.

-- `resolution`: the word on the record. `answer`: what the next dispatch carries. `turn`: the answer as an A2A message.
CREATE TYPE resolve_call AS (
  tenant_id text, message_id text, request_id text, decision_id text, principal text, resolution text, data jsonb, comment text, answer jsonb,
  turn jsonb, event_id text
);

CREATE FUNCTION resolve_input(call jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  c resolve_call := jsonb_populate_record(NULL::resolve_call, call);
  message record;
BEGIN
  UPDATE input_requests q SET state = 'resolved', ended_at = now() WHERE q.tenant_id = c.tenant_id AND q.request_id = c.request_id;
  INSERT INTO input_decisions (tenant_id, decision_id, request_id, principal, resolution, data, comment)
    VALUES (c.tenant_id, c.decision_id, c.request_id, c.principal, to_jsonb(c.resolution), c.data, c.comment);
  UPDATE running_messages r SET state = 'working', resolution = c.answer, current_dispatch_id = NULL, unrouted_since = NULL,
      wake_requested_at = now()
   WHERE r.tenant_id = c.tenant_id AND r.message_id = c.message_id;
  UPDATE messages m SET state = 'working', turns = m.turns || c.turn, status_message = NULL, updated_at = now()
   WHERE m.tenant_id = c.tenant_id AND m.message_id = c.message_id RETURNING m.session_id, m.trace_id INTO message;
  PERFORM note_change(c.tenant_id, c.message_id);
  PERFORM record_event(c.tenant_id, c.event_id, 'message.resolved', 'info', message.session_id, message.trace_id,
    jsonb_build_object('message_id', c.message_id, 'session_id', message.session_id, 'request_id', c.request_id,
      'resolution', c.resolution, 'resolved_by', c.principal));
END $$;
