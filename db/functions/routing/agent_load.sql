-- Sessions that an instance serves for the platform: those that reserve their place on it and are not suspended, and
-- those with a dispatch on it. They are counted, never stored, so that the number cannot drift. `at_most`: if there are
-- more, at least so many are given; NULL: all. The order is that of the index running_slots, and callers disable sorts
-- (accept_messages and take_messages too): a plan that was made while few messages ran may else take the primary key,
-- and read all messages of the tenant.
CREATE FUNCTION served_sessions(of_tenant text, of_instance text, at_most integer)
  RETURNS SETOF text LANGUAGE sql STABLE AS $$
  (SELECT s.session_id FROM sessions s
    WHERE s.tenant_id = of_tenant AND s.instance_id = of_instance AND s.status = 'active' AND s.reserves
      AND NOT s.suspended LIMIT at_most)
  UNION
  (SELECT DISTINCT r.session_id FROM running_messages r
    WHERE r.tenant_id = of_tenant AND r.instance_id = of_instance AND r.holds_slot
    ORDER BY r.session_id LIMIT at_most)
$$;

CREATE FUNCTION counted_sessions(of_tenant text, of_instance text)
  RETURNS integer LANGUAGE plpgsql STABLE SET enable_sort = off AS $$
BEGIN
  RETURN (SELECT count(*)::integer FROM served_sessions(of_tenant, of_instance, NULL));
END $$;

-- The larger of the reported and the counted number of sessions, for queries over agents: planned with them. `at_most`
-- as in served_sessions.
CREATE FUNCTION loads(of_tenant text, of_instance text, at_most integer)
  RETURNS TABLE (load integer) LANGUAGE sql STABLE AS $$
  SELECT greatest((SELECT count(*)::integer FROM served_sessions(of_tenant, of_instance, at_most)),
    (SELECT r.sessions FROM agent_reports r WHERE r.tenant_id = of_tenant AND r.instance_id = of_instance))
$$;

-- The same of one agent, for reports.
CREATE FUNCTION agent_load(of_tenant text, of_instance text)
  RETURNS integer LANGUAGE plpgsql STABLE SET enable_sort = off AS $$
BEGIN
  RETURN (SELECT l.load FROM loads(of_tenant, of_instance, NULL) l);
END $$;

-- How many messages of a tenant agents have, counted to `at_most`, in the order of running_slots.
CREATE FUNCTION in_flight(of_tenant text, at_most integer)
  RETURNS integer LANGUAGE plpgsql STABLE SET enable_sort = off AS $$
BEGIN
  RETURN (SELECT count(*)::integer FROM (SELECT 1 FROM running_messages r
    WHERE r.tenant_id = of_tenant AND r.holds_slot ORDER BY r.instance_id, r.session_id LIMIT at_most) AS held);
END $$;

-- The messages that an instance has, each from the opening of its dispatch to its end. `at_most`: where there are more,
-- so many; NULL: all.
CREATE FUNCTION tasks_on(of_tenant text, of_instance text, at_most integer)
  RETURNS integer LANGUAGE plpgsql STABLE SET enable_sort = off AS $$
BEGIN
  RETURN (SELECT count(*)::integer FROM (SELECT r.session_id FROM running_messages r
    WHERE r.tenant_id = of_tenant AND r.instance_id = of_instance AND r.holds_slot
      ORDER BY r.session_id LIMIT at_most) AS held);
END $$;

-- Whether an agent of this load has as many sessions, or messages, as it may have at once; for reports.
CREATE FUNCTION is_full(agent agents, load integer) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT (agent.max_concurrent_sessions > 0 AND load >= agent.max_concurrent_sessions)
    OR (agent.max_concurrent_tasks > 0
      AND tasks_on(agent.tenant_id, agent.instance_id, agent.max_concurrent_tasks) >= agent.max_concurrent_tasks)
$$;
