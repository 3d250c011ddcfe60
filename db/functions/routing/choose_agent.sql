-- Routing: which agent takes a message (specification, A2A; decisions.md, Agents). The only definition, for the accept transaction and for
-- the workflow path.

-- Whether the fast path that asks can have a dispatch sent to an agent.
CREATE FUNCTION fast_path_reaches(r routing, deployment_mode text, mesh_id text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT deployment_mode = 'hosted' OR mesh_id IS NOT NULL AND coalesce(mesh_id = r.only_mesh_id OR r.any_mesh, false)
$$;

-- Whether an agent could be given a dispatch now.
CREATE FUNCTION is_routable(agent agents) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT agent.deregistered_at IS NULL AND agent.status IN ('available', 'unknown', 'busy')
    AND (agent.deployment_mode = 'hosted' OR agent.mesh_id IS NOT NULL)
$$;

-- Up to eight agents of a type that could take what is wanted, from a place on in the order of `shuffle`: all of them where they are few. The
-- costs of a message do not grow with the number of agents, and the least loaded of eight is hardly ever a loaded one. Planned with the query
-- that asks, as what follows.
CREATE FUNCTION sampled_agents(of_tenant text, only_type text, only_skill text, place double precision) RETURNS SETOF agents
  LANGUAGE sql STABLE AS $$
  (SELECT a.* FROM agents a WHERE a.tenant_id = of_tenant AND a.agent_type = only_type AND a.shuffle >= place
      AND coalesce(a.deregistered_at, 'infinity') = 'infinity' AND a.status IN ('available', 'unknown', 'busy') AND is_routable(a)
      AND NOT is_saturated(a) AND has_skill(a, only_skill) ORDER BY a.shuffle LIMIT 8)
   UNION ALL
  (SELECT a.* FROM agents a WHERE a.tenant_id = of_tenant AND a.agent_type = only_type AND a.shuffle < place
      AND coalesce(a.deregistered_at, 'infinity') = 'infinity' AND a.status IN ('available', 'unknown', 'busy') AND is_routable(a)
      AND NOT is_saturated(a) AND has_skill(a, only_skill) ORDER BY a.shuffle LIMIT 8)
   LIMIT 8
$$;

-- All of them.
CREATE FUNCTION candidate_agents(of_tenant text, only_instance text, only_type text, only_skill text) RETURNS SETOF agents LANGUAGE sql STABLE AS $$
  SELECT a.* FROM agents a WHERE a.tenant_id = of_tenant AND is_routable(a) AND NOT is_saturated(a)
    AND has_skill(a, only_skill) AND (only_instance IS NULL OR a.instance_id = only_instance) AND (only_type IS NULL OR a.agent_type = only_type)
$$;

-- What an agent is compared by. `since`: in older partitions of dispatches nothing is looked for: who was idle for longer counts as idle.
CREATE FUNCTION standing(a agents, r routing, since text)
  RETURNS TABLE (is_full boolean, is_unreachable boolean, load integer, last_dispatch_at timestamptz) LANGUAGE sql STABLE AS $$
  SELECT a.status = 'busy' OR a.max_concurrent_sessions > 0 AND l.load + unwritten_on(a.instance_id, r.unwritten_ids) >= a.max_concurrent_sessions,
         a.instance_id = ANY (coalesce(r.unreachable_ids, '{}')), l.load + unwritten_on(a.instance_id, r.unwritten_ids),
         (SELECT d.created_at FROM dispatches d WHERE d.tenant_id = a.tenant_id AND d.instance_id = a.instance_id AND d.dispatch_id >= since
           ORDER BY d.created_at DESC LIMIT 1)
    FROM loads(a.tenant_id, a.instance_id) l
$$;

-- Agents that could take what is wanted, the best first: those with room before full and busy ones, those that were unreachable for the
-- message last, then the least loaded, ties to the longest idle. `sampled`: of some agents of the type, else of all.
CREATE FUNCTION routable_agents(r routing, only_instance text, only_type text, sampled boolean) RETURNS SETOF agents
  LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  since text := id_bound('dsp', (date_trunc('month', now() AT TIME ZONE 'UTC') - interval '1 month')::date);
  place double precision := random(); -- a volatile argument would keep sampled_agents out of the plan
BEGIN
  IF sampled AND only_type IS NOT NULL AND only_instance IS NULL THEN
    RETURN QUERY SELECT a.* FROM sampled_agents(r.tenant_id, only_type, r.want_skill_id, place) a CROSS JOIN LATERAL standing(a, r, since) s
       ORDER BY s.is_full, s.is_unreachable, s.load, s.last_dispatch_at NULLS FIRST, a.instance_id;
  ELSE
    RETURN QUERY SELECT a.* FROM candidate_agents(r.tenant_id, only_instance, only_type, r.want_skill_id) a CROSS JOIN LATERAL standing(a, r, since) s
       ORDER BY s.is_full, s.is_unreachable, s.load, s.last_dispatch_at NULLS FIRST, a.instance_id LIMIT 50;
  END IF;
END $$;

CREATE FUNCTION awaited(instance text) RETURNS chosen_agent LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  none chosen_agent;
BEGIN
  none.awaited_id := instance;
  RETURN none;
END $$;

-- The best agent of a kind for the fast path, its room reserved; NULL when that one is elsewhere or full, or none fits. Where one agent of a
-- type is there, as for most messages, there is nothing to compare.
CREATE FUNCTION choose_local(r routing, only_instance text, only_type text) RETURNS chosen_agent LANGUAGE plpgsql AS $$
DECLARE
  a record;
  must_compare boolean;
  sampled boolean;
  has_room boolean;
BEGIN
  IF only_instance IS NULL AND r.want_skill_id IS NULL THEN
    SELECT few.*, count(*) OVER () AS found INTO a FROM (
      SELECT x.instance_id, x.agent_type, x.deployment_mode, x.mesh_id, x.connection_epoch, x.public_url, x.agent_card, x.status,
             x.max_concurrent_sessions FROM agents x
       WHERE x.tenant_id = r.tenant_id AND x.agent_type = only_type AND coalesce(x.deregistered_at, 'infinity') = 'infinity'
         AND x.status IN ('available', 'unknown') AND NOT is_saturated(x) LIMIT 2) AS few;
    -- The way of most messages: there is room without a claim.
    IF a.found = 1 AND a.max_concurrent_sessions = 0 AND fast_path_reaches(r, a.deployment_mode, a.mesh_id) THEN
      RETURN (a.instance_id, a.agent_type, a.deployment_mode, a.mesh_id, a.connection_epoch, a.public_url,
        CASE WHEN a.deployment_mode = 'hosted' THEN a.agent_card END, false, 'routed'::text, NULL::text, true, true);
    ELSIF a.found IS NULL THEN
      RETURN NULL;
    END IF;
    must_compare := a.found > 1;
  ELSE
    must_compare := true;
  END IF;
  sampled := true;
  LOOP
    IF must_compare THEN
      SELECT x.*, count(*) OVER () AS found INTO a
        FROM routable_agents(r, only_instance, only_type, sampled) x LIMIT 1;
    END IF;
    IF a.instance_id IS NULL OR NOT fast_path_reaches(r, a.deployment_mode, a.mesh_id) THEN
      RETURN NULL;
    END IF;
    has_room := claim_room(r, a.instance_id, a.agent_type, a.status, a.max_concurrent_sessions);
    IF has_room THEN
      RETURN (a.instance_id, a.agent_type, a.deployment_mode, a.mesh_id, a.connection_epoch, a.public_url,
        CASE WHEN a.deployment_mode = 'hosted' THEN a.agent_card END, false, 'routed'::text, NULL::text, a.max_concurrent_sessions = 0, false);
    ELSIF has_room IS NULL THEN
      RETURN awaited(a.instance_id);
    END IF;
    -- All that were compared are full: where there are more, another may have room.
    IF NOT must_compare OR NOT sampled OR a.found < 8 THEN
      RETURN NULL;
    END IF;
    sampled := false;
  END LOOP;
END $$;

CREATE FUNCTION chosen(agent agents, unreachable boolean, join_reason text) RETURNS chosen_agent LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN (agent.instance_id, agent.agent_type, agent.deployment_mode, agent.mesh_id, agent.connection_epoch, agent.public_url,
    CASE WHEN agent.deployment_mode = 'hosted' THEN agent.agent_card END, unreachable, join_reason, NULL::text, agent.max_concurrent_sessions = 0, false);
END $$;

-- The best agent of a kind, its room reserved; NULL when all are full or none fits.
CREATE FUNCTION choose_best(r routing, only_instance text, only_type text, join_reason text) RETURNS chosen_agent LANGUAGE plpgsql AS $$
DECLARE
  agent agents;
  sampled boolean;
  tried integer := 0;
BEGIN
  FOREACH sampled IN ARRAY ARRAY[true, false] LOOP
    FOR agent IN SELECT * FROM routable_agents(r, only_instance, only_type, sampled) LOOP
      -- The lock of one without room is given up before the next is asked, so that two callers never wait for each other.
      BEGIN
        IF claim_room(r, agent.instance_id, agent.agent_type, agent.status, agent.max_concurrent_sessions) THEN
          RETURN chosen(agent, coalesce(agent.instance_id = ANY (r.unreachable_ids), false), join_reason);
        END IF;
        RAISE EXCEPTION USING ERRCODE = 'FL002';
      EXCEPTION WHEN SQLSTATE 'FL002' THEN
        NULL;
      END;
      tried := tried + 1;
    END LOOP;
    EXIT WHEN tried < 8;
  END LOOP;
  RETURN NULL;
END $$;

-- The agent of a session for a type; NULL for none.
CREATE FUNCTION session_agent(r routing, of_type text) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF r.session_agent_type = of_type AND r.session_instance_id IS NOT NULL THEN
    RETURN r.session_instance_id;
  END IF;
  RETURN (SELECT j.instance_id FROM session_agents j
           WHERE j.tenant_id = r.tenant_id AND j.session_id = r.session_id AND j.agent_type = of_type ORDER BY j.joined_at DESC LIMIT 1);
END $$;

-- The agent of a message: the one that has served it, else its session's for the type, else what it asks for, the least loaded. A bound
-- instance that is gone, or that cannot be reached, is replaced by another of its type that has the skill; one that the message names is
-- waited for. NULL: none is free now.
CREATE FUNCTION choose_agent(r routing) RETURNS chosen_agent LANGUAGE plpgsql AS $$
DECLARE
  bound_instance text;
  bound_type text;
  is_named boolean;
  agent agents;
  other chosen_agent;
  unreachable boolean;
  has_room boolean;
BEGIN
  IF r.session_id IS NULL AND r.only_mesh_id IS NOT NULL THEN
    RETURN choose_local(r, r.want_instance_id, r.want_agent_type);
  END IF;
  bound_instance := r.served_instance_id;
  bound_type := r.served_agent_type;
  IF bound_instance IS NULL AND r.session_id IS NOT NULL THEN
    bound_type := coalesce(r.want_agent_type, r.session_agent_type);
    bound_instance := session_agent(r, bound_type);
    -- Whoever joins a session needs its lock.
    IF r.only_mesh_id IS NOT NULL AND (bound_instance IS NULL OR r.session_instance_id IS NULL) THEN
      RETURN NULL;
    END IF;
  END IF;
  IF bound_instance IS NULL THEN
    RETURN choose_best(r, r.want_instance_id, coalesce(r.want_agent_type, r.session_agent_type), 'routed');
  END IF;

  is_named := coalesce(r.want_instance_id = bound_instance, false);
  SELECT * INTO agent FROM agents a WHERE a.tenant_id = r.tenant_id AND a.instance_id = bound_instance;
  unreachable := coalesce(bound_instance = ANY (r.unreachable_ids), false);
  IF agent.instance_id IS NOT NULL AND is_routable(agent) AND agent.agent_type = bound_type AND (is_named OR NOT unreachable)
      AND (r.only_mesh_id IS NULL OR fast_path_reaches(r, agent.deployment_mode, agent.mesh_id)) THEN
    IF NOT is_saturated(agent) THEN
      has_room := claim_room(r, bound_instance, bound_type, agent.status, agent.max_concurrent_sessions);
      IF has_room IS NULL THEN
        RETURN awaited(bound_instance);
      ELSIF NOT has_room THEN
        RETURN NULL;
      END IF;
      -- Deregistration unbinds a session; an instance that came back is bound again.
      RETURN chosen(agent, unreachable, CASE WHEN r.session_explicit AND r.session_instance_id IS NULL THEN 'failover' END);
    ELSIF NOT r.unsent THEN
      -- A saturated one is replaced only as long as it knows nothing of the session.
      RETURN NULL;
    END IF;
  END IF;
  IF is_named OR r.only_mesh_id IS NOT NULL THEN
    RETURN NULL;
  END IF;
  other := choose_best(r, NULL, bound_type, 'failover');
  IF other.instance_id = bound_instance THEN
    other.join_reason := NULL;
  END IF;
  RETURN other;
END $$;
