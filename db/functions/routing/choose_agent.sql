-- Routing: which agent takes a message as it is accepted. What waits in queues is taken by agents with room
-- (dispatches/take_messages.sql).

-- Whether the process that asks sends to an agent, or can tell the node that does.
CREATE FUNCTION is_reached(wish routing, deployment_mode text, mesh_id text)
  RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN deployment_mode = 'hosted' THEN wish.mesh_id IS NOT NULL OR coalesce(wish.reaches_nodes, false)
    ELSE mesh_id IS NOT NULL AND coalesce(mesh_id = wish.mesh_id OR wish.reaches_nodes, false) END
$$;

-- The node that is to send to an agent. A connected agent: the node of its connection. A hosted one: the node that
-- asks, if that has room for it, else any live node that has.
CREATE FUNCTION sending_node(wish routing, connected_to text, saturated_on jsonb)
  RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF connected_to IS NOT NULL THEN
    RETURN connected_to;
  ELSIF wish.mesh_id IS NOT NULL
    AND (saturated_on = '{}' OR wish.reaches_nodes IS NOT TRUE
    OR coalesce((saturated_on ->> wish.mesh_id)::timestamptz <= now(), true)) THEN
    RETURN wish.mesh_id;
  END IF;
  RETURN coalesce((SELECT n.mesh_id FROM mesh_nodes n WHERE n.renewed_at > now() - interval '5 s' AND NOT n.draining
    AND coalesce((saturated_on ->> n.mesh_id)::timestamptz <= now(), true) ORDER BY random() LIMIT 1), wish.mesh_id);
END $$;

-- Makes a chosen_agent from columns of an agent's row: a whole row would also read its card, which is stored out of
-- line. Inlined. `most_sessions`, `most_tasks`: as in is_unbounded. `alone`: no other of its type may have room.
CREATE FUNCTION chosen(wish routing, instance_id text, agent_type text, deployment_mode text, mesh_id text,
  saturated_on jsonb, connection_epoch bigint, public_url text, agent_card jsonb, dispatch_auth bytea,
  most_sessions integer, most_tasks integer, alone boolean) RETURNS chosen_agent LANGUAGE sql STABLE AS $$
  SELECT (instance_id, agent_type, deployment_mode, sending_node(wish, mesh_id, saturated_on), connection_epoch,
    public_url, CASE WHEN deployment_mode = 'hosted' THEN agent_card END, dispatch_auth,
    is_unbounded(most_sessions, most_tasks), alone AND is_unbounded(most_sessions, most_tasks))::chosen_agent
$$;

-- Makes a chosen_agent from a whole row. Others of its type may have room.
CREATE FUNCTION chosen_row(wish routing, agent agents) RETURNS chosen_agent LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN chosen(wish, agent.instance_id, agent.agent_type, agent.deployment_mode, agent.mesh_id, agent.saturated_on,
    agent.connection_epoch, agent.public_url, agent.agent_card, agent.dispatch_auth, agent.max_concurrent_sessions,
    agent.max_concurrent_tasks, alone => false);
END $$;

-- The first of these agents that has nothing to do, its room reserved; NULL for none. `idle_ids` may be NULL.
CREATE FUNCTION choose_idle(wish routing, idle_ids text[]) RETURNS chosen_agent LANGUAGE plpgsql AS $$
DECLARE
  a agents;
BEGIN
  IF idle_ids IS NULL THEN
    RETURN NULL;
  END IF;
  FOR a IN SELECT x.* FROM unnest(idle_ids) AS idle (id)
    JOIN agents x ON x.tenant_id = wish.tenant_id AND x.instance_id = idle.id
      WHERE x.agent_type = wish.want_agent_type AND x.has_room AND NOT is_saturated(x)
        AND has_skill(x, wish.want_skill_id) LOOP
    CONTINUE WHEN NOT is_reached(wish, a.deployment_mode, a.mesh_id)
      OR agent_has_queued(wish.tenant_id, a.instance_id, a.agent_type)
      OR fails_beside_others(wish.tenant_id, a.instance_id, a.agent_type) OR load_for(wish, a.instance_id) > 0;
    IF is_unbounded(a.max_concurrent_sessions, a.max_concurrent_tasks) THEN
      RETURN chosen_row(wish, a);
    ELSIF lock_room_at_once(wish.tenant_id, a.instance_id) THEN
      -- Looked at again, in a statement of its own, as in claim_room.
      IF load_for(wish, a.instance_id) = 0 THEN
        RETURN chosen_row(wish, a);
      END IF;
    END IF;
  END LOOP;
  RETURN NULL;
END $$;

-- The best agent of a sample, its room reserved; NULL when that one is not reached, or none of the sample has room. One
-- whose room another transaction has is passed over: nobody is waited for.
CREATE FUNCTION choose_sampled(wish routing, only_instance text, only_type text)
  RETURNS chosen_agent LANGUAGE plpgsql AS $$
DECLARE
  c record;
  agent agents;
BEGIN
  FOR c IN SELECT * FROM compared_agents(wish, only_instance, only_type, 8) LOOP
    agent := c.agent;
    IF c.is_full OR NOT is_reached(wish, agent.deployment_mode, agent.mesh_id) THEN
      RETURN NULL;
    ELSIF only_instance IS NULL AND is_held_back(wish.tenant_id, agent.instance_id, agent.agent_type) THEN
      CONTINUE; -- those behind it fail too, or are full
    ELSIF claim_room(wish, agent.instance_id, agent.agent_type, agent.status, agent.max_concurrent_sessions,
      agent.max_concurrent_tasks) THEN
      RETURN chosen_row(wish, agent);
    END IF;
  END LOOP;
  RETURN NULL;
END $$;

-- As choose_sampled, but one of `idle_ids` that has nothing to do goes first. If at most one agent of a type may have
-- room, as for most messages, there is nothing to compare. This case is tested first, because accept then takes a third
-- less time than if idle agents were tried first.
CREATE FUNCTION choose_for_target(wish routing, only_instance text, only_type text, idle_ids text[])
  RETURNS chosen_agent LANGUAGE plpgsql AS $$
DECLARE
  a record;
  idle chosen_agent;
BEGIN
  IF only_instance IS NULL AND wish.want_skill_id IS NULL THEN
    SELECT few.*, count(*) OVER () AS found INTO a FROM (
      SELECT x.instance_id, x.agent_type, x.deployment_mode, x.mesh_id, x.connection_epoch, x.public_url, x.agent_card,
             x.dispatch_auth, x.status, x.max_concurrent_sessions, x.max_concurrent_tasks, x.saturated_on FROM agents x
       WHERE x.tenant_id = wish.tenant_id AND x.agent_type = only_type AND x.has_room AND NOT is_saturated(x)
         ORDER BY x.shuffle LIMIT 2) AS few;
    IF a.found IS NULL OR a.found = 1 AND (NOT is_reached(wish, a.deployment_mode, a.mesh_id)
      OR is_held_back(wish.tenant_id, a.instance_id, a.agent_type)
        OR NOT claim_room(wish, a.instance_id, a.agent_type, a.status, a.max_concurrent_sessions,
        a.max_concurrent_tasks)) THEN
      RETURN NULL;
    ELSIF a.found = 1 THEN
      RETURN chosen(wish, a.instance_id, a.agent_type, a.deployment_mode, a.mesh_id, a.saturated_on,
        a.connection_epoch, a.public_url, a.agent_card, a.dispatch_auth, a.max_concurrent_sessions,
        a.max_concurrent_tasks, alone => true);
    END IF;
  END IF;
  IF only_instance IS NULL THEN
    idle := choose_idle(wish, idle_ids);
    IF idle.instance_id IS NOT NULL THEN
      RETURN idle;
    END IF;
  END IF;
  RETURN choose_sampled(wish, only_instance, only_type);
END $$;

-- The agent that reserves its room for a session, the best of its kind: the room stays locked until the transaction
-- ends. No row when all are full or none fits. If a whole sample is full, all agents are looked at, and those that stay
-- full are noted, so that the next samples leave them out. It looks at all because a session is refused if none is
-- found; agents_to_fill, which runs every second, may miss one until its next call.
CREATE FUNCTION choose_to_reserve(of_tenant text, only_instance text, only_type text)
  RETURNS TABLE (instance_id text, agent_type text)
  LANGUAGE plpgsql AS $$
DECLARE
  wish routing := new_routing(for_message => false, tenant_id => of_tenant);
  sample_size CONSTANT integer := 8; -- as for a message (compared_agents.sql)
  recheck_limit CONSTANT integer := 256; -- each costs a count of its load and the lock of its row
  at_most integer := sample_size; -- then NULL: all
  c record;
  compared integer;
  full_ids text[];
  rechecked boolean := false;
BEGIN
  LOOP
    compared := 0;
    full_ids := '{}';
    FOR c IN SELECT * FROM compared_agents(wish, only_instance, only_type, at_most) LOOP
      compared := compared + 1;
      IF NOT c.is_full AND reserve_for_session(wish, (c.agent).instance_id, (c.agent).max_concurrent_sessions) THEN
        RETURN QUERY SELECT (c.agent).instance_id, (c.agent).agent_type;
        RETURN;
      ELSIF c.is_full AND stays_full(c.last_dispatch_at) THEN
        full_ids := full_ids || (c.agent).instance_id;
      END IF;
    END LOOP;
    IF at_most IS NULL THEN
      PERFORM set_full_at(of_tenant, full_id, now()) FROM unnest(full_ids) AS full_id;
    END IF;
    IF only_instance IS NOT NULL THEN
      RETURN;
    ELSIF compared IS DISTINCT FROM at_most THEN
      IF rechecked OR NOT recheck_full(of_tenant, recheck_limit) THEN
        RETURN;
      END IF;
      rechecked := true;
    END IF;
    at_most := NULL;
  END LOOP;
END $$;

-- The agent of a session that reserves no room: the best that something can be sent to, even if it is full. No row for
-- none.
CREATE FUNCTION choose_routable(of_tenant text, only_instance text, only_type text)
  RETURNS SETOF agents LANGUAGE plpgsql
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
    SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  wish routing := new_routing(for_message => false, tenant_id => of_tenant);
BEGIN
  RETURN QUERY SELECT (c.agent).* FROM compared_agents(wish, only_instance, only_type, 8) c LIMIT 1;
  IF FOUND THEN
    RETURN;
  ELSIF only_instance IS NOT NULL THEN
    RETURN QUERY SELECT a.* FROM routable_agent(of_tenant, only_instance) a
      WHERE a.agent_type = coalesce(only_type, a.agent_type);
  ELSE
    RETURN QUERY SELECT a.* FROM agents a
      WHERE a.tenant_id = of_tenant AND a.agent_type = only_type AND a.has_room IS NOT NULL
      ORDER BY a.has_room, a.shuffle LIMIT 1;
  END IF;
END $$;

-- The agent of a session for a type; NULL for none.
CREATE FUNCTION session_agent(wish routing, of_type text) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF wish.session_agent_type = of_type AND wish.session_instance_id IS NOT NULL THEN
    RETURN wish.session_instance_id;
  END IF;
  RETURN (SELECT j.instance_id FROM session_agents j
           WHERE j.tenant_id = wish.tenant_id AND j.session_id = wish.session_id AND j.agent_type = of_type
             ORDER BY j.joined_at DESC LIMIT 1);
END $$;

-- The agent that can take a message now, its room reserved; NULL where none can, or another transaction holds the room:
-- the message then joins a queue. Its session's agent for the type, else what it asks for: one of `idle_ids` that has
-- nothing to do, else the least loaded.
CREATE FUNCTION choose_agent(wish routing, idle_ids text[]) RETURNS chosen_agent LANGUAGE plpgsql AS $$
DECLARE
  of_type text := coalesce(wish.want_agent_type, wish.session_agent_type);
  own_agent text;
  a agents;
BEGIN
  IF wish.session_id IS NULL THEN
    RETURN choose_for_target(wish, wish.want_instance_id, wish.want_agent_type, idle_ids);
  END IF;
  own_agent := session_agent(wish, of_type);
  -- The message would bind an agent to the session, which needs the session's lock: the take does that.
  IF own_agent IS NULL OR wish.session_instance_id IS NULL THEN
    RETURN NULL;
  END IF;
  SELECT * INTO a FROM agents x WHERE x.tenant_id = wish.tenant_id AND x.instance_id = own_agent;
  IF a.has_room IS NULL OR a.agent_type <> of_type OR is_saturated(a)
    OR NOT is_reached(wish, a.deployment_mode, a.mesh_id)
    OR NOT claim_room(wish, own_agent, of_type, a.status, a.max_concurrent_sessions, a.max_concurrent_tasks) THEN
    RETURN NULL;
  END IF;
  RETURN chosen_row(wish, a);
END $$;
