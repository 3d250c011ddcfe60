-- T1 and T2 of a message (architecture.md, decision 11): one call is one statement, one transaction and one round trip, which also
-- names the tenant and takes the role that row-level security is for.
--
-- The hot ones turn sequential scans off: their plans are made when the tables are small and serve when they are large.

-- Raised by whoever takes a message over; the short way renews its lease only while it is unchanged.
ALTER TABLE messages ADD COLUMN lease_epoch integer NOT NULL DEFAULT 0;

-- Every statement parses the CHECKs of a table that it writes anew: a quarter of T1 and T2. The states come from the functions below and
-- from messages/ only; every test of a whole platform ends with a look at them, and at what the foreign keys said.
ALTER TABLE messages DROP CONSTRAINT messages_state_check;
ALTER TABLE dispatches DROP CONSTRAINT dispatches_state_check;
ALTER TABLE sessions DROP CONSTRAINT sessions_status_check;
ALTER TABLE events DROP CONSTRAINT events_severity_check;

-- Every send took a lock on its tenant's row and looked up rows that the same statement had just written or locked.
ALTER TABLE sessions DROP CONSTRAINT sessions_tenant_id_fkey;
ALTER TABLE session_agents DROP CONSTRAINT session_agents_tenant_id_session_id_fkey;
ALTER TABLE messages DROP CONSTRAINT messages_tenant_id_session_id_fkey;
ALTER TABLE dispatches DROP CONSTRAINT dispatches_tenant_id_message_id_fkey;

-- What a reader needs to follow the events without a gap, at no cost to who writes them: every event with an xact_id below
-- pg_snapshot_xmin(pg_current_snapshot()) is visible, and none will come. Outbox and positions were written, deleted and numbered for
-- every event although nothing read them: a quarter of the database's work for a message.
ALTER TABLE events ADD COLUMN xact_id xid8 NOT NULL DEFAULT pg_current_xact_id();
DROP TABLE event_outbox, event_positions;

-- Fewer indexes to write. Identifiers are UUIDv7, so the keys give the newest first; a partial index holds only what is looked for by it.
-- Beside the key, whole indexes begin with what selects a few rows, not with the tenant: a plan that is made while a table is empty, and
-- kept, takes any index that begins with a column of the query for as good as the key.
DROP INDEX messages_newest, messages_by_session, messages_supervised, sessions_newest, sessions_supervised, dispatches_by_message,
  dispatches_newest, messages_idempotency, sessions_to_wake, sessions_slots, messages_slots,
  dispatches_open;
CREATE UNIQUE INDEX messages_idempotency ON messages (client_message_id, credential_id, requested_context, tenant_id);
CREATE INDEX messages_by_session ON messages (session_id, message_id);
CREATE INDEX messages_supervised ON messages (supervised_at)
  WHERE supervised_at IS NOT NULL AND state IN ('submitted', 'working', 'input-required');
CREATE INDEX sessions_to_wake ON sessions (wake_requested_at) WHERE wake_requested_at IS NOT NULL AND explicit;
CREATE INDEX sessions_to_begin ON sessions (wake_requested_at) WHERE wake_requested_at IS NOT NULL AND NOT explicit;
CREATE INDEX sessions_supervised ON sessions (supervised_at) WHERE supervised_at IS NOT NULL AND status = 'active';
-- With the key at the end entries of one agent never equal each other: many dead equals make every insert look for room among them.
-- The load of an agent is counted in the order of its sessions, which an index that has it saves the sort of.
CREATE INDEX messages_slots ON messages (tenant_id, instance_id, session_id, message_id) WHERE holds_slot;
CREATE INDEX sessions_slots ON sessions (tenant_id, instance_id, session_id) WHERE status = 'active' AND explicit;
CREATE INDEX dispatches_open ON dispatches (tenant_id, instance_id, dispatch_id) WHERE state = 'open';
CREATE INDEX dispatches_newest ON dispatches (instance_id, tenant_id, created_at DESC);
CREATE INDEX dispatches_unreachable ON dispatches (tenant_id, message_id) WHERE state = 'void' AND error_code = 'CONNECT_FAILED';

-- A message leaves dead rows twice; vacuumed early they cost its successors nothing.
ALTER TABLE messages SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
ALTER TABLE dispatches SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- Agents that can take what is wanted now, the best first: least loaded, ties to the longest idle (decisions.md, Agents). Full ones come
-- after all others, and before them those to which no connection opened for the message that is being routed.
CREATE FUNCTION routable_agents(of_tenant text, only_instance text, only_type text, only_skill text, for_message text)
RETURNS TABLE (instance_id text, agent_type text, deployment_mode text, mesh_id text, connection_epoch bigint,
               max_concurrent_sessions integer, load integer, unreachable boolean)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT a.instance_id, a.agent_type, a.deployment_mode, a.mesh_id, a.connection_epoch, a.max_concurrent_sessions,
           serving.load, missed.unreachable
      FROM agents a
      CROSS JOIN LATERAL (SELECT agent_load(a.tenant_id, a.instance_id) AS load) serving
      CROSS JOIN LATERAL (
        SELECT EXISTS (SELECT 1 FROM dispatches d WHERE d.tenant_id = a.tenant_id AND d.message_id = for_message
                          AND d.instance_id = a.instance_id AND d.state = 'void' AND d.error_code = 'CONNECT_FAILED') AS unreachable
      ) missed
      LEFT JOIN LATERAL (SELECT d.created_at FROM dispatches d WHERE d.tenant_id = a.tenant_id AND d.instance_id = a.instance_id
                          ORDER BY d.created_at DESC LIMIT 1) last ON true
     WHERE a.tenant_id = of_tenant AND a.deregistered_at IS NULL AND a.status IN ('available', 'unknown')
       AND (a.deployment_mode = 'hosted' OR a.mesh_id IS NOT NULL)
       AND (only_instance IS NULL OR a.instance_id = only_instance)
       AND (only_type IS NULL OR a.agent_type = only_type)
       AND (only_skill IS NULL OR a.skills @> jsonb_build_array(jsonb_build_object('id', only_skill))
            OR a.agent_card -> 'skills' @> jsonb_build_array(jsonb_build_object('id', only_skill)))
     ORDER BY (a.max_concurrent_sessions > 0 AND serving.load >= a.max_concurrent_sessions), missed.unreachable,
              serving.load, last.created_at NULLS FIRST, a.instance_id
     LIMIT 50;
END $$;

-- As it was, with a plan that is kept.
CREATE OR REPLACE FUNCTION agent_load(of_tenant text, of_instance text) RETURNS integer LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT count(*)::integer FROM (
    SELECT s.session_id FROM sessions s
     WHERE s.tenant_id = of_tenant AND s.instance_id = of_instance AND s.status = 'active' AND s.explicit
       AND NOT EXISTS (SELECT 1 FROM messages m
                        WHERE m.tenant_id = s.tenant_id AND m.session_id = s.session_id AND m.suspends_session)
    UNION
    SELECT m.session_id FROM messages m WHERE m.tenant_id = of_tenant AND m.instance_id = of_instance AND m.holds_slot
  ) AS served);
END $$;

-- Keeps others from taking room on a bounded instance until the transaction ends. Taking it twice is harmless.
CREATE FUNCTION lock_room(of_tenant text, of_instance text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('capacity:' || of_tenant || ':' || of_instance, 0));
END $$;

CREATE FUNCTION milliseconds_between(earlier timestamptz, later timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT greatest(0, (extract(epoch FROM later - earlier) * 1000)::bigint) $$;

-- From here on the transaction sees one tenant only.
CREATE FUNCTION act_for(of_tenant text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('role', 'fleet_app', true), set_config('app.tenant_id', of_tenant, true);
END $$;

-- Calls messages that wait for a free agent, because one has room: the oldest that could use this one and were not called yet. Their
-- workflows look again at once instead of at their next, slower look. Gives whom to wake after the commit; NULL for nobody.
CREATE FUNCTION call_waiting(of_tenant text, roomy_type text, roomy_instance text, most integer) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  called jsonb;
BEGIN
  IF NOT EXISTS (SELECT 1 FROM messages m WHERE m.tenant_id = of_tenant AND m.unrouted_since IS NOT NULL) THEN
    RETURN NULL;
  END IF;
  WITH picked AS MATERIALIZED (
    SELECT m.tenant_id, m.message_id FROM messages m
     WHERE m.tenant_id = of_tenant AND m.unrouted_since IS NOT NULL AND NOT m.holds_slot AND m.wake_requested_at IS NULL
       AND coalesce(m.agent_type, m.want_agent_type, roomy_type) = roomy_type
       AND coalesce(m.want_instance_id, roomy_instance) = roomy_instance
     ORDER BY m.created_at LIMIT most FOR UPDATE SKIP LOCKED), marked AS (
    UPDATE messages m SET wake_requested_at = now() FROM picked
     WHERE m.tenant_id = picked.tenant_id AND m.message_id = picked.message_id
    RETURNING m.tenant_id, m.message_id, m.session_id)
  SELECT jsonb_agg(to_jsonb(marked)) INTO called FROM marked;
  RETURN called;
END $$;

-- The row of a message.
CREATE FUNCTION find_message(of_tenant text, of_message text) RETURNS SETOF messages LANGUAGE plpgsql AS $$
BEGIN
  PERFORM act_for(of_tenant);
  RETURN QUERY SELECT m.* FROM messages m WHERE m.tenant_id = of_tenant AND m.message_id = of_message;
END $$;

-- What was sent before under the same messageId, by the same credential, in the same context: 'repeat' or, with other content,
-- 'mismatch'; `verdict` is what it is otherwise.
CREATE FUNCTION earlier_message(
  of_tenant text, context text, credential text, client_message text, hash bytea, otherwise text,
  OUT its_message text, OUT its_session text, OUT verdict text
) LANGUAGE plpgsql AS $$
BEGIN
  SELECT m.message_id, m.session_id, CASE WHEN m.content_hash = hash THEN 'repeat' ELSE 'mismatch' END
    INTO its_message, its_session, verdict FROM messages m
   WHERE m.tenant_id = of_tenant AND m.credential_id = credential AND m.requested_context = context
     AND m.client_message_id = client_message;
  verdict := coalesce(verdict, otherwise);
END $$;

-- T1: puts a message on the record and, where that is easy, opens its dispatch as sent, all at once. Easy: an agent that a mesh node
-- `at_mesh` reaches itself is the right one and has room. `new_dispatch` NULL: the message is accepted only.
-- `event_ids`: of session.created, message.received, dispatch.sent. `most` in flight for the tenant; 0 for not looked at.
-- `verdict`: dispatched | accepted | repeat | mismatch (of content under one messageId) | full | no_session | session_closed.
CREATE FUNCTION accept_message(
  of_tenant text, new_message text, new_session text, context text, credential text, client_message text, hash bytea,
  how text, said jsonb, extra jsonb, said_text text, want_instance text, want_type text, want_skill text,
  trace text, parent_span text, bag text, deadline integer, creator text, idle_seconds integer, most integer,
  new_dispatch text, at_mesh text, event_ids text[],
  OUT verdict text, OUT its_message text, OUT its_session text, OUT at timestamptz,
  OUT its_instance text, OUT its_type text, OUT its_mode text, OUT its_epoch bigint, OUT its_url text, OUT its_card jsonb, OUT its_user text
) LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  room integer;
  session record;
  agent record;
  chosen text;
  fitting bigint := 2;
BEGIN
  PERFORM act_for(of_tenant);
  at := now();
  IF most > 0 AND (SELECT count(*) FROM (
       SELECT 1 FROM messages m WHERE m.tenant_id = of_tenant AND m.state IN ('submitted', 'working', 'input-required') LIMIT most
     ) AS in_flight) >= most THEN
    SELECT * INTO its_message, its_session, verdict
      FROM earlier_message(of_tenant, context, credential, client_message, hash, 'full');
    RETURN;
  END IF;

  its_message := new_message;
  IF context = '' THEN
    its_session := new_session;
    IF new_dispatch IS NOT NULL AND want_skill IS NULL AND want_instance IS NOT NULL THEN
      chosen := want_instance;
    ELSIF new_dispatch IS NOT NULL THEN
      -- One that fits needs no comparing.
      IF want_skill IS NULL AND want_type IS NOT NULL THEN
        SELECT count(*), min(few.instance_id) INTO fitting, chosen FROM (
          SELECT a.instance_id FROM agents a WHERE a.tenant_id = of_tenant AND a.agent_type = want_type
             AND a.deregistered_at IS NULL AND a.status IN ('available', 'unknown') LIMIT 2) AS few;
      END IF;
      IF fitting > 1 THEN
        SELECT r.instance_id INTO chosen FROM routable_agents(of_tenant, want_instance, want_type, want_skill, NULL) r LIMIT 1;
      END IF;
    END IF;
  ELSE
    -- Closing locks the session; this holds it open until the message is on the record.
    its_session := context;
    SELECT s.status, s.explicit, s.instance_id, s.agent_type, s.user_id INTO session FROM sessions s
     WHERE s.tenant_id = of_tenant AND s.session_id = context FOR SHARE;
    IF NOT FOUND OR session.status <> 'active' THEN
      SELECT * INTO its_message, its_session, verdict FROM earlier_message(of_tenant, context, credential, client_message, hash,
        CASE WHEN session.status IS NULL THEN 'no_session' ELSE 'session_closed' END);
      RETURN;
    END IF;
    its_user := session.user_id;
    IF new_dispatch IS NOT NULL THEN
      -- Only the agent that the session has for this type; who joins is decided the long way.
      IF session.agent_type = coalesce(want_type, session.agent_type) THEN
        chosen := session.instance_id;
      ELSE
        SELECT j.instance_id INTO chosen FROM session_agents j
         WHERE j.tenant_id = of_tenant AND j.session_id = context AND j.agent_type = want_type ORDER BY j.joined_at DESC LIMIT 1;
      END IF;
    END IF;
  END IF;

  verdict := 'accepted';
  IF chosen IS NOT NULL THEN
    SELECT a.agent_type, a.deployment_mode, a.connection_epoch, a.max_concurrent_sessions, a.public_url,
           CASE WHEN a.deployment_mode = 'hosted' THEN a.agent_card END AS agent_card, a.mesh_id, a.status, a.deregistered_at
      INTO agent FROM agents a WHERE a.tenant_id = of_tenant AND a.instance_id = chosen;
    IF NOT FOUND OR agent.deregistered_at IS NOT NULL OR agent.status NOT IN ('available', 'unknown')
       OR agent.deployment_mode <> 'hosted' AND agent.mesh_id IS DISTINCT FROM at_mesh
       OR context = '' AND agent.agent_type <> coalesce(want_type, agent.agent_type) THEN
      chosen := NULL;
    END IF;
  END IF;
  IF chosen IS NOT NULL THEN
    room := agent.max_concurrent_sessions;
    -- A full one is not worth the lock.
    IF room > 0 AND context = '' AND agent_load(of_tenant, chosen) >= room THEN
      room := -1;
    ELSIF room > 0 THEN
      PERFORM lock_room(of_tenant, chosen);
    END IF;
    IF context <> '' THEN
      IF EXISTS (SELECT 1 FROM messages m WHERE m.tenant_id = of_tenant AND m.session_id = context AND m.suspends_session) THEN
        room := -1;
      ELSIF session.explicit AND session.instance_id = chosen
        OR EXISTS (SELECT 1 FROM messages m WHERE m.tenant_id = of_tenant AND m.session_id = context AND m.holds_slot
                      AND m.instance_id = chosen AND m.state IN ('submitted', 'working', 'input-required')) THEN
        room := 0;
      END IF;
    END IF;
    -- Who waits for this agent already comes first.
    IF room > 0 AND EXISTS (SELECT 1 FROM messages m
         WHERE m.tenant_id = of_tenant AND m.unrouted_since IS NOT NULL AND NOT m.holds_slot
           AND coalesce(m.agent_type, m.want_agent_type, agent.agent_type) = agent.agent_type
           AND coalesce(m.want_instance_id, chosen) = chosen) THEN
      room := -1;
    END IF;
    IF room = 0 OR room > 0 AND agent_load(of_tenant, chosen) < room THEN
      verdict := 'dispatched';
      its_instance := chosen;
      its_type := agent.agent_type;
      its_mode := agent.deployment_mode;
      its_epoch := agent.connection_epoch;
      its_url := agent.public_url;
      its_card := agent.agent_card;
    END IF;
  END IF;

  INSERT INTO messages (tenant_id, message_id, session_id, credential_id, requested_context, client_message_id, content_hash,
      state, method, parts, metadata, user_input, want_instance_id, want_agent_type, want_skill_id, instance_id, agent_type,
      trace_id, parent_span_id, baggage, deadline_ms, attempts, current_dispatch_id, holds_slot, wake_requested_at, started_at)
    VALUES (of_tenant, new_message, its_session, credential, context, client_message, hash,
      CASE WHEN its_instance IS NULL THEN 'submitted' ELSE 'working' END, how, said, extra, said_text, want_instance, want_type,
      want_skill, its_instance, its_type, trace, parent_span, bag, deadline,
      CASE WHEN its_instance IS NULL THEN 0 ELSE 1 END, CASE WHEN its_instance IS NOT NULL THEN new_dispatch END,
      its_instance IS NOT NULL, at, CASE WHEN its_instance IS NOT NULL THEN at END)
    ON CONFLICT (tenant_id, credential_id, requested_context, client_message_id) DO NOTHING;
  IF NOT FOUND THEN
    -- Nothing was written here, and what was sent before is committed.
    SELECT * INTO its_message, its_session, verdict
      FROM earlier_message(of_tenant, context, credential, client_message, hash, NULL);
    RETURN;
  END IF;
  IF context = '' THEN
    INSERT INTO sessions (tenant_id, session_id, explicit, status, idle_timeout_seconds, created_by, wake_requested_at, instance_id,
        agent_type)
      VALUES (of_tenant, its_session, false, 'active', idle_seconds, creator, at, its_instance, its_type);
    IF its_instance IS NOT NULL THEN
      INSERT INTO session_agents (tenant_id, session_id, agent_type, instance_id, join_reason)
        VALUES (of_tenant, its_session, its_type, its_instance, 'routed');
    END IF;
    INSERT INTO events (tenant_id, event_id, event_type, category, source, severity, session_id, trace_id, payload)
      VALUES (of_tenant, event_ids[1], 'session.created', 'session', 'platform', 'info', its_session, trace,
        jsonb_build_object('session_id', its_session, 'tenant_id', of_tenant, 'created_by', creator));
  END IF;
  INSERT INTO events (tenant_id, event_id, event_type, category, source, severity, session_id, trace_id, payload)
    VALUES (of_tenant, event_ids[2], 'message.received', 'message', 'platform', 'info', its_session, trace,
      jsonb_build_object('message_id', new_message, 'session_id', its_session, 'role', 'user'));
  IF its_instance IS NOT NULL THEN
    INSERT INTO dispatches (tenant_id, dispatch_id, message_id, session_id, instance_id, agent_type, deployment_mode, mesh_id, epoch,
        attempt, state, skill_id, sent_at, deadline_at)
      VALUES (of_tenant, new_dispatch, new_message, its_session, its_instance, its_type, its_mode, at_mesh, its_epoch, 1, 'open',
        want_skill, at, at + deadline * interval '1 ms');
    INSERT INTO events (tenant_id, event_id, event_type, category, source, severity, session_id, trace_id, payload)
      VALUES (of_tenant, event_ids[3], 'dispatch.sent', 'dispatch', 'platform', 'info', its_session, trace, jsonb_build_object(
        'dispatch_id', new_dispatch, 'instance_id', its_instance, 'skill_id', want_skill, 'session_id', its_session));
  END IF;
END $$;

-- T2: takes the end of a dispatch that is open, the message's current one and, where `at_epoch` is given, of that epoch; the message
-- ends with it as `outcome` (completed | failed). `ended_at` is NULL, or FL001 is raised, when it was not so; then nothing is written.
-- `produced` NULL: the agent brought no output, and what is there stays. `event_ids`: of the dispatch's event and the message's.
-- `called`: messages that wait for an agent, because this one has room now; whoever called wakes them.
CREATE FUNCTION end_dispatch(
  of_tenant text, of_message text, of_dispatch text, at_epoch bigint, outcome text, error text, error_said text,
  produced jsonb, used jsonb, output text, status jsonb, event_ids text[],
  OUT ended_at timestamptz, OUT called jsonb
) LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  message record;
  dispatch record;
  failed boolean := outcome <> 'completed';
  severity text;
  why jsonb;
BEGIN
  PERFORM act_for(of_tenant);
  -- coalesce: nothing but the keys may be a way to these rows.
  ended_at := now();
  UPDATE messages m SET state = outcome, artifacts = coalesce(produced, m.artifacts), usage = coalesce(used, m.usage),
      assistant_output = coalesce(output, m.assistant_output),
      status_message = CASE WHEN produced IS NULL THEN m.status_message ELSE status END,
      error_code = error, error_message = error_said, completed_at = ended_at, updated_at = ended_at,
      holds_slot = false, resolution = NULL, unrouted_since = NULL, wake_requested_at = NULL
   WHERE m.tenant_id = of_tenant AND m.message_id = of_message AND coalesce(m.current_dispatch_id, '') = of_dispatch
     AND coalesce(m.state, '') IN ('submitted', 'working', 'input-required')
   RETURNING m.session_id, m.trace_id, m.created_at INTO message;
  IF NOT FOUND THEN
    ended_at := NULL;
    RETURN;
  END IF;
  -- Who closes a dispatch holds its message; only a connection that resumes changes it otherwise, namely the epoch.
  UPDATE dispatches d SET state = outcome, error_code = error, ended_at = now()
   WHERE d.tenant_id = of_tenant AND d.dispatch_id = of_dispatch AND coalesce(d.state, '') = 'open'
     AND (at_epoch IS NULL OR d.epoch = at_epoch)
   RETURNING d.instance_id, d.agent_type, d.sent_at INTO dispatch;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the dispatch is not open, or of another epoch' USING ERRCODE = 'FL001';
  END IF;
  severity := CASE WHEN failed THEN 'warning' ELSE 'info' END;
  why := CASE WHEN failed THEN jsonb_build_object('error', error) ELSE '{}' END;
  INSERT INTO events (tenant_id, event_id, event_type, category, source, severity, session_id, trace_id, payload)
    SELECT of_tenant, event_ids[1], CASE WHEN failed THEN 'dispatch.failed' ELSE 'dispatch.success' END, 'dispatch', 'platform',
           severity, message.session_id, message.trace_id, why || jsonb_build_object('dispatch_id', of_dispatch,
             'instance_id', dispatch.instance_id, 'duration_ms', milliseconds_between(dispatch.sent_at, ended_at))
     WHERE dispatch.sent_at IS NOT NULL
    UNION ALL
    SELECT of_tenant, event_ids[2], CASE WHEN failed THEN 'message.error' ELSE 'message.completed' END, 'message', 'platform',
           severity, message.session_id, message.trace_id,
           CASE WHEN failed THEN why
                ELSE jsonb_build_object('role', 'agent', 'duration_ms', milliseconds_between(message.created_at, ended_at)) END
             || jsonb_build_object('message_id', of_message, 'session_id', message.session_id);
  called := call_waiting(of_tenant, dispatch.agent_type, dispatch.instance_id, 1);
END $$;
