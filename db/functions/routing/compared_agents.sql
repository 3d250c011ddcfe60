-- The agents among which routing chooses. It compares a sample, so that a message costs the same however many agents
-- there are: eight of those that may have room, from a random place on in the order of `shuffle`. The least loaded of
-- eight is hardly ever a loaded one.
--
-- Both functions are inlined, and so planned with the query that calls them. `at_most` NULL: all that may have room.
CREATE FUNCTION sampled_agents(of_tenant text, only_type text, place double precision, at_most integer)
  RETURNS SETOF agents
  LANGUAGE sql STABLE AS $$
  (SELECT a.* FROM agents a
    WHERE a.tenant_id = of_tenant AND a.agent_type = only_type AND a.has_room AND a.shuffle >= place
      AND NOT is_saturated(a) ORDER BY a.shuffle LIMIT at_most)
   UNION ALL
  (SELECT a.* FROM agents a
    WHERE a.tenant_id = of_tenant AND a.agent_type = only_type AND a.has_room AND a.shuffle < place
      AND NOT is_saturated(a) ORDER BY a.shuffle LIMIT at_most)
   LIMIT at_most
$$;

-- The same of agents that have a skill; `of_type` '': of any type. Each agent is looked up by its key: for a join the
-- planner may read all agents first.
CREATE FUNCTION sampled_with_skill(of_tenant text, of_type text, skill text, place double precision, at_most integer)
  RETURNS SETOF agents
  LANGUAGE sql STABLE AS $$
  (SELECT a.* FROM agent_skills s CROSS JOIN LATERAL routable_agent(s.tenant_id, s.instance_id) a
    WHERE s.tenant_id = of_tenant AND s.skill_id = skill
      AND s.agent_type = of_type AND s.has_room AND s.shuffle >= place AND NOT is_saturated(a)
      ORDER BY s.shuffle LIMIT at_most)
   UNION ALL
  (SELECT a.* FROM agent_skills s CROSS JOIN LATERAL routable_agent(s.tenant_id, s.instance_id) a
    WHERE s.tenant_id = of_tenant AND s.skill_id = skill
      AND s.agent_type = of_type AND s.has_room AND s.shuffle < place AND NOT is_saturated(a)
      ORDER BY s.shuffle LIMIT at_most)
   LIMIT at_most
$$;

-- What an agent is compared by. Sessions are counted as far as it matters: to its bound, or to a hundred, and once
-- (OFFSET 0). `since`: the least dispatch id that is looked at, so that older partitions are not opened: an agent
-- without a later dispatch has no last_dispatch_at.
CREATE FUNCTION agent_comparison(of_instance text, most_sessions integer, most_tasks integer, wish routing, since text)
  RETURNS TABLE (is_full boolean, load integer, last_dispatch_at timestamptz) LANGUAGE sql STABLE AS $$
  SELECT (most_sessions > 0 AND l.load >= most_sessions)
           OR (most_tasks > 0 AND wish.for_message AND tasks_are_full(wish, of_instance, most_tasks)),
         l.load,
         (SELECT d.created_at FROM dispatches d
         WHERE d.tenant_id = wish.tenant_id AND d.instance_id = of_instance AND d.dispatch_id >= since
           ORDER BY d.created_at DESC LIMIT 1)
    FROM (SELECT x.load + unwritten_on(of_instance, wish.unwritten_ids) AS load
            FROM loads(wish.tenant_id, of_instance, CASE WHEN most_sessions > 0 THEN most_sessions ELSE 100 END) x
          OFFSET 0) l
$$;

-- Agents that could take what is wanted, the best first: those with room before full ones, those that fail beside
-- others last, then the least loaded, ties to the longest idle. `wish` has no session. `at_most`: so many, chosen by
-- chance; NULL: all. A busy one is not among them.
CREATE FUNCTION compared_agents(wish routing, only_instance text, only_type text, at_most integer)
  RETURNS TABLE (agent agents, is_full boolean, last_dispatch_at timestamptz) LANGUAGE plpgsql
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
    SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  since text := id_bound('dsp', (date_trunc('month', now() AT TIME ZONE 'UTC') - interval '1 month')::date);
  place double precision := random(); -- a volatile argument would keep sampled_agents from being inlined
  -- not within the query: COALESCE is not leakproof, so row-level security would keep it from the index
  skills_of text := coalesce(only_type, '');
BEGIN
  IF only_instance IS NOT NULL THEN
    RETURN QUERY SELECT a, s.is_full, s.last_dispatch_at FROM routable_agent(wish.tenant_id, only_instance) a
     CROSS JOIN LATERAL agent_comparison(a.instance_id, a.max_concurrent_sessions, a.max_concurrent_tasks, wish,
       since) s
     WHERE a.status <> 'busy' AND NOT is_saturated(a)
       AND has_skill(a, wish.want_skill_id) AND a.agent_type = coalesce(only_type, a.agent_type);
  ELSIF wish.want_skill_id IS NOT NULL THEN
    RETURN QUERY SELECT a, s.is_full, s.last_dispatch_at
      FROM sampled_with_skill(wish.tenant_id, skills_of, wish.want_skill_id, place, at_most) a
     CROSS JOIN LATERAL agent_comparison(a.instance_id, a.max_concurrent_sessions, a.max_concurrent_tasks, wish,
       since) s
     ORDER BY s.is_full, fails_beside_others(a.tenant_id, a.instance_id, a.agent_type), s.load,
       s.last_dispatch_at NULLS FIRST, a.instance_id;
  ELSE
    RETURN QUERY SELECT a, s.is_full, s.last_dispatch_at
      FROM sampled_agents(wish.tenant_id, only_type, place, at_most) a
     CROSS JOIN LATERAL agent_comparison(a.instance_id, a.max_concurrent_sessions, a.max_concurrent_tasks, wish,
       since) s
     ORDER BY s.is_full, fails_beside_others(a.tenant_id, a.instance_id, a.agent_type), s.load,
       s.last_dispatch_at NULLS FIRST, a.instance_id;
  END IF;
END $$;
