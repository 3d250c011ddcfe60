-- open | sent → released: its node says that the agent got nothing, and the message is to be queued again. A dispatch
-- in `sent` is released only with `nothing_sent`. Gives the message's session if the message has no dispatch now: this
-- call released it, or an earlier one did whose answer was lost. Else NULL.
CREATE FUNCTION release_dispatch(of_tenant text, of_message text, of_dispatch text, reason text, nothing_sent boolean,
  event_id text)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  d dispatches;
  running record;
  trace text;
BEGIN
  PERFORM act_for_tenant(of_tenant);
  -- The session first, as wherever a transaction locks both.
  PERFORM 1 FROM sessions s
    WHERE s.tenant_id = of_tenant AND s.session_id = (SELECT r.session_id FROM running_messages r
    WHERE r.tenant_id = of_tenant AND r.message_id = of_message AND r.resolution IS NOT NULL) FOR NO KEY UPDATE;
  d := lock_dispatch(of_tenant, of_message, of_dispatch);
  IF d.state IS NULL THEN
    RETURN (SELECT r.session_id FROM running_messages r
      WHERE r.tenant_id = of_tenant AND r.message_id = of_message AND r.current_dispatch_id IS NULL);
  ELSIF d.state = 'sent' AND NOT nothing_sent THEN
    RETURN NULL;
  END IF;
  UPDATE dispatches x SET state = 'released', ended_at = now(), error_code = reason
   WHERE x.tenant_id = of_tenant AND x.dispatch_id = of_dispatch RETURNING * INTO d;
  UPDATE running_messages r SET current_dispatch_id = NULL, holds_slot = false, wake_requested_at = now(),
      unrouted_since = coalesce(r.unrouted_since, now()),
        unreachable_ids = CASE WHEN reason NOT IN ('CONNECT_FAILED', 'AGENT_NOT_READY')
        OR d.instance_id = ANY (r.unreachable_ids) THEN r.unreachable_ids
        ELSE r.unreachable_ids || d.instance_id END
   WHERE r.tenant_id = of_tenant AND r.message_id = of_message RETURNING r.session_id, r.resolution INTO running;
  IF running.resolution IS NOT NULL THEN
    UPDATE sessions s SET suspended = true
      WHERE s.tenant_id = of_tenant AND s.session_id = running.session_id AND s.reserves;
  END IF;
  UPDATE messages m SET updated_at = now() WHERE m.tenant_id = of_tenant AND m.message_id = of_message
    RETURNING m.trace_id INTO trace;
  PERFORM note_change(of_tenant, of_message);
  d.ended_at := d.sent_at; -- it never ran
  PERFORM record_dispatch_end(event_id, d, running.session_id, trace);
  RETURN running.session_id;
END $$;
