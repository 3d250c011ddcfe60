-- Ordered sessions: a message is dispatched when all that were accepted into its session before it are over. A
-- message that waits for a human is not over. Whoever dispatches holds the lock of the session, so that of two messages
-- only one goes out.

-- The messages of a session that are not over, in their order: first one that was dispatched, then by the time of
-- acceptance.
CREATE FUNCTION in_order(of_tenant text, of_session text) RETURNS SETOF running_messages LANGUAGE sql STABLE AS $$
  SELECT * FROM running_messages r
    WHERE r.tenant_id = of_tenant AND r.session_id = of_session
    AND r.state IN ('submitted', 'working', 'input-required')
   ORDER BY r.attempts = 0, r.created_at, r.message_id
$$;

-- The message whose turn it is, as [{tenant_id, message_id, session_id}]; NULL when all are over. One that was
-- dispatched keeps its turn.
CREATE FUNCTION next_in_order(of_tenant text, of_session text) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT jsonb_build_array(jsonb_build_object('tenant_id', r.tenant_id, 'message_id', r.message_id,
    'session_id', r.session_id))
    FROM in_order(of_tenant, of_session) AS r LIMIT 1
$$;

-- Marks the message whose turn it is as one to look at, in the transaction that ends the one before it, and gives it as
-- next_in_order does. `asked_at`: now() where the calling process takes the step after its commit, and the sweeper only
-- if that process dies. The default: nobody does, and the sweeper takes it at once. Where another transaction has the
-- message's row, nothing is marked: that one is looking.
CREATE FUNCTION wake_next_in_order(of_tenant text, of_session text,
  asked_at timestamptz DEFAULT sweep_first()) RETURNS jsonb
  LANGUAGE plpgsql AS $$
DECLARE
  waiting jsonb := next_in_order(of_tenant, of_session);
BEGIN
  UPDATE running_messages r SET wake_requested_at = asked_at
   WHERE r.tenant_id = of_tenant AND r.message_id = (SELECT x.message_id FROM running_messages x
     WHERE x.tenant_id = of_tenant AND x.message_id = waiting #>> '{0,message_id}' AND x.current_dispatch_id IS NULL
       AND coalesce(x.state, '') IN ('submitted', 'working') -- as in open_queued
       FOR UPDATE SKIP LOCKED);
  RETURN waiting;
END $$;
