-- The agents of sessions. The first one of a session that a message opened is in the session's row, and gets a row of
-- its own when another joins: most such sessions have no other.
CREATE VIEW session_members WITH (security_invoker = true) AS
  SELECT j.tenant_id, j.session_id, j.agent_type, j.instance_id, j.joined_at, j.join_reason FROM session_agents j
  UNION ALL
  SELECT s.tenant_id, s.session_id, s.agent_type, s.instance_id, s.created_at, 'routed' FROM sessions s
   WHERE NOT s.explicit AND s.instance_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM session_agents j
     WHERE j.tenant_id = s.tenant_id AND j.session_id = s.session_id AND j.instance_id = s.instance_id);
GRANT SELECT ON session_members TO fleet_app, fleet_system;

-- Records that an agent joins a session, whose lock the caller holds. One that joins again gets a new time and reason.
CREATE FUNCTION join_session(of_tenant text, of_session text, joining_type text, joining_instance text, reason text)
RETURNS session_agents LANGUAGE plpgsql AS $$
DECLARE
  joined session_agents;
BEGIN
  INSERT INTO session_agents (tenant_id, session_id, agent_type, instance_id, joined_at, join_reason)
    SELECT s.tenant_id, s.session_id, s.agent_type, s.instance_id, s.created_at, 'routed' FROM sessions s
     WHERE s.tenant_id = of_tenant AND s.session_id = of_session AND NOT s.explicit AND s.instance_id IS NOT NULL
    ON CONFLICT (tenant_id, session_id, instance_id) DO NOTHING;
  INSERT INTO session_agents AS j (tenant_id, session_id, agent_type, instance_id, join_reason)
    VALUES (of_tenant, of_session, joining_type, joining_instance, reason)
    ON CONFLICT (tenant_id, session_id, instance_id)
      DO UPDATE SET agent_type = excluded.agent_type, joined_at = excluded.joined_at, join_reason = excluded.join_reason
    RETURNING * INTO joined;
  RETURN joined;
END $$;
