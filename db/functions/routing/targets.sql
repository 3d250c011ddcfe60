-- What is registered, and whether there is room for it. `coalesce(deregistered_at, 'infinity') = 'infinity'` is, word
-- for word, the predicate of agents_registered: only that index fits it, so no plan reads deregistered agents.

-- Whether a registered agent has a skill.
CREATE FUNCTION has_skill(agent agents, skill text) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT skill IS NULL OR EXISTS (SELECT 1 FROM agent_skills s
    WHERE s.tenant_id = agent.tenant_id AND s.instance_id = agent.instance_id AND s.skill_id = skill
      AND s.agent_type = '')
$$;

-- An agent that something can be sent to, room or not; no row for none. It is read by its key alone (OFFSET 0): with
-- has_room beside it a plan that was made while few were registered takes agents_sampled, and reads all agents of the
-- tenant.
CREATE FUNCTION routable_agent(of_tenant text, of_instance text) RETURNS SETOF agents LANGUAGE sql STABLE AS $$
  SELECT * FROM (SELECT * FROM agents a WHERE a.tenant_id = of_tenant AND a.instance_id = of_instance OFFSET 0) a
    WHERE a.has_room IS NOT NULL
$$;

-- Whether a registered agent, whatever its status, is what a message asks for.
CREATE FUNCTION target_registered(of_tenant text, only_instance text, only_type text, only_skill text) RETURNS boolean
  LANGUAGE plpgsql STABLE AS $$
DECLARE
  skills_of text := coalesce(only_type, '');
BEGIN
  IF only_instance IS NOT NULL THEN
    RETURN EXISTS (SELECT 1 FROM agents a
      WHERE a.tenant_id = of_tenant AND a.instance_id = only_instance AND a.deregistered_at IS NULL
      AND a.agent_type = coalesce(only_type, a.agent_type) AND has_skill(a, only_skill));
  ELSIF only_skill IS NOT NULL THEN
    RETURN EXISTS (SELECT 1 FROM agent_skills s
      WHERE s.tenant_id = of_tenant AND s.skill_id = only_skill AND s.agent_type = skills_of);
  ELSIF only_type IS NOT NULL THEN
    RETURN EXISTS (SELECT 1 FROM agents a WHERE a.tenant_id = of_tenant AND a.agent_type = only_type
      AND coalesce(a.deregistered_at, 'infinity') = 'infinity');
  END IF;
  RETURN EXISTS (SELECT 1 FROM agents a
    WHERE a.tenant_id = of_tenant AND coalesce(a.deregistered_at, 'infinity') = 'infinity');
END $$;

-- The next agent type after `after` that is registered. An index leads to it, past all agents of the types before.
CREATE FUNCTION registered_type_after(of_tenant text, after text) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT a.agent_type FROM agents a WHERE a.tenant_id = of_tenant AND a.agent_type > after
    AND coalesce(a.deregistered_at, 'infinity') = 'infinity' ORDER BY a.agent_type LIMIT 1);
END $$;

-- The type of messages that name no target: the tenant's default, else the only registered type; NULL where there are
-- several or none.
CREATE FUNCTION default_target(of_tenant text) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
  found text := (SELECT t.default_agent_type FROM tenants t WHERE t.tenant_id = of_tenant);
BEGIN
  IF found IS NULL THEN
    found := registered_type_after(of_tenant, '');
    RETURN CASE WHEN registered_type_after(of_tenant, found) IS NULL THEN found END;
  END IF;
  RETURN found;
END $$;

CREATE FUNCTION type_may_join(of_tenant text, of_type text) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT t.allowed FROM agent_types t WHERE t.tenant_id = of_tenant AND t.agent_type = of_type),
    NOT EXISTS (SELECT 1 FROM agent_types t WHERE t.tenant_id = of_tenant AND t.allowed)) $$;

-- Whether a node has no room for further dispatches to an agent (messages/runner/saturation.ts).
CREATE FUNCTION is_saturated(agent agents) RETURNS boolean LANGUAGE sql STABLE
  AS $$ SELECT coalesce(agent.saturated_until > now(), false) $$;
