-- Whether a card declares that messages to a skill may be dispatched again after their agent was lost
-- (contracts/a2a/extensions.ts).
CREATE FUNCTION is_idempotent(card jsonb, skill text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT EXISTS (SELECT 1 FROM jsonb_path_query(card,
      '$.capabilities.extensions[*] ? (@.uri == "urn:agent-fleet:extensions:idempotent-skills").params.skills')
      AS declared (skills)
    WHERE declared.skills ? '*' OR declared.skills ? skill)
$$;

-- sent → lost, and the message goes on without a dispatch, for either of two reasons:
-- * A tool call of the dispatch waited for a decision, or the agent had not received the decision: the message waits,
--   and its next dispatch carries the decision.
-- * Its skill is declared idempotent: the message is queued again, unless its deadline has passed or it has had ten
--   dispatches.
-- `by_epoch` NULL: any epoch. `detached` is false, and nothing is written, where neither reason holds: the caller then
-- ends the dispatch with its message, because the agent may have done the work.
CREATE FUNCTION detach_dispatch(of_tenant text, of_message text, of_dispatch text, by_epoch bigint, error text,
  event_id text)
RETURNS TABLE (detached boolean, session_id text, instance_id text) LANGUAGE plpgsql AS $$
DECLARE
  d dispatches;
  session text;
  trace text;
  may_wait boolean; -- a first look, without the message's lock
  waits boolean;
  repeats boolean;
BEGIN
  PERFORM act_for_tenant(of_tenant);
  may_wait := EXISTS (SELECT 1 FROM tool_grants g
    WHERE g.tenant_id = of_tenant AND g.message_id = of_message AND g.dispatch_id = of_dispatch AND g.used_at IS NULL);
  repeats := EXISTS (SELECT 1 FROM dispatches x
    JOIN agents a ON a.tenant_id = x.tenant_id AND a.instance_id = x.instance_id
    WHERE x.tenant_id = of_tenant AND x.dispatch_id = of_dispatch AND x.attempt < 10
      AND coalesce(x.deadline_at > now(), true) AND is_idempotent(a.agent_card, x.skill_id));
  IF NOT may_wait AND NOT repeats THEN
    RETURN QUERY SELECT false, NULL::text, NULL::text;
    RETURN;
  END IF;
  -- The session first, as wherever a transaction locks both.
  PERFORM 1 FROM sessions s WHERE s.tenant_id = of_tenant AND s.session_id = (SELECT m.session_id FROM messages m
    WHERE m.tenant_id = of_tenant AND m.message_id = of_message) FOR NO KEY UPDATE;
  d := lock_dispatch(of_tenant, of_message, of_dispatch);
  waits := EXISTS (SELECT 1 FROM tool_grants g JOIN input_requests q USING (tenant_id, request_id)
    WHERE g.tenant_id = of_tenant AND g.message_id = of_message AND g.dispatch_id = of_dispatch AND g.used_at IS NULL
      AND (q.state = 'pending' OR q.state = 'resolved' AND g.answered_at IS NULL));
  IF NOT waits AND NOT repeats OR d.state IS DISTINCT FROM 'sent' OR d.epoch <> coalesce(by_epoch, d.epoch) THEN
    RETURN QUERY SELECT false, NULL::text, NULL::text;
    RETURN;
  END IF;
  UPDATE dispatches x SET state = 'lost', error_code = error, ended_at = now()
   WHERE x.tenant_id = of_tenant AND x.dispatch_id = of_dispatch RETURNING * INTO d;
  UPDATE running_messages r SET current_dispatch_id = NULL, holds_slot = false, wake_requested_at = now(),
      unrouted_since = CASE WHEN waits THEN r.unrouted_since ELSE now() END,
      repeat_until = CASE WHEN NOT waits THEN d.deadline_at END,
      resolution = coalesce((SELECT q.answer FROM tool_grants g JOIN input_requests q USING (tenant_id, request_id)
         WHERE g.tenant_id = of_tenant AND g.message_id = of_message AND g.dispatch_id = of_dispatch
           AND g.used_at IS NULL
           AND q.state = 'resolved' ORDER BY q.ended_at DESC LIMIT 1), r.resolution)
   WHERE r.tenant_id = of_tenant AND r.message_id = of_message RETURNING r.session_id INTO session;
  UPDATE sessions s SET suspended = true WHERE s.tenant_id = of_tenant AND s.session_id = session AND s.reserves
    AND (waits OR EXISTS (SELECT 1 FROM running_messages r
      WHERE r.tenant_id = of_tenant AND r.message_id = of_message AND r.resolution IS NOT NULL));
  SELECT m.trace_id INTO trace FROM messages m WHERE m.tenant_id = of_tenant AND m.message_id = of_message;
  PERFORM record_dispatch_end(event_id, d, session, trace);
  RETURN QUERY SELECT true, session, d.instance_id;
END $$;
