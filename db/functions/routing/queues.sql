-- Queues: what messages that found no agent wait for, so that whoever has room finds those that can use it, and nobody waits behind another
-- that waits for something else. A message waits in one queue; an agent serves several. '//' separates nothing else: no instance and no type
-- has a slash in its name, and the skill comes last.

-- A message that names an instance, or whose session has one, waits for that instance alone; any other for its type and skill, where '' stands
-- for any. What waits for its session's instance is moved once nothing can be sent to that one (requeue_messages).
CREATE FUNCTION queue_of(instance text, type text, skill text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN instance IS NOT NULL THEN instance || '//' ELSE '/' || coalesce(type, '') || '/' || coalesce(skill, '') END
$$;

-- The queues whose messages an agent could take: its own, that of its type, and two of each of its skills.
CREATE FUNCTION queues_of(of_tenant text, of_instance text, of_type text) RETURNS text[] LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN ARRAY[queue_of(of_instance, NULL, NULL), queue_of(NULL, of_type, NULL)] || ARRAY(
    SELECT queue_of(NULL, type, s.skill_id) FROM agent_skills s CROSS JOIN unnest(ARRAY['', of_type]) AS type
     WHERE s.tenant_id = of_tenant AND s.instance_id = of_instance AND s.agent_type = '');
END $$;

-- The queue that a message joins for which no agent is free.
CREATE FUNCTION queue_for(r routing) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
  of_type text := coalesce(r.served_agent_type, r.want_agent_type, r.session_agent_type);
  bound text := r.served_instance_id;
  has_room boolean;
BEGIN
  IF bound IS NULL AND r.session_id IS NOT NULL THEN
    bound := session_agent(r, of_type);
  END IF;
  IF bound IS NULL THEN
    RETURN queue_of(r.want_instance_id, of_type, r.want_skill_id);
  ELSIF bound = r.want_instance_id THEN
    RETURN queue_of(bound, NULL, NULL);
  END IF;
  SELECT a.has_room INTO has_room FROM agents a WHERE a.tenant_id = r.tenant_id AND a.instance_id = bound AND a.agent_type = of_type;
  RETURN queue_of(CASE WHEN has_room IS NOT NULL AND bound <> ALL (coalesce(r.unreachable_ids, '{}')) THEN bound END, of_type, r.want_skill_id);
END $$;

-- Each look at the queues asks for the order of running_queued, as served_sessions does for its index. EXISTS would drop it.
CREATE FUNCTION any_queued(of_tenant text) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT true FROM running_messages r WHERE r.tenant_id = of_tenant AND r.queue >= '' ORDER BY r.queue LIMIT 1), false)
$$;

CREATE FUNCTION is_queued(of_tenant text, in_queue text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN coalesce((SELECT true FROM running_messages r WHERE r.tenant_id = of_tenant AND r.queue = in_queue ORDER BY r.queue LIMIT 1), false);
END $$;

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

-- How many messages wait for an instance alone.
CREATE FUNCTION queue_length(of_tenant text, of_instance text) RETURNS integer LANGUAGE plpgsql STABLE AS $$
DECLARE
  own_queue text := queue_of(of_instance, NULL, NULL); -- as in waiting_decisions
BEGIN
  RETURN (SELECT count(*)::integer FROM (SELECT r.queue FROM running_messages r
    WHERE r.tenant_id = of_tenant AND r.queue = own_queue ORDER BY r.queue) AS waiting);
END $$;

-- Sessions whose decision waits for room on an instance; new work leaves that room to them.
CREATE FUNCTION waiting_decisions(of_tenant text, of_instance text) RETURNS integer LANGUAGE plpgsql STABLE AS $$
DECLARE
  own_queue text := queue_of(of_instance, NULL, NULL); -- within the query it would be no condition of the index, because of its COALESCE
BEGIN
  RETURN (SELECT count(DISTINCT waiting.session_id)::integer FROM (SELECT r.session_id FROM running_messages r
    WHERE r.tenant_id = of_tenant AND r.queue = own_queue AND r.resolution IS NOT NULL ORDER BY r.created_at) AS waiting);
END $$;
