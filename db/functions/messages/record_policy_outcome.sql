-- What policies and guards decide is recorded in the transaction of the state that follows from it.

-- Writes the events of decisions: [{event_id, event_type, severity, payload}]. `of_message`: about which they are; NULL
-- for none.
CREATE FUNCTION record_decision_events(of_tenant text, of_session text, of_message text, trace_id text, events jsonb)
  RETURNS void
  LANGUAGE plpgsql AS $$
BEGIN
  PERFORM record_event(of_tenant, e ->> 'event_id', e ->> 'event_type', e ->> 'severity', of_session, trace_id,
      e -> 'payload', of_message)
    FROM jsonb_array_elements(events) e;
END $$;

-- The rest of an accept transaction whose call has a `decision`: its events, and the request that the message waits for
-- unless it `failed`.
CREATE FUNCTION record_policy_outcome(c accept_call, failed boolean, dispatched boolean)
  RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM record_decision_events(c.tenant_id, c.session_id, c.message_id, c.trace_id,
    coalesce(c.decision -> 'events', '[]'));
  IF dispatched THEN
    PERFORM record_decision_events(c.tenant_id, c.session_id, c.message_id, c.trace_id,
      coalesce(c.decision -> 'dispatch_events', '[]'));
  END IF;
  IF c.decision ? 'input_request' AND NOT failed THEN
    PERFORM open_request(c.tenant_id, c.message_id, c.session_id, c.trace_id,
      jsonb_populate_record(NULL::new_input_request, c.decision -> 'input_request'));
  END IF;
END $$;
