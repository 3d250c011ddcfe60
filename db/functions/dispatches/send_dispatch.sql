-- The deadline of a dispatch that is sent now. `repeat_until`: if it repeats a lost one, the deadline of that one; else
-- NULL.
CREATE FUNCTION deadline_from_now(deadline_ms integer, repeat_until timestamptz)
  RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT least(now() + deadline_ms * interval '1 ms', repeat_until)
$$;

-- open → sent, right before the first byte goes out: from here on the agent may have the message. `by_epoch` must be
-- that of the agent's newest connection. Gives what to send; no row when the dispatch must not be sent any more.
CREATE FUNCTION send_dispatch(of_tenant text, of_message text, of_dispatch text, by_mesh text, by_epoch bigint,
  event_id text)
RETURNS SETOF dispatch_details LANGUAGE plpgsql
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  running record;
  d record;
  trace text;
BEGIN
  PERFORM act_for_tenant(of_tenant);
  -- The UPDATE locks the message (docs/internals.md#locks). Where policies have decided, the transaction has locked it
  -- before (dispatch-policy.ts), and end_locked will end it.
  UPDATE running_messages r SET state = 'working' WHERE r.tenant_id = of_tenant AND r.message_id = of_message
      AND r.current_dispatch_id = of_dispatch AND coalesce(r.state, '') IN ('submitted', 'working') -- as in open_queued
      RETURNING r.session_id, r.repeat_until INTO running;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  SELECT x.instance_id, x.skill_id INTO d FROM dispatches x
    JOIN agents a ON a.tenant_id = of_tenant AND a.instance_id = x.instance_id AND a.connection_epoch = by_epoch
   WHERE x.tenant_id = of_tenant AND x.dispatch_id = of_dispatch AND x.state = 'open';
  IF NOT FOUND THEN
    UPDATE running_messages r SET state = m.state FROM messages m
      WHERE r.tenant_id = of_tenant AND r.message_id = of_message
      AND m.tenant_id = of_tenant AND m.message_id = of_message;
    RETURN;
  END IF;
  WITH begun AS (
    UPDATE messages m SET state = 'working', started_at = coalesce(m.started_at, now()), updated_at = now()
     WHERE m.tenant_id = of_tenant AND m.message_id = of_message RETURNING m.trace_id, m.deadline_ms)
  UPDATE dispatches x SET state = 'sent', sent_at = now(), mesh_id = by_mesh, epoch = by_epoch,
      deadline_at = deadline_from_now(b.deadline_ms, running.repeat_until) FROM begun b
   WHERE x.tenant_id = of_tenant AND x.dispatch_id = of_dispatch RETURNING b.trace_id INTO trace;
  PERFORM note_change(of_tenant, of_message);
  PERFORM record_event(of_tenant, event_id, 'dispatch.sent', 'info', running.session_id, trace,
    jsonb_build_object('dispatch_id', of_dispatch, 'instance_id', d.instance_id, 'skill_id', d.skill_id,
      'session_id', running.session_id), of_message);
  RETURN QUERY SELECT * FROM dispatch_details x WHERE x.tenant_id = of_tenant AND x.dispatch_id = of_dispatch;
END $$;
