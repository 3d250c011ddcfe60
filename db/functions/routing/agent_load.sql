-- Sessions that an instance serves for the platform: those from /sessions/init that are bound to it and not suspended, and those with a
-- dispatch on it. They are counted, never stored, so that the number cannot drift.
CREATE FUNCTION served_sessions(of_tenant text, of_instance text) RETURNS SETOF text LANGUAGE sql STABLE AS $$
  SELECT s.session_id FROM sessions s
   WHERE s.tenant_id = of_tenant AND s.instance_id = of_instance AND s.status = 'active' AND s.explicit AND NOT s.suspended
  UNION
  SELECT r.session_id FROM running_messages r WHERE r.tenant_id = of_tenant AND r.instance_id = of_instance AND r.holds_slot
$$;

CREATE FUNCTION counted_sessions(of_tenant text, of_instance text) RETURNS integer LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT count(*)::integer FROM served_sessions(of_tenant, of_instance));
END $$;

-- The larger of the reported and the counted number of sessions (decisions.md, Agents), for queries over agents: planned with them.
CREATE FUNCTION loads(of_tenant text, of_instance text) RETURNS TABLE (load integer) LANGUAGE sql STABLE AS $$
  SELECT greatest((SELECT count(*)::integer FROM served_sessions(of_tenant, of_instance)),
    (SELECT r.sessions FROM agent_reports r WHERE r.tenant_id = of_tenant AND r.instance_id = of_instance))
$$;

-- The same of one agent.
CREATE FUNCTION agent_load(of_tenant text, of_instance text) RETURNS integer LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT l.load FROM loads(of_tenant, of_instance) l);
END $$;

-- Sessions whose decision waits for room on an instance; new work leaves that room to them.
CREATE FUNCTION waiting_decisions(of_tenant text, of_instance text) RETURNS integer LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT count(DISTINCT r.session_id)::integer FROM running_messages r
           WHERE r.tenant_id = of_tenant AND r.instance_id = of_instance AND r.unrouted_since IS NOT NULL
             AND r.resolution IS NOT NULL AND NOT r.holds_slot);
END $$;

-- Keeps others from taking room on a bounded instance until the transaction ends. Taking it twice is harmless.
CREATE FUNCTION lock_room(of_tenant text, of_instance text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('capacity:' || of_tenant || ':' || of_instance, 0));
END $$;

-- The same without waiting: gives whether the transaction has the lock.
CREATE FUNCTION lock_room_at_once(of_tenant text, of_instance text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  RETURN pg_try_advisory_xact_lock(hashtextextended('capacity:' || of_tenant || ':' || of_instance, 0));
END $$;
