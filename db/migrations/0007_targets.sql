-- Who sent a message: the agent type of the token's claim; NULL: a credential that stands for no agent.
ALTER TABLE messages ADD COLUMN sender_agent_type text;
ALTER TYPE message_call ADD ATTRIBUTE sender_type text;

-- T1: puts a message on the record and, where that is easy, opens its dispatch as sent, all at once. Easy: an agent that a mesh node
-- `at_mesh` reaches itself is the right one and has room.
CREATE OR REPLACE FUNCTION accept_message(c message_call) RETURNS message_verdict LANGUAGE plpgsql AS $$
DECLARE
  it message_verdict;
  room integer;
  session record;
  agent agents;
  fitting integer := 0;
  chosen text;
BEGIN
  it.at := now();
  IF c.most > 0 THEN
    it.in_flight := (SELECT count(*) FROM (
      SELECT 1 FROM messages m WHERE m.tenant_id = c.tenant_id AND m.state IN ('submitted', 'working', 'input-required') LIMIT c.most
    ) AS few);
    IF it.in_flight >= c.most THEN
      RETURN earlier_message(c, 'full');
    END IF;
  END IF;

  it.its_message := c.message_id;
  IF c.context = '' THEN
    it.its_session := c.session_id;
    IF c.new_dispatch IS NOT NULL THEN
      IF c.want_skill IS NULL AND c.want_instance IS NOT NULL THEN
        chosen := c.want_instance;
      ELSIF c.want_skill IS NULL AND c.want_type IS NOT NULL THEN
        -- coalesce: only the index by tenant and type may be the way here, not those of registered agents of the whole platform.
        FOR agent IN SELECT * FROM agents a WHERE a.tenant_id = c.tenant_id AND a.agent_type = c.want_type
            AND coalesce(a.deregistered_at, 'infinity') = 'infinity' AND a.status IN ('available', 'unknown') LIMIT 2 LOOP
          fitting := fitting + 1;
          chosen := agent.instance_id;
        END LOOP;
      ELSE
        fitting := 2;
      END IF;
      -- One that fits needs no comparing.
      IF fitting > 1 THEN
        SELECT r.instance_id INTO chosen FROM routable_agents(c.tenant_id, c.want_instance, c.want_type, c.want_skill, NULL) r LIMIT 1;
      END IF;
    END IF;
  ELSE
    -- Closing locks the session; this holds it open until the message is on the record.
    it.its_session := c.context;
    SELECT s.status, s.explicit, s.instance_id, s.agent_type, s.user_id INTO session FROM sessions s
     WHERE s.tenant_id = c.tenant_id AND s.session_id = c.context FOR SHARE;
    IF NOT FOUND OR session.status <> 'active' THEN
      RETURN earlier_message(c, CASE WHEN session.status IS NULL THEN 'no_session' ELSE 'session_closed' END);
    END IF;
    it.its_user := session.user_id;
    IF c.new_dispatch IS NOT NULL THEN
      -- Only the agent that the session has for this type; who joins is decided the long way.
      IF session.agent_type = coalesce(c.want_type, session.agent_type) THEN
        chosen := session.instance_id;
      ELSE
        SELECT j.instance_id INTO chosen FROM session_agents j
         WHERE j.tenant_id = c.tenant_id AND j.session_id = c.context AND j.agent_type = c.want_type ORDER BY j.joined_at DESC LIMIT 1;
      END IF;
    END IF;
  END IF;

  it.verdict := 'accepted';
  IF chosen IS NOT NULL THEN
    IF fitting <> 1 THEN
      SELECT * INTO agent FROM agents a WHERE a.tenant_id = c.tenant_id AND a.instance_id = chosen;
    END IF;
    IF agent.instance_id IS NULL OR agent.deregistered_at IS NOT NULL OR agent.status NOT IN ('available', 'unknown')
       OR agent.deployment_mode <> 'hosted' AND agent.mesh_id IS DISTINCT FROM c.at_mesh
       OR agent.agent_type <> coalesce(c.want_type, agent.agent_type) THEN
      chosen := NULL;
    END IF;
  END IF;
  IF chosen IS NOT NULL THEN
    room := agent.max_concurrent_sessions;
    -- A full one is not worth the lock.
    IF room > 0 AND c.context = '' AND agent_load(c.tenant_id, chosen) >= room THEN
      room := -1;
    ELSIF room > 0 THEN
      PERFORM lock_room(c.tenant_id, chosen);
    END IF;
    IF c.context <> '' THEN
      IF EXISTS (SELECT 1 FROM messages m WHERE m.tenant_id = c.tenant_id AND m.session_id = c.context AND m.suspends_session) THEN
        room := -1;
      ELSIF session.explicit AND session.instance_id = chosen
        OR EXISTS (SELECT 1 FROM messages m WHERE m.tenant_id = c.tenant_id AND m.session_id = c.context AND m.holds_slot
                      AND m.instance_id = chosen AND m.state IN ('submitted', 'working', 'input-required')) THEN
        room := 0;
      END IF;
    END IF;
    -- Who waits for this agent already comes first.
    IF room > 0 AND EXISTS (SELECT 1 FROM messages m
         WHERE m.tenant_id = c.tenant_id AND m.unrouted_since IS NOT NULL AND NOT m.holds_slot
           AND coalesce(m.agent_type, m.want_agent_type, agent.agent_type) = agent.agent_type
           AND coalesce(m.want_instance_id, chosen) = chosen) THEN
      room := -1;
    END IF;
    IF room = 0 OR room > 0 AND agent_load(c.tenant_id, chosen) < room THEN
      it.verdict := 'dispatched';
      it.its_instance := chosen;
      it.its_type := agent.agent_type;
      it.its_mode := agent.deployment_mode;
      it.its_epoch := agent.connection_epoch;
      it.its_url := agent.public_url;
      it.its_card := CASE WHEN agent.deployment_mode = 'hosted' THEN agent.agent_card END;
    END IF;
  END IF;

  WITH accepted AS (
    INSERT INTO messages (tenant_id, message_id, session_id, credential_id, requested_context, client_message_id, content_hash,
        state, method, parts, metadata, user_input, want_instance_id, want_agent_type, want_skill_id, instance_id, agent_type,
        trace_id, parent_span_id, baggage, deadline_ms, attempts, current_dispatch_id, holds_slot, wake_requested_at, started_at,
        sender_agent_type)
      VALUES (c.tenant_id, c.message_id, it.its_session, c.credential, c.context, c.client_message, c.hash,
        CASE WHEN it.its_instance IS NULL THEN 'submitted' ELSE 'working' END, c.method, c.parts, c.metadata, c.user_input,
        c.want_instance, c.want_type, c.want_skill, it.its_instance, it.its_type, c.trace, c.parent_span, c.baggage, c.deadline_ms,
        CASE WHEN it.its_instance IS NULL THEN 0 ELSE 1 END, CASE WHEN it.its_instance IS NOT NULL THEN c.new_dispatch END,
        it.its_instance IS NOT NULL, it.at, CASE WHEN it.its_instance IS NOT NULL THEN it.at END, c.sender_type)
      ON CONFLICT (tenant_id, credential_id, requested_context, client_message_id) DO NOTHING RETURNING 1),
  opened AS (
    INSERT INTO sessions (tenant_id, session_id, explicit, status, idle_timeout_seconds, created_by, wake_requested_at, instance_id,
        agent_type)
      SELECT c.tenant_id, it.its_session, false, 'active', c.idle_seconds, c.creator, it.at, it.its_instance, it.its_type
        FROM accepted WHERE c.context = ''),
  joined AS (
    INSERT INTO session_agents (tenant_id, session_id, agent_type, instance_id, join_reason)
      SELECT c.tenant_id, it.its_session, it.its_type, it.its_instance, 'routed'
        FROM accepted WHERE c.context = '' AND it.its_instance IS NOT NULL),
  sent AS (
    INSERT INTO dispatches (tenant_id, dispatch_id, message_id, session_id, instance_id, agent_type, deployment_mode, mesh_id, epoch,
        attempt, state, skill_id, sent_at, deadline_at)
      SELECT c.tenant_id, c.new_dispatch, c.message_id, it.its_session, it.its_instance, it.its_type, it.its_mode, c.at_mesh,
        it.its_epoch, 1, 'open', c.want_skill, it.at, it.at + c.deadline_ms * interval '1 ms'
        FROM accepted WHERE it.its_instance IS NOT NULL)
  INSERT INTO events (tenant_id, event_id, event_type, category, source, severity, session_id, trace_id, payload)
    SELECT c.tenant_id, c.event_ids[told.place], told.type, told.category, 'platform', 'info', it.its_session, c.trace,
           CASE told.place
             WHEN 1 THEN jsonb_build_object('session_id', it.its_session, 'tenant_id', c.tenant_id, 'created_by', c.creator)
             WHEN 2 THEN jsonb_build_object('message_id', c.message_id, 'session_id', it.its_session, 'role',
               CASE WHEN c.sender_type IS NULL THEN 'user' ELSE 'agent' END)
             ELSE jsonb_build_object('dispatch_id', c.new_dispatch, 'instance_id', it.its_instance, 'skill_id', c.want_skill,
               'session_id', it.its_session)
           END
      FROM accepted, (VALUES (1, 'session.created', 'session', c.context = ''), (2, 'message.received', 'message', true),
                   (3, 'dispatch.sent', 'dispatch', it.its_instance IS NOT NULL)) AS told (place, type, category, so)
     WHERE told.so;
  IF NOT FOUND THEN
    -- Nothing was written here, and what was sent before is committed, or was written by this same statement.
    RETURN earlier_message(c, NULL);
  END IF;
  RETURN it;
END $$;
