-- How many agents a message came through: what its sender says (`metadata.hops`), or what is known of an agent that sends, whichever is more.
-- An agent sends for a message that it works on. Where it passes on the `traceparent` of that dispatch, that is the one; else nothing tells
-- which, and the message came through one agent more than the one that came through the fewest, at least. So nobody who is in no loop is
-- refused for it. An agent that works on nothing begins something new.
CREATE FUNCTION hops_of(c accept_call) RETURNS integer LANGUAGE sql STABLE AS $$
  SELECT greatest((c.metadata ->> 'hops')::integer, 0, (
    SELECT 1 + coalesce(max(r.hops) FILTER (WHERE right(replace(r.current_dispatch_id, '-', ''), 16) = c.parent_span_id), min(r.hops))
      FROM agents a JOIN running_messages r ON r.tenant_id = a.tenant_id AND r.instance_id = a.instance_id AND r.holds_slot
     WHERE a.tenant_id = c.tenant_id AND a.agent_type = c.sender_agent_type))
$$;
