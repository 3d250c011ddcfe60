-- People's answers to the requests of a message, the oldest first, as agents get them; NULL for none. Approvals of an
-- agent's output (stage 'output') are left out: no agent is told of them.
CREATE FUNCTION answers_of(of_tenant text, of_message text) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT jsonb_agg(q.answer || jsonb_build_object('source', q.source, 'kind', q.kind, 'title', q.title)
    ORDER BY q.requested_at, q.request_id)
    FROM input_requests q WHERE q.tenant_id = of_tenant AND q.message_id = of_message AND q.answer IS NOT NULL
      AND q.stage <> 'output'
$$;

-- A dispatch with its message, its session and its agent: all that is needed to send it. `read_at`: the database's
-- time. Readers count the time left until `deadline_at` from it, because their own clocks may differ.
CREATE VIEW dispatch_details WITH (security_invoker = true) AS
  SELECT d.*, d.state IN ('open', 'sent') AND r.current_dispatch_id = d.dispatch_id AS is_open,
         m.session_id, m.method, m.parts, m.metadata, m.client_message_id,
         trace_of(m.trace_id, m.message_id) AS trace_id, m.propagation, m.deadline_ms, m.artifacts, m.usage,
         r.resolution, CASE WHEN r.resolution IS NOT NULL
         THEN answers_of(d.tenant_id, d.message_id) END AS resolutions, r.remote_task_id, r.remote_context_id,
         m.user_id, a.public_url, a.agent_card, a.dispatch_auth, a.connection_epoch, clock_timestamp() AS read_at
    FROM dispatches d
    JOIN messages m ON m.tenant_id = d.tenant_id AND m.message_id = d.message_id
    LEFT JOIN running_messages r ON r.tenant_id = d.tenant_id AND r.message_id = d.message_id
    LEFT JOIN agents a ON a.tenant_id = d.tenant_id AND a.instance_id = d.instance_id;
GRANT SELECT ON dispatch_details TO fleet_app, fleet_system;

-- A dispatch while it is open or sent and its message's current one; no row otherwise.
CREATE FUNCTION find_dispatch(of_tenant text, of_dispatch text) RETURNS SETOF dispatch_details LANGUAGE plpgsql AS $$
BEGIN
  PERFORM act_for_tenant(of_tenant);
  RETURN QUERY SELECT * FROM dispatch_details d
    WHERE d.tenant_id = of_tenant AND d.dispatch_id = of_dispatch AND d.is_open;
END $$;

-- Locks a message and reads its open dispatch, in this order, which every transition keeps: the message's row is the
-- lock of both. NULL: the dispatch is not open, or is not the message's current one.
CREATE FUNCTION lock_dispatch(of_tenant text, of_message text, of_dispatch text)
  RETURNS dispatches LANGUAGE plpgsql AS $$
DECLARE
  d dispatches;
BEGIN
  PERFORM 1 FROM running_messages r
    WHERE r.tenant_id = of_tenant AND r.message_id = of_message AND r.current_dispatch_id = of_dispatch FOR UPDATE;
  IF FOUND THEN
    SELECT * INTO d FROM dispatches x
     WHERE x.tenant_id = of_tenant AND x.dispatch_id = of_dispatch AND x.state IN ('open', 'sent') FOR UPDATE;
  END IF;
  RETURN d;
END $$;
