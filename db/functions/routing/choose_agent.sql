-- Routing: which agent takes a message (specification, A2A; decisions.md, Agents). The only definition, for the accept transaction and for
-- the workflow path.

-- Whether the fast path that asks can have a dispatch sent to an agent.
CREATE FUNCTION fast_path_reaches(r routing, deployment_mode text, mesh_id text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT deployment_mode = 'hosted' OR mesh_id IS NOT NULL AND coalesce(mesh_id = r.only_mesh_id OR r.any_mesh, false)
$$;

-- The node that is to send to an agent: the one that it is connected to; of a hosted one, where nodes have no room for it, one that has: the fast
-- path's own first. NULL for hosted agents otherwise: the fast path's own, and any on the workflow path. `no_room_on`: `agents.saturated_on`.
CREATE FUNCTION sending_node(r routing, connected_to text, no_room_on jsonb) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF connected_to IS NOT NULL OR no_room_on = '{}' OR r.only_mesh_id IS NOT NULL AND
      (NOT r.any_mesh OR coalesce((no_room_on ->> r.only_mesh_id)::timestamptz <= now(), true)) THEN
    RETURN connected_to;
  END IF;
  RETURN (SELECT n.mesh_id FROM mesh_nodes n WHERE n.renewed_at > now() - interval '5 s' AND NOT n.draining
    AND coalesce((no_room_on ->> n.mesh_id)::timestamptz <= now(), true) ORDER BY random() LIMIT 1);
END $$;

-- No agent; what is awaited as in `chosen_agent`.
CREATE FUNCTION awaited(what text) RETURNS chosen_agent LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  none chosen_agent;
BEGIN
  none.awaits := what;
  RETURN none;
END $$;

CREATE FUNCTION chosen(r routing, agent agents, unreachable boolean, join_reason text) RETURNS chosen_agent LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (agent.instance_id, agent.agent_type, agent.deployment_mode, sending_node(r, agent.mesh_id, agent.saturated_on), agent.connection_epoch,
    agent.public_url,
    CASE WHEN agent.deployment_mode = 'hosted' THEN agent.agent_card END, agent.dispatch_auth, unreachable, join_reason, NULL::text,
    agent.max_concurrent_sessions = 0 AND agent.max_concurrent_tasks = 0, false);
END $$;

-- The first of these agents that has nothing to do, its room reserved; NULL for none.
CREATE FUNCTION choose_idle(r routing, idle_ids text[]) RETURNS chosen_agent LANGUAGE plpgsql AS $$
DECLARE
  a agents;
BEGIN
  FOR a IN SELECT x.* FROM unnest(idle_ids) AS idle (id) JOIN agents x ON x.tenant_id = r.tenant_id AND x.instance_id = idle.id
      WHERE x.agent_type = r.want_agent_type AND x.has_room AND NOT is_saturated(x) AND has_skill(x, r.want_skill_id) LOOP
    CONTINUE WHEN NOT fast_path_reaches(r, a.deployment_mode, a.mesh_id) OR has_queued(r.tenant_id, a.instance_id, a.agent_type)
      OR fails_beside_others(r.tenant_id, a.instance_id, a.agent_type) OR load_for(r, a.instance_id) > 0;
    IF a.max_concurrent_sessions = 0 AND a.max_concurrent_tasks = 0
        OR lock_room_at_once(r.tenant_id, a.instance_id) AND load_for(r, a.instance_id) = 0 THEN
      RETURN chosen(r, a, false, 'routed');
    END IF;
  END LOOP;
  RETURN NULL;
END $$;

-- The best agent of a sample for the fast path, its room reserved; NULL when that one is elsewhere, or none of the sample has room.
CREATE FUNCTION choose_sampled(r routing, only_instance text, only_type text) RETURNS chosen_agent LANGUAGE plpgsql AS $$
DECLARE
  c record;
  agent agents;
  has_room boolean;
BEGIN
  FOR c IN SELECT * FROM compared_agents(r, only_instance, only_type, 8) LOOP
    agent := c.agent;
    IF c.is_full OR NOT fast_path_reaches(r, agent.deployment_mode, agent.mesh_id) THEN
      RETURN NULL;
    ELSIF only_instance IS NULL AND is_held_back(r.tenant_id, agent.instance_id, agent.agent_type) THEN
      CONTINUE; -- those behind it fail too, or are full
    ELSIF agent.max_concurrent_sessions = 0 AND agent.max_concurrent_tasks = 0 THEN
      RETURN chosen(r, agent, false, 'routed');
    ELSIF may_have_room(r, agent.instance_id, agent.agent_type, agent.status, agent.max_concurrent_sessions, agent.max_concurrent_tasks) THEN
      -- One lock only: who waits for a second room while it holds a first could wait for ever.
      has_room := reserve_room(r, agent.instance_id, agent.max_concurrent_sessions, agent.max_concurrent_tasks);
      RETURN CASE WHEN has_room THEN chosen(r, agent, false, 'routed') WHEN has_room IS NULL THEN awaited(agent.instance_id) END;
    END IF;
  END LOOP;
  RETURN NULL;
END $$;

-- As choose_sampled. Where one agent of a type may have room, as for most messages, there is nothing to compare, and where none may have, nothing
-- to look at.
CREATE FUNCTION choose_local(r routing, only_instance text, only_type text) RETURNS chosen_agent LANGUAGE plpgsql AS $$
DECLARE
  a record;
  has_room boolean := true;
BEGIN
  IF only_instance IS NOT NULL OR r.want_skill_id IS NOT NULL THEN
    RETURN choose_sampled(r, only_instance, only_type);
  END IF;
  SELECT few.*, count(*) OVER () AS found INTO a FROM (
    SELECT x.instance_id, x.agent_type, x.deployment_mode, x.mesh_id, x.connection_epoch, x.public_url, x.agent_card, x.dispatch_auth, x.status,
           x.max_concurrent_sessions, x.max_concurrent_tasks, x.saturated_on FROM agents x
     WHERE x.tenant_id = r.tenant_id AND x.agent_type = only_type AND x.has_room AND NOT is_saturated(x) ORDER BY x.shuffle LIMIT 2) AS few;
  IF a.found > 1 THEN
    RETURN choose_sampled(r, only_instance, only_type);
  ELSIF a.found IS NULL OR NOT fast_path_reaches(r, a.deployment_mode, a.mesh_id) OR is_held_back(r.tenant_id, a.instance_id, a.agent_type) THEN
    RETURN NULL;
  ELSIF a.max_concurrent_sessions > 0 OR a.max_concurrent_tasks > 0 THEN
    has_room := may_have_room(r, a.instance_id, a.agent_type, a.status, a.max_concurrent_sessions, a.max_concurrent_tasks);
    IF has_room THEN
      has_room := reserve_room(r, a.instance_id, a.max_concurrent_sessions, a.max_concurrent_tasks);
    END IF;
  END IF;
  IF has_room IS NULL THEN
    RETURN awaited(a.instance_id);
  ELSIF NOT has_room THEN
    RETURN NULL;
  END IF;
  RETURN (a.instance_id, a.agent_type, a.deployment_mode, sending_node(r, a.mesh_id, a.saturated_on), a.connection_epoch, a.public_url,
    CASE WHEN a.deployment_mode = 'hosted' THEN a.agent_card END, a.dispatch_auth, false, 'routed'::text, NULL::text,
    a.max_concurrent_sessions = 0 AND a.max_concurrent_tasks = 0, a.max_concurrent_sessions = 0 AND a.max_concurrent_tasks = 0);
END $$;

-- An agent, its room reserved; NULL when it has none. The lock of one without room is given up before another agent is asked, so that two callers
-- never wait for each other.
CREATE FUNCTION claimed(r routing, agent agents, join_reason text) RETURNS chosen_agent LANGUAGE plpgsql AS $$
BEGIN
  IF NOT claim_room(r, agent.instance_id, agent.agent_type, agent.status, agent.max_concurrent_sessions) THEN
    RAISE EXCEPTION USING ERRCODE = 'FL002';
  END IF;
  RETURN chosen(r, agent, coalesce(agent.instance_id = ANY (r.unreachable_ids), false), join_reason);
EXCEPTION WHEN SQLSTATE 'FL002' THEN
  RETURN NULL;
END $$;

-- The best agent of a kind, its room reserved; NULL when all are full or none fits. Where a whole sample is full all are looked at, and those that
-- were dispatched to nothing for a second are noted as full, so that this does not happen again. Others may have room in a moment.
CREATE FUNCTION choose_best(r routing, only_instance text, only_type text, join_reason text) RETURNS chosen_agent LANGUAGE plpgsql AS $$
DECLARE
  at_most integer := 8;
  c record;
  best chosen_agent;
  compared integer;
  full_ids text[];
  rechecked boolean := false;
BEGIN
  LOOP
    compared := 0;
    full_ids := '{}';
    FOR c IN SELECT * FROM compared_agents(r, only_instance, only_type, at_most) LOOP
      compared := compared + 1;
      IF NOT c.is_full AND best.instance_id IS NULL THEN
        best := claimed(r, c.agent, join_reason);
      ELSIF c.is_full AND coalesce(c.last_dispatch_at < now() - interval '1 s', true) THEN
        full_ids := full_ids || (c.agent).instance_id;
      END IF;
    END LOOP;
    IF at_most IS NULL THEN
      PERFORM set_full_at(r.tenant_id, full_id, now()) FROM unnest(full_ids) AS full_id;
    END IF;
    IF best.instance_id IS NOT NULL OR only_instance IS NOT NULL THEN
      RETURN best;
    ELSIF compared IS DISTINCT FROM at_most THEN
      IF rechecked OR NOT recheck_full(r.tenant_id, 256) THEN
        RETURN best;
      END IF;
      rechecked := true;
    END IF;
    at_most := NULL;
  END LOOP;
END $$;

-- The agent of a session that reserves no room: the best that something can be sent to, though it be full. No row for none.
CREATE FUNCTION choose_routable(of_tenant text, only_instance text, only_type text) RETURNS SETOF agents LANGUAGE plpgsql AS $$
DECLARE
  r routing := jsonb_populate_record(NULL::routing, jsonb_build_object('tenant_id', of_tenant));
BEGIN
  RETURN QUERY SELECT (c.agent).* FROM compared_agents(r, only_instance, only_type, 8) c LIMIT 1;
  IF NOT FOUND THEN
    RETURN QUERY SELECT a.* FROM agents a WHERE a.tenant_id = of_tenant AND a.has_room IS NOT NULL
      AND a.instance_id = coalesce(only_instance, a.instance_id) AND a.agent_type = coalesce(only_type, a.agent_type) LIMIT 1;
  END IF;
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
-- waited for. Where none is free now, the workflow path is told the queue that the message waits in.
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
    bound_type := coalesce(r.want_agent_type, r.session_agent_type);
    other := choose_best(r, r.want_instance_id, bound_type, 'routed');
    RETURN CASE WHEN other.instance_id IS NULL THEN awaited(queue_of(r.want_instance_id, bound_type, r.want_skill_id)) ELSE other END;
  END IF;

  is_named := coalesce(r.want_instance_id = bound_instance, false);
  SELECT * INTO agent FROM agents a WHERE a.tenant_id = r.tenant_id AND a.instance_id = bound_instance;
  unreachable := coalesce(bound_instance = ANY (r.unreachable_ids), false);
  IF agent.has_room IS NOT NULL AND agent.agent_type = bound_type AND (is_named OR NOT unreachable)
      AND (r.only_mesh_id IS NULL OR fast_path_reaches(r, agent.deployment_mode, agent.mesh_id)) THEN
    IF NOT is_saturated(agent) THEN
      has_room := claim_room(r, bound_instance, bound_type, agent.status, agent.max_concurrent_sessions, agent.max_concurrent_tasks);
      IF has_room IS NULL THEN
        RETURN awaited(bound_instance);
      ELSIF has_room THEN
        -- Deregistration unbinds a session; an instance that came back is bound again.
        RETURN chosen(r, agent, unreachable, CASE WHEN r.session_explicit AND r.session_instance_id IS NULL THEN 'failover' END);
      END IF;
    END IF;
    -- A saturated one is replaced only as long as it knows nothing of the session.
    IF r.only_mesh_id IS NOT NULL THEN
      RETURN NULL;
    ELSIF has_room IS NOT NULL OR NOT r.unsent THEN
      RETURN awaited(queue_of(bound_instance, NULL, NULL));
    END IF;
  END IF;
  IF r.only_mesh_id IS NOT NULL THEN
    RETURN NULL;
  ELSIF is_named THEN
    RETURN awaited(queue_of(bound_instance, NULL, NULL));
  END IF;
  other := choose_best(r, NULL, bound_type, 'failover');
  IF other.instance_id IS NULL THEN
    RETURN awaited(queue_of(NULL, bound_type, r.want_skill_id));
  ELSIF other.instance_id = bound_instance THEN
    other.join_reason := NULL;
  END IF;
  RETURN other;
END $$;
