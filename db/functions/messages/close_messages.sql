-- What ends a message without its agent's result: a cancel (open | sent → canceled) and a failure. The caller holds the
-- messages' locks and knows that they are not over.

-- Takes back the question that is open on a message, if one is.
CREATE FUNCTION close_request(of_tenant text, of_message text, new_state text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE input_requests q SET state = new_state, ended_at = now(), wake_requested_at = now()
   WHERE q.tenant_id = of_tenant AND q.message_id = of_message AND q.state = 'pending';
END $$;

-- Ends the open dispatch of a message, if there is one. Gives its event, if it has one.
CREATE FUNCTION close_dispatch(r running_messages, new_state text, error text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  d dispatches;
BEGIN
  UPDATE dispatches x SET state = new_state, error_code = error, ended_at = now()
   WHERE x.tenant_id = r.tenant_id AND x.dispatch_id = r.current_dispatch_id AND x.state IN ('open', 'sent')
     RETURNING * INTO d;
  RETURN dispatch_end_event(d);
END $$;

-- Cancels messages, in one statement however many they are: dispatches, questions, messages and events. Their agents
-- are told after the commit. `event_ids`: one for each message, of dispatch.failed, before message.canceled. Gives the
-- rows as they were.
CREATE FUNCTION cancel_messages(of_tenant text, of_messages text[], reason text, event_ids text[])
  RETURNS SETOF running_messages
  LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY
    WITH stopped AS (
      DELETE FROM running_messages r WHERE r.tenant_id = of_tenant AND r.message_id = ANY (of_messages) RETURNING r),
    canceled AS MATERIALIZED (SELECT s.r, array_position(of_messages, (s.r).message_id) AS place FROM stopped s),
    ended AS (
      UPDATE messages m SET state = 'canceled', unsuccessful_state = 'canceled', completed_at = now(),
        updated_at = now() FROM canceled c
       WHERE m.tenant_id = of_tenant AND m.message_id = (c.r).message_id
         RETURNING m.message_id, m.trace_id, c.place, c.r),
    closed AS (
      UPDATE dispatches d SET state = 'canceled', error_code = 'CANCELED', ended_at = now() FROM canceled c
       WHERE d.tenant_id = of_tenant AND d.dispatch_id = (c.r).current_dispatch_id AND d.state IN ('open', 'sent')
         RETURNING d.*),
    withdrawn AS (
      UPDATE input_requests q SET state = 'withdrawn', ended_at = now(), wake_requested_at = now() FROM canceled c
       WHERE q.tenant_id = of_tenant AND q.message_id = (c.r).message_id AND q.state = 'pending'),
    recorded AS (
      INSERT INTO event_groups (tenant_id, group_id, session_uuid, session_name, message_id, dispatch_id, trace_id,
        types, instance_mark, events)
        SELECT uuid_of(of_tenant), group_of(event_ids[e.place]), session_uuid(uuid_of(of_tenant), (e.r).session_id),
               session_name((e.r).session_id), uuid_of(e.message_id), uuid_of(d.dispatch_id), e.trace_id::uuid,
               event_bit('message.canceled') | CASE WHEN d.sent_at IS NOT NULL THEN event_bit('dispatch.failed')
               ELSE 0 END, instance_mark(CASE WHEN d.sent_at IS NOT NULL THEN d.instance_id END),
               to_jsonb(array_remove(ARRAY[
            CASE WHEN d.sent_at IS NOT NULL THEN event_body(jsonb_build_object('instance_id', d.instance_id,
              'error', d.error_code, 'duration_ms', milliseconds_between(d.sent_at, d.ended_at)), 'warning') END,
            jsonb_build_object('reason', reason)], NULL))
          FROM ended e LEFT JOIN closed d USING (message_id))
    SELECT (c.r).* FROM canceled c ORDER BY c.place;
  PERFORM note_change(of_tenant, given) FROM unnest(of_messages) AS given;
  PERFORM settle_approvals(of_tenant, approved.message_id) FROM (SELECT DISTINCT q.message_id FROM input_requests q
    WHERE q.tenant_id = of_tenant AND q.message_id = ANY (of_messages) AND is_affirmative(q)) AS approved;
  PERFORM wake_next_in_order(of_tenant, s.session_id) FROM (SELECT DISTINCT m.session_id FROM messages m
    JOIN sessions x ON x.tenant_id = m.tenant_id AND x.session_id = m.session_id AND x.ordered
    WHERE m.tenant_id = of_tenant AND m.message_id = ANY (of_messages)) AS s;
END $$;

-- Fails a message that no agent's result ends: nobody took it, nobody answered in time, a human rejected it, an
-- operator ended its workflow. `request_state`: what becomes of an open question. `event_id`: of the first event.
-- `decided`: the event of the decision from which it follows, as `event_of` makes it.
CREATE FUNCTION fail_message(of_tenant text, of_message text, error text, error_text text, request_state text,
  event_id text, decided jsonb DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  r running_messages;
  message record;
BEGIN
  DELETE FROM running_messages x WHERE x.tenant_id = of_tenant AND x.message_id = of_message RETURNING * INTO r;
  UPDATE messages m SET state = 'failed', unsuccessful_state = 'failed', error_code = error,
    error_message = error_text, completed_at = now(), updated_at = now()
   WHERE m.tenant_id = of_tenant AND m.message_id = of_message RETURNING m.trace_id INTO message;
  PERFORM note_change(of_tenant, of_message);
  PERFORM record_group(of_tenant, event_id, r.session_id, of_message, r.current_dispatch_id, message.trace_id,
    ARRAY[decided, close_dispatch(r, 'failed', error),
      event_of('message.error', jsonb_build_object('error', error), 'warning')]);
  PERFORM close_request(of_tenant, of_message, request_state);
  IF r.approved THEN
    PERFORM settle_approvals(of_tenant, of_message);
  END IF;
  IF r.ordered THEN
    PERFORM wake_next_in_order(of_tenant, r.session_id);
  END IF;
END $$;
