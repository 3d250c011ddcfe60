-- The complete transaction (docs/internals.md): sent → completed, failed or lost. Ends dispatches and their messages with them, in one round
-- trip; several callers may share it, as in accept_messages. It also wakes one message that waits for an agent like this one.

-- `state` of the dispatch. `epoch` NULL: it does not matter. `artifacts` NULL: the agent brought no output, and what is there stays.
-- `decisions`: events of what guards decided about the output, as record_decision_events takes them; NULL: none. `event_id`: of the
-- dispatch's event, before the message's.
CREATE TYPE dispatch_end_call AS (
  tenant_id text, message_id text, dispatch_id text, epoch bigint, state text, error_code text, error_message text, artifacts jsonb,
  usage jsonb, status_message jsonb, decisions jsonb, event_id text
);

-- `ended_at` NULL: nothing was written. The dispatch was not the message's current one; or, with `awaits`, another transaction holds the lock of
-- that name, and the call is to be made again. `woken`: messages whose workflows the process wakes after the
-- commit.
CREATE TYPE dispatch_end_result AS (ended_at timestamptz, session_id text, instance_id text, agent_type text, woken jsonb, awaits text);

-- `may_wait`: as in accept_message, for the lock of the message.
CREATE FUNCTION end_dispatch(c dispatch_end_call, may_wait boolean) RETURNS dispatch_end_result LANGUAGE plpgsql AS $$
DECLARE
  is_current boolean;
  state_before text;
  was_ordered boolean;
  message record;
  dispatch record;
  woken jsonb;
  failed boolean := c.state <> 'completed';
  severity text := CASE WHEN failed THEN 'warning' ELSE 'info' END;
  error jsonb := CASE WHEN failed THEN jsonb_build_object('error', c.error_code) ELSE '{}' END;
BEGIN
  -- coalesce, here and below: no index but the keys fits these conditions. With an xmax of 0 nobody has the row locked, so that this does not
  -- wait; that costs nothing, while a lock of its own would be a tenth of the transaction.
  DELETE FROM running_messages r
   WHERE r.tenant_id = c.tenant_id AND r.message_id = c.message_id AND coalesce(r.current_dispatch_id, '') = c.dispatch_id
     AND coalesce(r.state, '') IN ('submitted', 'working', 'input-required') AND r.xmax = 0
   RETURNING r.state, r.ordered INTO state_before, was_ordered;
  IF NOT FOUND THEN
    IF may_wait THEN
      PERFORM 1 FROM running_messages r WHERE r.tenant_id = c.tenant_id AND r.message_id = c.message_id FOR UPDATE;
    END IF;
    SELECT coalesce(r.current_dispatch_id, '') = c.dispatch_id AND r.state IN ('submitted', 'working', 'input-required') INTO is_current
      FROM running_messages r WHERE r.tenant_id = c.tenant_id AND r.message_id = c.message_id FOR UPDATE SKIP LOCKED;
    IF NOT FOUND AND EXISTS (SELECT 1 FROM running_messages r WHERE r.tenant_id = c.tenant_id AND r.message_id = c.message_id) THEN
      RETURN (NULL, NULL, NULL, NULL, NULL, 'message ' || c.message_id)::dispatch_end_result;
    END IF;
    IF is_current IS NOT TRUE THEN
      RETURN NULL;
    END IF;
    DELETE FROM running_messages r WHERE r.tenant_id = c.tenant_id AND r.message_id = c.message_id
      RETURNING r.state, r.ordered INTO state_before, was_ordered;
  END IF;
  UPDATE dispatches d SET state = c.state, error_code = c.error_code, ended_at = now()
   WHERE d.tenant_id = c.tenant_id AND d.dispatch_id = c.dispatch_id AND coalesce(d.state, '') = 'sent'
     AND (c.epoch IS NULL OR d.epoch = c.epoch)
   RETURNING d.instance_id, d.agent_type, d.sent_at INTO dispatch;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the dispatch is not sent, or of another epoch' USING ERRCODE = 'FL001';
  END IF;
  UPDATE messages m SET state = CASE WHEN failed THEN 'failed' ELSE 'completed' END, artifacts = coalesce(c.artifacts, m.artifacts),
      usage = coalesce(c.usage, m.usage), status_message = CASE WHEN c.artifacts IS NULL THEN m.status_message ELSE c.status_message END,
      error_code = c.error_code, error_message = c.error_message, completed_at = now(), updated_at = now()
   WHERE m.tenant_id = c.tenant_id AND m.message_id = c.message_id
   RETURNING m.session_id, m.trace_id, m.created_at INTO message;
  IF is_late(c.message_id) THEN
    PERFORM note_change(c.tenant_id, c.message_id);
  END IF;
  INSERT INTO event_groups (tenant_id, group_id, session_id, message_id, dispatch_id, trace_id, event_count, events)
    VALUES (c.tenant_id, group_of(c.event_id), message.session_id, uuid_of(c.message_id), uuid_of(c.dispatch_id), message.trace_id::uuid, 2,
      jsonb_build_array(
      event_of(CASE WHEN failed THEN 'dispatch.failed' ELSE 'dispatch.success' END, error || jsonb_build_object(
        'instance_id', dispatch.instance_id, 'duration_ms', milliseconds_between(dispatch.sent_at, now())), severity),
      event_of(CASE WHEN failed THEN 'message.error' ELSE 'message.completed' END, CASE WHEN failed THEN error ELSE
        jsonb_build_object('duration_ms', milliseconds_between(message.created_at, now())) END, severity)));
  IF c.decisions IS NOT NULL THEN
    PERFORM record_decision_events(c.tenant_id, message.session_id, c.message_id, message.trace_id, c.decisions);
  END IF;
  woken := wake_queued_messages(c.tenant_id, dispatch.agent_type, dispatch.instance_id, 1);
  IF was_ordered THEN
    woken := coalesce(woken, '[]') || coalesce(wake_next_in_order(c.tenant_id, message.session_id, now()), '[]');
  END IF;
  -- A tool call of it waits for a human: its result is here, so nobody needs to answer any more, and its own workflow waits for that.
  IF state_before = 'input-required' THEN
    PERFORM close_request(c.tenant_id, c.message_id, 'withdrawn');
    woken := coalesce(woken, '[]') || jsonb_build_object('tenant_id', c.tenant_id, 'message_id', c.message_id, 'session_id', message.session_id);
  END IF;
  RETURN (now(), message.session_id, dispatch.instance_id, dispatch.agent_type, woken, NULL::text);
END $$;

-- `wait_for_locks`: the first call may wait, while nothing is locked yet.
CREATE FUNCTION end_dispatches(calls jsonb, wait_for_locks boolean) RETURNS SETOF dispatch_end_result LANGUAGE plpgsql
  SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  c dispatch_end_call;
  tenant text := '';
  pace text := limit_lock_wait(wait_for_locks);
BEGIN
  FOR place IN 0 .. jsonb_array_length(calls) - 1 LOOP
    c := jsonb_populate_record(NULL::dispatch_end_call, calls -> place);
    IF c.tenant_id <> tenant THEN
      tenant := act_for_tenant(c.tenant_id);
    END IF;
    RETURN NEXT end_dispatch(c, wait_for_locks AND place = 0);
  END LOOP;
END $$;
