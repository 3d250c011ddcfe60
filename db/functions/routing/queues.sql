-- Queues: what messages that found no agent wait for, so that whoever has room finds those that can use it, and nobody waits behind another
-- that waits for something else. A message waits in one queue; an agent serves several. '//' separates nothing else: no instance and no type
-- has a slash in its name, and the skill comes last.

-- '' stands for any instance, type or skill. A message whose session has an agent waits for that one alone (requeue_messages: while something
-- can be sent to it), one that names an instance for that of its type and skill.
CREATE FUNCTION queue_of(instance text, type text, skill text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(instance, '') || '/' || coalesce(type, '') || '/' || coalesce(skill, '')
$$;

-- The queues whose messages an agent could take.
CREATE FUNCTION queues_of(of_tenant text, of_instance text, of_type text) RETURNS text[] LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN ARRAY(SELECT queue_of(instance, type, skill) FROM unnest(ARRAY['', of_instance]) AS instance CROSS JOIN unnest(ARRAY['', of_type]) AS type
    CROSS JOIN unnest(array_prepend('', ARRAY(SELECT s.skill_id FROM agent_skills s
      WHERE s.tenant_id = of_tenant AND s.instance_id = of_instance AND s.agent_type = ''))) AS skill);
END $$;

-- Each look at the queues asks for the order of running_queued, as served_sessions does for its index. EXISTS would drop it.
CREATE FUNCTION any_queued(of_tenant text) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT true FROM running_messages r WHERE r.tenant_id = of_tenant AND r.queue >= '' ORDER BY r.queue LIMIT 1), false)
$$;

-- Whether messages wait that an agent could take.
CREATE FUNCTION has_queued(of_tenant text, of_instance text, of_type text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
  served text[];
BEGIN
  IF NOT any_queued(of_tenant) THEN
    RETURN false;
  END IF;
  served := queues_of(of_tenant, of_instance, of_type);
  RETURN coalesce((SELECT true FROM running_messages r WHERE r.tenant_id = of_tenant AND r.queue = ANY (served) ORDER BY r.queue LIMIT 1), false);
END $$;

-- Sessions whose decision waits for room on an instance; new work leaves that room to them.
CREATE FUNCTION waiting_decisions(of_tenant text, of_instance text) RETURNS integer LANGUAGE plpgsql STABLE AS $$
DECLARE
  own_queue text := queue_of(of_instance, '', ''); -- within the query it would be no condition of the index, because of its COALESCE
BEGIN
  RETURN (SELECT count(DISTINCT waiting.session_id)::integer FROM (SELECT r.session_id FROM running_messages r
    WHERE r.tenant_id = of_tenant AND r.queue = own_queue AND r.resolution IS NOT NULL ORDER BY r.created_at) AS waiting);
END $$;
