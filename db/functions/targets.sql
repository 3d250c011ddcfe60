-- What is registered. `coalesce(deregistered_at, 'infinity') = 'infinity'` is, word for word, the predicate of agents_registered: only that
-- index fits it, so no plan reads deregistered agents.

CREATE FUNCTION has_skill(agent agents, skill text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN skill IS NULL OR agent.skills @> jsonb_build_array(jsonb_build_object('id', skill))
    OR agent.agent_card -> 'skills' @> jsonb_build_array(jsonb_build_object('id', skill));
END $$;

-- Whether a registered agent, whatever its status, is what a message asks for.
CREATE FUNCTION target_registered(of_tenant text, only_instance text, only_type text, only_skill text) RETURNS boolean
  LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF only_instance IS NOT NULL THEN
    RETURN EXISTS (SELECT 1 FROM agents a WHERE a.tenant_id = of_tenant AND a.instance_id = only_instance AND a.deregistered_at IS NULL
      AND a.agent_type = coalesce(only_type, a.agent_type) AND has_skill(a, only_skill));
  ELSIF only_type IS NOT NULL THEN
    RETURN EXISTS (SELECT 1 FROM agents a WHERE a.tenant_id = of_tenant AND a.agent_type = only_type
      AND coalesce(a.deregistered_at, 'infinity') = 'infinity' AND has_skill(a, only_skill));
  END IF;
  RETURN EXISTS (SELECT 1 FROM agents a WHERE a.tenant_id = of_tenant AND coalesce(a.deregistered_at, 'infinity') = 'infinity'
    AND has_skill(a, only_skill));
END $$;

-- The next agent type after `after` that is registered. An index leads to it, past all agents of the types before.
CREATE FUNCTION registered_type_after(of_tenant text, after text) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT a.agent_type FROM agents a WHERE a.tenant_id = of_tenant AND a.agent_type > after
    AND coalesce(a.deregistered_at, 'infinity') = 'infinity' ORDER BY a.agent_type LIMIT 1);
END $$;

-- The type of messages that name no target: the tenant's default, else the only registered type; NULL where there are several or none.
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
