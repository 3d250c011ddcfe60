-- T1 and T2 for several messages at once: those that come while others are on their way share a round trip, a transaction and a commit.
-- Each function takes an array of calls and gives a row for each, in its order. What fails one call undoes them all, and so does a lock
-- that is not to be had at once; whoever called then makes each by itself, `patient`.

-- One index instead of two: the key gives a tenant's newest events first.
ALTER TABLE events DROP CONSTRAINT events_pkey, ADD PRIMARY KEY (tenant_id, occurred_at, event_id);
DROP INDEX events_newest, events_by_session;
-- A condition on an index is made ready anew by every statement that writes its table.
CREATE INDEX events_by_session ON events (tenant_id, session_id, occurred_at DESC);

DROP FUNCTION accept_message, end_dispatch;

-- What T1 is given of a message. `new_dispatch` NULL: it is accepted only. `event_ids`: of session.created, message.received,
-- dispatch.sent. `most` in flight for the tenant; 0 for not looked at.
CREATE TYPE message_call AS (
  tenant_id text, message_id text, session_id text, context text, credential text, client_message text, hash bytea,
  method text, parts jsonb, metadata jsonb, user_input text, want_instance text, want_type text, want_skill text,
  trace text, parent_span text, baggage text, deadline_ms integer, creator text, idle_seconds integer, most integer,
  new_dispatch text, at_mesh text, event_ids text[]
);

-- `verdict`: dispatched | accepted | repeat | mismatch (of content under one messageId) | full | no_session | session_closed.
CREATE TYPE message_verdict AS (
  verdict text, its_message text, its_session text, at timestamptz, its_instance text, its_type text, its_mode text,
  its_epoch bigint, its_url text, its_card jsonb, its_user text
);

-- What T2 is given of a dispatch's end. `produced` NULL: the agent brought no output, and what is there stays. `event_ids`: of the
-- dispatch's event and the message's.
CREATE TYPE dispatch_end AS (
  tenant_id text, message_id text, dispatch_id text, epoch bigint, outcome text, error text, error_said text,
  produced jsonb, used jsonb, output text, status jsonb, event_ids text[]
);

-- `ended_at` NULL: the dispatch was not the message's current one, and nothing was written. `called`: messages that wait for an agent,
-- because this one has room now; whoever called wakes them.
CREATE TYPE dispatch_ended AS (ended_at timestamptz, called jsonb);

-- What was sent before under the same messageId, by the same credential, in the same context: 'repeat' or, with other content,
-- 'mismatch'; `otherwise` is the verdict where nothing was.
DROP FUNCTION earlier_message;
CREATE FUNCTION earlier_message(c message_call, otherwise text) RETURNS message_verdict LANGUAGE plpgsql AS $$
DECLARE
  it message_verdict;
BEGIN
  SELECT m.message_id, m.session_id, CASE WHEN m.content_hash = c.hash THEN 'repeat' ELSE 'mismatch' END
    INTO it.its_message, it.its_session, it.verdict FROM messages m
   WHERE m.tenant_id = c.tenant_id AND m.credential_id = c.credential AND m.requested_context = c.context
     AND m.client_message_id = c.client_message;
  it.verdict := coalesce(it.verdict, otherwise);
  RETURN it;
END $$;

-- The agent that T1 may dispatch to without more ado; NULL where the choice is not easy.
CREATE FUNCTION easy_agent(c message_call) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
  fitting bigint := 2;
  chosen text;
BEGIN
  IF c.want_skill IS NULL AND c.want_instance IS NOT NULL THEN
    RETURN c.want_instance;
  END IF;
  -- One that fits needs no comparing.
  IF c.want_skill IS NULL AND c.want_type IS NOT NULL THEN
    SELECT count(*), min(few.instance_id) INTO fitting, chosen FROM (
      SELECT a.instance_id FROM agents a WHERE a.tenant_id = c.tenant_id AND a.agent_type = c.want_type
         AND a.deregistered_at IS NULL AND a.status IN ('available', 'unknown') LIMIT 2) AS few;
  END IF;
  IF fitting > 1 THEN
    SELECT r.instance_id INTO chosen FROM routable_agents(c.tenant_id, c.want_instance, c.want_type, c.want_skill, NULL) r LIMIT 1;
  END IF;
  RETURN chosen;
END $$;

-- T1: puts a message on the record and, where that is easy, opens its dispatch as sent, all at once. Easy: an agent that a mesh node
-- `at_mesh` reaches itself is the right one and has room.
CREATE FUNCTION accept_message(c message_call) RETURNS message_verdict LANGUAGE plpgsql AS $$
DECLARE
  it message_verdict;
  room integer;
  session record;
  agent record;
  chosen text;
BEGIN
  it.at := now();
  IF c.most > 0 AND (SELECT count(*) FROM (
       SELECT 1 FROM messages m WHERE m.tenant_id = c.tenant_id AND m.state IN ('submitted', 'working', 'input-required') LIMIT c.most
     ) AS in_flight) >= c.most THEN
    RETURN earlier_message(c, 'full');
  END IF;

  it.its_message := c.message_id;
  IF c.context = '' THEN
    it.its_session := c.session_id;
    IF c.new_dispatch IS NOT NULL THEN
      chosen := easy_agent(c);
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
    SELECT a.agent_type, a.deployment_mode, a.connection_epoch, a.max_concurrent_sessions, a.public_url,
           CASE WHEN a.deployment_mode = 'hosted' THEN a.agent_card END AS agent_card, a.mesh_id, a.status, a.deregistered_at
      INTO agent FROM agents a WHERE a.tenant_id = c.tenant_id AND a.instance_id = chosen;
    IF NOT FOUND OR agent.deregistered_at IS NOT NULL OR agent.status NOT IN ('available', 'unknown')
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
      it.its_card := agent.agent_card;
    END IF;
  END IF;

  INSERT INTO messages (tenant_id, message_id, session_id, credential_id, requested_context, client_message_id, content_hash,
      state, method, parts, metadata, user_input, want_instance_id, want_agent_type, want_skill_id, instance_id, agent_type,
      trace_id, parent_span_id, baggage, deadline_ms, attempts, current_dispatch_id, holds_slot, wake_requested_at, started_at)
    VALUES (c.tenant_id, c.message_id, it.its_session, c.credential, c.context, c.client_message, c.hash,
      CASE WHEN it.its_instance IS NULL THEN 'submitted' ELSE 'working' END, c.method, c.parts, c.metadata, c.user_input,
      c.want_instance, c.want_type, c.want_skill, it.its_instance, it.its_type, c.trace, c.parent_span, c.baggage, c.deadline_ms,
      CASE WHEN it.its_instance IS NULL THEN 0 ELSE 1 END, CASE WHEN it.its_instance IS NOT NULL THEN c.new_dispatch END,
      it.its_instance IS NOT NULL, it.at, CASE WHEN it.its_instance IS NOT NULL THEN it.at END)
    ON CONFLICT (tenant_id, credential_id, requested_context, client_message_id) DO NOTHING;
  IF NOT FOUND THEN
    -- Nothing was written here, and what was sent before is committed, or was written by this same statement.
    RETURN earlier_message(c, NULL);
  END IF;
  IF c.context = '' THEN
    INSERT INTO sessions (tenant_id, session_id, explicit, status, idle_timeout_seconds, created_by, wake_requested_at, instance_id,
        agent_type)
      VALUES (c.tenant_id, it.its_session, false, 'active', c.idle_seconds, c.creator, it.at, it.its_instance, it.its_type);
    IF it.its_instance IS NOT NULL THEN
      INSERT INTO session_agents (tenant_id, session_id, agent_type, instance_id, join_reason)
        VALUES (c.tenant_id, it.its_session, it.its_type, it.its_instance, 'routed');
    END IF;
  END IF;
  IF it.its_instance IS NOT NULL THEN
    INSERT INTO dispatches (tenant_id, dispatch_id, message_id, session_id, instance_id, agent_type, deployment_mode, mesh_id, epoch,
        attempt, state, skill_id, sent_at, deadline_at)
      VALUES (c.tenant_id, c.new_dispatch, c.message_id, it.its_session, it.its_instance, it.its_type, it.its_mode, c.at_mesh,
        it.its_epoch, 1, 'open', c.want_skill, it.at, it.at + c.deadline_ms * interval '1 ms');
  END IF;
  INSERT INTO events (tenant_id, event_id, event_type, category, source, severity, session_id, trace_id, payload)
    SELECT c.tenant_id, c.event_ids[told.place], told.type, told.category, 'platform', 'info', it.its_session, c.trace,
           CASE told.place
             WHEN 1 THEN jsonb_build_object('session_id', it.its_session, 'tenant_id', c.tenant_id, 'created_by', c.creator)
             WHEN 2 THEN jsonb_build_object('message_id', c.message_id, 'session_id', it.its_session, 'role', 'user')
             ELSE jsonb_build_object('dispatch_id', c.new_dispatch, 'instance_id', it.its_instance, 'skill_id', c.want_skill,
               'session_id', it.its_session)
           END
      FROM (VALUES (1, 'session.created', 'session', c.context = ''), (2, 'message.received', 'message', true),
                   (3, 'dispatch.sent', 'dispatch', it.its_instance IS NOT NULL)) AS told (place, type, category, so)
     WHERE told.so;
  RETURN it;
END $$;

-- T2: takes the end of a dispatch that is open, the message's current one and, where an epoch is given, of that epoch; the message ends
-- with it as `outcome` (completed | failed). FL001 is raised where the dispatch is not open, or of another epoch.
CREATE FUNCTION end_dispatch(c dispatch_end) RETURNS dispatch_ended LANGUAGE plpgsql AS $$
DECLARE
  it dispatch_ended;
  message record;
  dispatch record;
  failed boolean := c.outcome <> 'completed';
  severity text;
  why jsonb;
BEGIN
  -- coalesce: nothing but the keys may be a way to these rows.
  UPDATE messages m SET state = c.outcome, artifacts = coalesce(c.produced, m.artifacts), usage = coalesce(c.used, m.usage),
      assistant_output = coalesce(c.output, m.assistant_output),
      status_message = CASE WHEN c.produced IS NULL THEN m.status_message ELSE c.status END,
      error_code = c.error, error_message = c.error_said, completed_at = now(), updated_at = now(),
      holds_slot = false, resolution = NULL, unrouted_since = NULL, wake_requested_at = NULL
   WHERE m.tenant_id = c.tenant_id AND m.message_id = c.message_id AND coalesce(m.current_dispatch_id, '') = c.dispatch_id
     AND coalesce(m.state, '') IN ('submitted', 'working', 'input-required')
   RETURNING m.session_id, m.trace_id, m.created_at INTO message;
  IF NOT FOUND THEN
    RETURN it;
  END IF;
  it.ended_at := now();
  -- Who closes a dispatch holds its message; only a connection that resumes changes it otherwise, namely the epoch.
  UPDATE dispatches d SET state = c.outcome, error_code = c.error, ended_at = it.ended_at
   WHERE d.tenant_id = c.tenant_id AND d.dispatch_id = c.dispatch_id AND coalesce(d.state, '') = 'open'
     AND (c.epoch IS NULL OR d.epoch = c.epoch)
   RETURNING d.instance_id, d.agent_type, d.sent_at INTO dispatch;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the dispatch is not open, or of another epoch' USING ERRCODE = 'FL001';
  END IF;
  severity := CASE WHEN failed THEN 'warning' ELSE 'info' END;
  why := CASE WHEN failed THEN jsonb_build_object('error', c.error) ELSE '{}' END;
  INSERT INTO events (tenant_id, event_id, event_type, category, source, severity, session_id, trace_id, payload)
    SELECT c.tenant_id, c.event_ids[1], CASE WHEN failed THEN 'dispatch.failed' ELSE 'dispatch.success' END, 'dispatch', 'platform',
           severity, message.session_id, message.trace_id, why || jsonb_build_object('dispatch_id', c.dispatch_id,
             'instance_id', dispatch.instance_id, 'duration_ms', milliseconds_between(dispatch.sent_at, it.ended_at))
     WHERE dispatch.sent_at IS NOT NULL
    UNION ALL
    SELECT c.tenant_id, c.event_ids[2], CASE WHEN failed THEN 'message.error' ELSE 'message.completed' END, 'message', 'platform',
           severity, message.session_id, message.trace_id,
           CASE WHEN failed THEN why
                ELSE jsonb_build_object('role', 'agent', 'duration_ms', milliseconds_between(message.created_at, it.ended_at)) END
             || jsonb_build_object('message_id', c.message_id, 'session_id', message.session_id);
  it.called := call_waiting(c.tenant_id, dispatch.agent_type, dispatch.instance_id, 1);
  RETURN it;
END $$;

-- Nobody else's call is to stand still because one has to wait.
CREATE FUNCTION wait_for_locks(patient boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF NOT patient THEN
    PERFORM set_config('lock_timeout', '100ms', true);
  END IF;
END $$;

CREATE FUNCTION accept_messages(calls jsonb, patient boolean) RETURNS SETOF message_verdict LANGUAGE plpgsql
  SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  c message_call;
  tenant text := '';
BEGIN
  PERFORM wait_for_locks(patient);
  FOR c IN SELECT * FROM jsonb_populate_recordset(NULL::message_call, calls) LOOP
    IF c.tenant_id <> tenant THEN
      tenant := c.tenant_id;
      PERFORM act_for(tenant);
    END IF;
    RETURN NEXT accept_message(c);
  END LOOP;
END $$;

CREATE FUNCTION end_dispatches(calls jsonb, patient boolean) RETURNS SETOF dispatch_ended LANGUAGE plpgsql
  SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  c dispatch_end;
  tenant text := '';
BEGIN
  PERFORM wait_for_locks(patient);
  FOR c IN SELECT * FROM jsonb_populate_recordset(NULL::dispatch_end, calls) LOOP
    IF c.tenant_id <> tenant THEN
      tenant := c.tenant_id;
      PERFORM act_for(tenant);
    END IF;
    RETURN NEXT end_dispatch(c);
  END LOOP;
END $$;
