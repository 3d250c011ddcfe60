-- What came of requests that were approved: each has one outcome, and the first that is written stays.

-- `outcome`: as in decision_outcomes. `error_code`: an agent may give any text; one that is no identifier is recorded
-- as HANDLER_ERROR. `event_id`: of the event, which a request about a plan does not have: its plan's own events say it.
CREATE FUNCTION record_outcome(q input_requests, outcome text, error_code text, event_id text)
  RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO decision_outcomes (tenant_id, request_id, outcome, error_code) VALUES (q.tenant_id, q.request_id, outcome,
      CASE WHEN error_code IS NULL OR error_code ~ '^[A-Za-z][A-Za-z0-9_]{0,63}$' THEN error_code
        ELSE 'HANDLER_ERROR' END)
    ON CONFLICT (tenant_id, request_id) DO NOTHING;
  IF FOUND AND q.message_id IS NOT NULL THEN
    PERFORM record_event(q.tenant_id, event_id,
        'message.decision_effect', CASE WHEN outcome = 'succeeded' THEN 'info' ELSE 'warning' END, q.session_id,
        (SELECT m.trace_id FROM messages m WHERE m.tenant_id = q.tenant_id AND m.message_id = q.message_id),
        jsonb_build_object('message_id', q.message_id, 'request_id', q.request_id, 'outcome', outcome));
  END IF;
END $$;

-- Records how the tool call ended that a grant let pass. Nothing is written where the request is gone.
CREATE FUNCTION record_call_outcome(of_tenant text, of_request text, error_code text, event_id text)
  RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM act_for_tenant(of_tenant);
  PERFORM record_outcome(q, CASE WHEN error_code IS NULL THEN 'succeeded' ELSE 'failed' END, error_code, event_id)
    FROM input_requests q WHERE q.tenant_id = of_tenant AND q.request_id = of_request;
END $$;

-- Records how a plan that was approved ended.
CREATE FUNCTION record_plan_outcome(of_tenant text, of_plan text, error_code text) RETURNS void LANGUAGE sql AS $$
  SELECT record_outcome(q, CASE WHEN error_code IS NULL THEN 'succeeded' ELSE 'failed' END, error_code, NULL)
    FROM input_requests q WHERE q.tenant_id = of_tenant AND q.plan_id = of_plan AND is_affirmative(q)
$$;

-- Records the outcome of each approval of a message that has ended. A grant that no call used has expired. A call that
-- passed and whose end was not recorded counts as failed (AGENT_DISCONNECTED), since nobody knows what became of it.
CREATE FUNCTION settle_approvals(of_tenant text, of_message text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM record_outcome(q, CASE WHEN q.stage = 'tool' AND g.used_at IS NULL THEN 'expired'
    WHEN q.stage <> 'tool' AND m.state = 'completed' THEN 'succeeded'
        ELSE 'failed' END,
      CASE WHEN q.stage <> 'tool' THEN coalesce(m.error_code, CASE WHEN m.state = 'canceled' THEN 'CANCELED' END)
        WHEN g.used_at IS NOT NULL THEN 'AGENT_DISCONNECTED' END, new_event_id())
    FROM input_requests q
    JOIN messages m ON m.tenant_id = q.tenant_id AND m.message_id = q.message_id
    LEFT JOIN tool_grants g ON g.tenant_id = q.tenant_id AND g.request_id = q.request_id
   WHERE q.tenant_id = of_tenant AND q.message_id = of_message AND is_affirmative(q);
END $$;
