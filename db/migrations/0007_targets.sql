-- Who sent a message: the agent type of the token's claim; NULL: a credential that stands for no agent.
ALTER TABLE messages ADD COLUMN sender_agent_type text;

-- The agent type that gets messages which name no target.
ALTER TABLE tenants ADD COLUMN default_agent_type text;
GRANT UPDATE (default_agent_type) ON tenants TO fleet_app;

-- By state, so that messages at work are counted without a look at those that wait for input, and the reverse.
DROP INDEX messages_in_flight;
CREATE INDEX messages_in_flight ON messages (tenant_id, state, session_id) WHERE state IN ('submitted', 'working', 'input-required');

-- `most`: the bound of messages at work, `most_waiting`: of those that wait for input; 0: not to be counted. `too_many_wait`: the caller
-- knows that the latter is reached. `unavailable`: the text with which the message fails if its target is not registered. Processes of the
-- version before give no `most_waiting`, and are given none of the new verdicts.
ALTER TYPE message_call ADD ATTRIBUTE sender_type text, ADD ATTRIBUTE most_waiting integer, ADD ATTRIBUTE too_many_wait boolean,
  ADD ATTRIBUTE unavailable text;

-- `verdict` has further values. Nothing is written: full_waiting, target_required (nothing says whom the message is for),
-- target_unknown (no registered agent is what it is for; `its_type` is the type that was looked for). `unavailable`: it is on the record
-- as failed. `waiting`: messages that wait for input, where they were counted.
ALTER TYPE message_verdict ADD ATTRIBUTE waiting integer;

-- What is given instead of a new message: as `earlier_message`, with what was counted.
CREATE FUNCTION not_accepted(c message_call, it message_verdict, otherwise text) RETURNS message_verdict LANGUAGE plpgsql AS $$
DECLARE
  earlier message_verdict := earlier_message(c, otherwise);
BEGIN
  earlier.in_flight := it.in_flight;
  earlier.waiting := it.waiting;
  RETURN earlier;
END $$;

CREATE FUNCTION has_skill(agent agents, skill text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN skill IS NULL OR agent.skills @> jsonb_build_array(jsonb_build_object('id', skill))
    OR agent.agent_card -> 'skills' @> jsonb_build_array(jsonb_build_object('id', skill));
END $$;

-- Whether a registered agent, whatever its status, is what a message asks for. coalesce: as in accept_message.
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

-- The next type after `after` of which an agent is registered: an index leads to it, past all agents of the types before.
CREATE FUNCTION registered_type_after(of_tenant text, after text) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT a.agent_type FROM agents a WHERE a.tenant_id = of_tenant AND a.agent_type > after
    AND coalesce(a.deregistered_at, 'infinity') = 'infinity' ORDER BY a.agent_type LIMIT 1);
END $$;

-- The type for a message that names no target: the tenant's default, else its only one; NULL where there is neither.
CREATE FUNCTION default_target(of_tenant text) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
  found text := (SELECT t.default_agent_type FROM tenants t WHERE t.tenant_id = of_tenant);
BEGIN
  IF found IS NULL THEN
    found := registered_type_after(of_tenant, '');
    IF registered_type_after(of_tenant, found) IS NOT NULL THEN
      RETURN NULL;
    END IF;
  END IF;
  RETURN found;
END $$;

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
  want_type text := c.want_type;
  -- The session has an agent of that type, which goes before a wanted instance or skill.
  bound boolean := false;
  failed boolean := false;
BEGIN
  it.at := now();
  IF c.too_many_wait THEN
    RETURN not_accepted(c, it, 'full_waiting');
  END IF;
  IF c.most > 0 THEN
    -- Each state by itself: a plan for both at once takes the key, and reads all that the tenant ever sent.
    it.in_flight := (SELECT count(*) FROM (
      SELECT 1 FROM messages m WHERE m.tenant_id = c.tenant_id AND m.state = 'working' LIMIT c.most) AS few)
      + (SELECT count(*) FROM (
      SELECT 1 FROM messages m WHERE m.tenant_id = c.tenant_id AND m.state = 'submitted' LIMIT c.most) AS few);
    IF it.in_flight >= c.most THEN
      RETURN not_accepted(c, it, 'full');
    END IF;
  END IF;
  IF c.most_waiting > 0 THEN
    it.waiting := (SELECT count(*) FROM (
      SELECT 1 FROM messages m WHERE m.tenant_id = c.tenant_id AND m.state = 'input-required' LIMIT c.most_waiting
    ) AS few);
    IF it.waiting >= c.most_waiting THEN
      RETURN not_accepted(c, it, 'full_waiting');
    END IF;
  END IF;

  it.its_message := c.message_id;
  it.its_session := c.session_id;
  IF c.context <> '' THEN
    -- Closing locks the session; this holds it open until the message is on the record.
    it.its_session := c.context;
    SELECT s.status, s.explicit, s.instance_id, s.agent_type, s.user_id INTO session FROM sessions s
     WHERE s.tenant_id = c.tenant_id AND s.session_id = c.context FOR SHARE;
    IF NOT FOUND OR session.status <> 'active' THEN
      RETURN not_accepted(c, it, CASE WHEN session.status IS NULL THEN 'no_session' ELSE 'session_closed' END);
    END IF;
    it.its_user := session.user_id;
    want_type := coalesce(want_type, session.agent_type);
  END IF;

  IF coalesce(want_type, c.want_instance, c.want_skill) IS NULL THEN
    IF c.context <> '' THEN
      -- No agent has joined the session yet: it will be one of the type that its first message waits for.
      SELECT m.want_agent_type INTO want_type FROM messages m
       WHERE m.tenant_id = c.tenant_id AND m.session_id = c.context AND m.state IN ('submitted', 'working', 'input-required')
         AND m.want_agent_type IS NOT NULL ORDER BY m.created_at, m.message_id LIMIT 1;
    END IF;
    want_type := coalesce(want_type, default_target(c.tenant_id));
    IF want_type IS NULL AND c.most_waiting IS NOT NULL THEN
      RETURN not_accepted(c, it, 'target_required');
    END IF;
  END IF;

  IF c.context <> '' THEN
    -- Only the agent that the session has for this type; who joins is decided the long way.
    IF session.agent_type = want_type THEN
      chosen := session.instance_id;
      bound := true;
    ELSE
      SELECT j.instance_id INTO chosen FROM session_agents j
       WHERE j.tenant_id = c.tenant_id AND j.session_id = c.context AND j.agent_type = want_type ORDER BY j.joined_at DESC LIMIT 1;
      bound := FOUND;
    END IF;
  ELSIF c.new_dispatch IS NOT NULL THEN
    IF c.want_skill IS NULL AND c.want_instance IS NOT NULL THEN
      chosen := c.want_instance;
    ELSIF c.want_skill IS NULL THEN
      -- coalesce: only the index by tenant and type may be the way here, not those of registered agents of the whole platform.
      FOR agent IN SELECT * FROM agents a WHERE a.tenant_id = c.tenant_id AND a.agent_type = want_type
          AND coalesce(a.deregistered_at, 'infinity') = 'infinity' AND a.status IN ('available', 'unknown') LIMIT 2 LOOP
        fitting := fitting + 1;
        chosen := agent.instance_id;
      END LOOP;
    ELSE
      fitting := 2;
    END IF;
    -- One that fits needs no comparing.
    IF fitting > 1 THEN
      SELECT r.instance_id INTO chosen FROM routable_agents(c.tenant_id, c.want_instance, want_type, c.want_skill, NULL) r LIMIT 1;
    END IF;
  END IF;

  it.verdict := 'accepted';
  IF c.new_dispatch IS NULL THEN
    chosen := NULL;
  END IF;
  IF chosen IS NOT NULL THEN
    IF fitting <> 1 THEN
      SELECT * INTO agent FROM agents a WHERE a.tenant_id = c.tenant_id AND a.instance_id = chosen;
    END IF;
    IF agent.instance_id IS NULL OR agent.deregistered_at IS NOT NULL OR agent.status NOT IN ('available', 'unknown')
       OR agent.deployment_mode <> 'hosted' AND agent.mesh_id IS DISTINCT FROM c.at_mesh
       OR agent.agent_type <> coalesce(want_type, agent.agent_type) THEN
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

  -- Waited for is what is registered.
  IF it.its_instance IS NULL AND c.most_waiting IS NOT NULL AND NOT target_registered(c.tenant_id, CASE WHEN NOT bound THEN c.want_instance END, want_type,
      CASE WHEN NOT bound THEN c.want_skill END) THEN
    IF c.unavailable IS NULL THEN
      it := not_accepted(c, it, 'target_unknown');
      it.its_type := want_type;
      RETURN it;
    END IF;
    it.verdict := 'unavailable';
    failed := true;
  END IF;

  WITH accepted AS (
    INSERT INTO messages (tenant_id, message_id, session_id, credential_id, requested_context, client_message_id, content_hash,
        state, method, parts, metadata, user_input, want_instance_id, want_agent_type, want_skill_id, instance_id, agent_type,
        trace_id, parent_span_id, baggage, deadline_ms, attempts, current_dispatch_id, holds_slot, wake_requested_at, started_at,
        sender_agent_type, error_code, error_message, completed_at)
      VALUES (c.tenant_id, c.message_id, it.its_session, c.credential, c.context, c.client_message, c.hash,
        CASE WHEN failed THEN 'failed' WHEN it.its_instance IS NULL THEN 'submitted' ELSE 'working' END, c.method, c.parts, c.metadata,
        c.user_input, c.want_instance, want_type, c.want_skill, it.its_instance, it.its_type, c.trace, c.parent_span, c.baggage, c.deadline_ms,
        CASE WHEN it.its_instance IS NULL THEN 0 ELSE 1 END, CASE WHEN it.its_instance IS NOT NULL THEN c.new_dispatch END,
        it.its_instance IS NOT NULL, CASE WHEN NOT failed THEN it.at END, CASE WHEN it.its_instance IS NOT NULL THEN it.at END,
        c.sender_type, CASE WHEN failed THEN 'TARGET_UNAVAILABLE' END, CASE WHEN failed THEN c.unavailable END,
        CASE WHEN failed THEN it.at END)
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
    SELECT c.tenant_id, c.event_ids[told.place], told.type, told.category, 'platform',
           CASE told.place WHEN 4 THEN 'warning' ELSE 'info' END, it.its_session, c.trace,
           CASE told.place
             WHEN 1 THEN jsonb_build_object('session_id', it.its_session, 'tenant_id', c.tenant_id, 'created_by', c.creator)
             WHEN 2 THEN jsonb_build_object('message_id', c.message_id, 'session_id', it.its_session, 'role',
               CASE WHEN c.sender_type IS NULL THEN 'user' ELSE 'agent' END)
             WHEN 4 THEN jsonb_build_object('message_id', c.message_id, 'session_id', it.its_session, 'error', 'TARGET_UNAVAILABLE')
             ELSE jsonb_build_object('dispatch_id', c.new_dispatch, 'instance_id', it.its_instance, 'skill_id', c.want_skill,
               'session_id', it.its_session)
           END
      FROM accepted, (VALUES (1, 'session.created', 'session', c.context = ''), (2, 'message.received', 'message', true),
                   (3, 'dispatch.sent', 'dispatch', it.its_instance IS NOT NULL), (4, 'message.error', 'message', failed)) AS told (place, type, category, so)
     WHERE told.so;
  IF NOT FOUND THEN
    -- Nothing was written here, and what was sent before is committed, or was written by this same statement.
    RETURN not_accepted(c, it, NULL);
  END IF;
  RETURN it;
END $$;
