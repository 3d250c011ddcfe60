-- Agents that were found full (`agents.full_at`), so that samples leave them out. The note is a guess and decides
-- nothing: claim_room does. Nobody waits for the row of an agent here: where another transaction has it, the guess
-- stays as it is. With 1,000 agents, all full, an accept takes 0.7 ms of the database's processor, and 20.6 without the
-- guess.

-- Rows are written one by one, by their key: a plan for a list that was made while the table was small would read all
-- agents of the tenant.

-- Whether a full agent may be noted: it got no dispatch for a second. Any other may have room in a moment. Inlined.
CREATE FUNCTION stays_full(last_dispatch_at timestamptz) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT coalesce(last_dispatch_at < now() - interval '1 s', true)
$$;

-- Writes when an agent was found full; NULL: it may have room.
CREATE FUNCTION set_full_at(of_tenant text, of_instance text, at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE agents a SET full_at = at WHERE a.tenant_id = of_tenant AND a.instance_id = (SELECT x.instance_id FROM agents x
    WHERE x.tenant_id = of_tenant AND x.instance_id = of_instance
      AND (x.full_at IS NULL) <> (at IS NULL) FOR NO KEY UPDATE SKIP LOCKED);
END $$;

-- Looks again at agents that were found full five seconds ago or earlier: room that was freed in the moment of the note
-- would else be forgotten. It looks at agents of all types, and at each once in five seconds at most. Gives whether one
-- has room.
CREATE FUNCTION recheck_full(of_tenant text, at_most integer)
  RETURNS boolean LANGUAGE plpgsql SET enable_sort = off AS $$
DECLARE
  stale timestamptz := now() - interval '5 s';
  noted record;
  is_full boolean;
  any_free boolean := false;
BEGIN
  FOR noted IN SELECT a.instance_id, a.max_concurrent_sessions AS most_sessions, a.max_concurrent_tasks AS most_tasks
    FROM agents a
      WHERE a.tenant_id = of_tenant AND a.full_at < stale
        ORDER BY a.full_at LIMIT at_most FOR NO KEY UPDATE SKIP LOCKED LOOP
    is_full := (noted.most_sessions > 0 AND (SELECT l.load >= noted.most_sessions
        FROM loads(of_tenant, noted.instance_id, noted.most_sessions) l))
      OR (noted.most_tasks > 0 AND tasks_on(of_tenant, noted.instance_id, noted.most_tasks) >= noted.most_tasks);
    UPDATE agents a SET full_at = CASE WHEN is_full THEN now() END
      WHERE a.tenant_id = of_tenant AND a.instance_id = noted.instance_id;
    any_free := any_free OR NOT is_full;
  END LOOP;
  RETURN any_free;
END $$;
