-- How many agents a message came through: what its sender says (`metadata.hops`), or what is known of an agent that sends, whichever is more.
-- An agent sends for a message that it works on. Where it passes on the `traceparent` of that dispatch, that is the one; else nothing tells
-- which, and the message came through one agent more than the one that came through the fewest, at least. So nobody who is in no loop is
-- refused for it. An agent of a type that works on nothing begins something new. Of types with more than 100 agents or 200 messages at work,
-- which would take long to read, nothing is known without a `traceparent`, and with one only where it is of the first of them.
-- OFFSET keeps the plan to the agents of the type, and then their slots, and so does the order (served_sessions).
CREATE FUNCTION hops_of(c accept_call) RETURNS integer LANGUAGE sql STABLE AS $$
  SELECT greatest((c.metadata ->> 'hops')::integer, 0, (
    WITH senders AS MATERIALIZED (SELECT a.instance_id FROM agents a WHERE a.tenant_id = c.tenant_id AND a.agent_type = c.sender_agent_type
      AND coalesce(a.deregistered_at, 'infinity') = 'infinity' LIMIT 101)
    SELECT 1 + coalesce(max(work.hops) FILTER (WHERE right(replace(work.current_dispatch_id, '-', ''), 16) = c.parent_span_id),
        CASE WHEN (SELECT count(*) FROM senders) <= 100 AND count(*) <= 200 THEN min(work.hops) END)
      FROM (SELECT of_one.* FROM senders s, LATERAL (SELECT r.hops, r.current_dispatch_id FROM running_messages r
        WHERE r.tenant_id = c.tenant_id AND r.instance_id = s.instance_id AND r.holds_slot ORDER BY r.session_id OFFSET 0) AS of_one LIMIT 201) AS work))
$$;
