-- open → sent, right before the first byte goes out: from here on the agent may have it. Only for the agent's newest connection.
-- Gives what to send; no row when it is no longer to be sent.
CREATE FUNCTION send_dispatch(of_tenant text, of_message text, of_dispatch text, by_mesh text, by_epoch bigint, event_id text)
RETURNS SETOF dispatch_details LANGUAGE plpgsql AS $$
DECLARE
  tenant text := act_for_tenant(of_tenant);
  d dispatches := lock_dispatch(of_tenant, of_message, of_dispatch);
  message record;
  repeat_until timestamptz;
BEGIN
  IF d.state IS DISTINCT FROM 'open' OR NOT EXISTS (SELECT 1 FROM agents a
      WHERE a.tenant_id = of_tenant AND a.instance_id = d.instance_id AND a.connection_epoch = by_epoch) THEN
    RETURN;
  END IF;
  UPDATE messages m SET state = 'working', started_at = coalesce(m.started_at, now()), updated_at = now()
   WHERE m.tenant_id = of_tenant AND m.message_id = of_message RETURNING m.trace_id, m.deadline_ms INTO message;
  PERFORM note_change(of_tenant, of_message);
  UPDATE running_messages r SET state = 'working' WHERE r.tenant_id = of_tenant AND r.message_id = of_message
    RETURNING r.repeat_until INTO repeat_until;
  UPDATE dispatches x SET state = 'sent', sent_at = now(), mesh_id = by_mesh, epoch = by_epoch,
      deadline_at = least(now() + message.deadline_ms * interval '1 ms', repeat_until)
   WHERE x.tenant_id = of_tenant AND x.dispatch_id = of_dispatch;
  PERFORM record_event(of_tenant, event_id, 'dispatch.sent', 'info', d.session_id, message.trace_id, jsonb_build_object('dispatch_id',
    d.dispatch_id, 'instance_id', d.instance_id, 'skill_id', d.skill_id, 'session_id', d.session_id), of_message);
  RETURN QUERY SELECT * FROM dispatch_details x WHERE x.tenant_id = of_tenant AND x.dispatch_id = of_dispatch;
END $$;
