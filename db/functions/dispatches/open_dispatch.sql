-- Routes a message on the workflow path and opens its dispatch (→ open): the session is bound where routing says so, and counts again where
-- it was suspended. The caller holds the locks of session and message. `only_reachable`: an agent to which no connection opened for this
-- message will not do. Gives the dispatch, the time that the message has, and how the session was bound; when no agent is
-- free, only the `queue` that the message waits in.
CREATE FUNCTION open_dispatch(of_tenant text, of_message text, new_dispatch text, only_reachable boolean)
RETURNS TABLE (instance_id text, agent_type text, mesh_id text, deployment_mode text, attempt integer, deadline_ms integer, join_reason text, queue text)
  LANGUAGE plpgsql
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_hashjoin = off SET enable_mergejoin = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  r running_messages;
  s sessions;
  agent chosen_agent;
BEGIN
  SELECT * INTO r FROM running_messages x WHERE x.tenant_id = of_tenant AND x.message_id = of_message;
  SELECT * INTO s FROM sessions x WHERE x.tenant_id = of_tenant AND x.session_id = r.session_id;
  agent := choose_agent((of_tenant, r.session_id, s.explicit, s.reserves, s.suspended, s.instance_id, s.agent_type, r.instance_id, r.agent_type,
    r.want_instance_id, r.want_agent_type, r.want_skill_id, r.unreachable_ids, r.resolution IS NOT NULL, NULL, false,
    r.resolution IS NULL AND NOT s.explicit AND r.created_at = s.created_at, NULL)::routing);
  IF agent.instance_id IS NULL OR only_reachable AND agent.unreachable THEN
    queue := coalesce(agent.awaits, ''); -- only_reachable: it does not wait any more
    RETURN NEXT;
    RETURN;
  END IF;
  IF agent.join_reason IS NOT NULL THEN
    PERFORM join_session(of_tenant, r.session_id, agent.agent_type, agent.instance_id, agent.join_reason);
    IF coalesce(s.agent_type, agent.agent_type) = agent.agent_type THEN
      s.instance_id := agent.instance_id;
      -- Room was claimed for it there, so a suspended session is counted again.
      s.suspended := false;
      UPDATE sessions x SET instance_id = agent.instance_id, agent_type = agent.agent_type, suspended = false
       WHERE x.tenant_id = of_tenant AND x.session_id = r.session_id;
    END IF;
  END IF;
  -- Room was claimed for the session on its own agent: it is counted there again.
  IF s.suspended AND s.instance_id = agent.instance_id THEN
    UPDATE sessions x SET suspended = false WHERE x.tenant_id = of_tenant AND x.session_id = r.session_id;
  END IF;
  UPDATE running_messages x SET current_dispatch_id = new_dispatch, attempts = x.attempts + 1, instance_id = agent.instance_id,
      agent_type = agent.agent_type, holds_slot = true,
      remote_task_id = CASE WHEN x.instance_id = agent.instance_id THEN x.remote_task_id END,
      remote_context_id = CASE WHEN x.instance_id = agent.instance_id THEN x.remote_context_id END
   WHERE x.tenant_id = of_tenant AND x.message_id = of_message;
  UPDATE messages m SET instance_id = agent.instance_id, agent_type = agent.agent_type
   WHERE m.tenant_id = of_tenant AND m.message_id = of_message RETURNING m.deadline_ms INTO deadline_ms;
  INSERT INTO dispatches (tenant_id, dispatch_id, message_id, instance_id, agent_type, deployment_mode, mesh_id, epoch, attempt, state,
      skill_id)
    VALUES (of_tenant, new_dispatch, of_message, agent.instance_id, agent.agent_type, agent.deployment_mode, agent.mesh_id,
      agent.connection_epoch, r.attempts + 1, 'open', r.want_skill_id);
  RETURN QUERY SELECT agent.instance_id, agent.agent_type, agent.mesh_id, agent.deployment_mode, r.attempts + 1, deadline_ms, agent.join_reason,
    NULL::text;
END $$;
