-- What the migrations make, read back from the catalog. Written by `npm run db:dump`; a test compares it.

-- Functions
CREATE OR REPLACE FUNCTION public.accept_message(c message_call)
 RETURNS message_verdict
 LANGUAGE plpgsql
AS $function$
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
END $function$
;
CREATE OR REPLACE FUNCTION public.accept_messages(calls jsonb, patient boolean)
 RETURNS SETOF message_verdict
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
DECLARE
  c message_call;
  tenant text := '';
  pace text := wait_for_locks(patient);
BEGIN
  FOR place IN 0 .. jsonb_array_length(calls) - 1 LOOP
    c := jsonb_populate_record(NULL::message_call, calls -> place);
    IF c.tenant_id <> tenant THEN
      tenant := act_for(c.tenant_id);
    END IF;
    RETURN NEXT accept_message(c);
  END LOOP;
END $function$
;
CREATE OR REPLACE FUNCTION public.act_for(of_tenant text)
 RETURNS text
 LANGUAGE plpgsql
AS $function$
DECLARE
  role text := set_config('role', 'fleet_app', true);
BEGIN
  RETURN set_config('app.tenant_id', of_tenant, true);
END $function$
;
CREATE OR REPLACE FUNCTION public.agent_load(of_tenant text, of_instance text)
 RETURNS integer
 LANGUAGE plpgsql
 STABLE
AS $function$
BEGIN
  RETURN greatest(counted_sessions(of_tenant, of_instance),
    (SELECT r.sessions FROM agent_reports r WHERE r.tenant_id = of_tenant AND r.instance_id = of_instance));
END $function$
;
CREATE OR REPLACE FUNCTION public.call_waiting(of_tenant text, roomy_type text, roomy_instance text, most integer)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  decided jsonb;
  others jsonb;
BEGIN
  IF NOT EXISTS (SELECT 1 FROM messages m WHERE m.tenant_id = of_tenant AND m.unrouted_since IS NOT NULL) THEN
    RETURN NULL;
  END IF;
  WITH picked AS MATERIALIZED (
    SELECT m.tenant_id, m.message_id FROM messages m
     WHERE m.tenant_id = of_tenant AND m.instance_id = roomy_instance AND m.unrouted_since IS NOT NULL AND m.resolution IS NOT NULL
       AND NOT m.holds_slot AND m.wake_requested_at IS NULL
     ORDER BY m.unrouted_since LIMIT most FOR UPDATE SKIP LOCKED), marked AS (
    UPDATE messages m SET wake_requested_at = now() FROM picked
     WHERE m.tenant_id = picked.tenant_id AND m.message_id = picked.message_id
    RETURNING m.tenant_id, m.message_id, m.session_id)
  SELECT coalesce(jsonb_agg(to_jsonb(marked)), '[]') INTO decided FROM marked;
  WITH picked AS MATERIALIZED (
    SELECT m.tenant_id, m.message_id FROM messages m
     WHERE m.tenant_id = of_tenant AND m.unrouted_since IS NOT NULL AND NOT m.holds_slot AND m.wake_requested_at IS NULL
       AND coalesce(m.agent_type, m.want_agent_type, roomy_type) = roomy_type
       AND coalesce(m.want_instance_id, roomy_instance) = roomy_instance
       AND (m.resolution IS NULL OR NOT EXISTS (SELECT 1 FROM agents a WHERE a.tenant_id = m.tenant_id
             AND a.instance_id = m.instance_id AND a.deregistered_at IS NULL AND a.status IN ('available', 'unknown', 'busy')))
     ORDER BY m.created_at LIMIT most - jsonb_array_length(decided) FOR UPDATE SKIP LOCKED), marked AS (
    UPDATE messages m SET wake_requested_at = now() FROM picked
     WHERE m.tenant_id = picked.tenant_id AND m.message_id = picked.message_id
    RETURNING m.tenant_id, m.message_id, m.session_id)
  SELECT coalesce(jsonb_agg(to_jsonb(marked)), '[]') INTO others FROM marked;
  RETURN nullif(decided || others, '[]');
END $function$
;
CREATE OR REPLACE FUNCTION public.counted_sessions(of_tenant text, of_instance text)
 RETURNS integer
 LANGUAGE plpgsql
 STABLE
AS $function$
BEGIN
  RETURN (SELECT count(*)::integer FROM (
    SELECT s.session_id FROM sessions s
     WHERE s.tenant_id = of_tenant AND s.instance_id = of_instance AND s.status = 'active' AND s.explicit
       AND NOT EXISTS (SELECT 1 FROM messages m
                        WHERE m.tenant_id = s.tenant_id AND m.session_id = s.session_id AND m.suspends_session)
    UNION
    SELECT m.session_id FROM messages m WHERE m.tenant_id = of_tenant AND m.instance_id = of_instance AND m.holds_slot
  ) AS served);
END $function$
;
CREATE OR REPLACE FUNCTION public.current_tenant()
 RETURNS text
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$ SELECT nullif(current_setting('app.tenant_id', true), '') $function$
;
CREATE OR REPLACE FUNCTION public.decisions_waiting(of_tenant text, of_instance text)
 RETURNS integer
 LANGUAGE plpgsql
 STABLE
AS $function$
BEGIN
  RETURN (SELECT count(DISTINCT m.session_id)::integer FROM messages m
           WHERE m.tenant_id = of_tenant AND m.instance_id = of_instance AND m.unrouted_since IS NOT NULL
             AND m.resolution IS NOT NULL AND NOT m.holds_slot);
END $function$
;
CREATE OR REPLACE FUNCTION public.default_target(of_tenant text)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
AS $function$
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
END $function$
;
CREATE OR REPLACE FUNCTION public.earlier_message(c message_call, otherwise text)
 RETURNS message_verdict
 LANGUAGE plpgsql
AS $function$
DECLARE
  it message_verdict;
BEGIN
  SELECT m.message_id, m.session_id, CASE WHEN m.content_hash = c.hash THEN 'repeat' ELSE 'mismatch' END
    INTO it.its_message, it.its_session, it.verdict FROM messages m
   WHERE m.tenant_id = c.tenant_id AND m.credential_id = c.credential AND m.requested_context = c.context
     AND m.client_message_id = c.client_message;
  it.verdict := coalesce(it.verdict, otherwise);
  RETURN it;
END $function$
;
CREATE OR REPLACE FUNCTION public.end_dispatch(c dispatch_end)
 RETURNS dispatch_ended
 LANGUAGE plpgsql
AS $function$
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
  it.session_id := message.session_id;
  it.instance_id := dispatch.instance_id;
  it.agent_type := dispatch.agent_type;
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
END $function$
;
CREATE OR REPLACE FUNCTION public.end_dispatches(calls jsonb, patient boolean)
 RETURNS SETOF dispatch_ended
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
DECLARE
  c dispatch_end;
  tenant text := '';
  pace text := wait_for_locks(patient);
BEGIN
  FOR place IN 0 .. jsonb_array_length(calls) - 1 LOOP
    c := jsonb_populate_record(NULL::dispatch_end, calls -> place);
    IF c.tenant_id <> tenant THEN
      tenant := act_for(c.tenant_id);
    END IF;
    RETURN NEXT end_dispatch(c);
  END LOOP;
END $function$
;
CREATE OR REPLACE FUNCTION public.find_message(of_tenant text, of_message text)
 RETURNS SETOF messages
 LANGUAGE plpgsql
AS $function$
BEGIN
  PERFORM act_for(of_tenant);
  RETURN QUERY SELECT m.* FROM messages m WHERE m.tenant_id = of_tenant AND m.message_id = of_message;
END $function$
;
CREATE OR REPLACE FUNCTION public.has_skill(agent agents, skill text)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
BEGIN
  RETURN skill IS NULL OR agent.skills @> jsonb_build_array(jsonb_build_object('id', skill))
    OR agent.agent_card -> 'skills' @> jsonb_build_array(jsonb_build_object('id', skill));
END $function$
;
CREATE OR REPLACE FUNCTION public.lock_room(of_tenant text, of_instance text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('capacity:' || of_tenant || ':' || of_instance, 0));
END $function$
;
CREATE OR REPLACE FUNCTION public.milliseconds_between(earlier timestamp with time zone, later timestamp with time zone)
 RETURNS bigint
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$ SELECT greatest(0, (extract(epoch FROM later - earlier) * 1000)::bigint) $function$
;
CREATE OR REPLACE FUNCTION public.not_accepted(c message_call, it message_verdict, otherwise text)
 RETURNS message_verdict
 LANGUAGE plpgsql
AS $function$
DECLARE
  earlier message_verdict := earlier_message(c, otherwise);
BEGIN
  earlier.in_flight := it.in_flight;
  earlier.waiting := it.waiting;
  RETURN earlier;
END $function$
;
CREATE OR REPLACE FUNCTION public.note_push_deliveries()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NEW.state <> OLD.state AND NEW.state <> 'submitted' THEN
    INSERT INTO push_deliveries (tenant_id, message_id, config_id, state)
      SELECT c.tenant_id, c.message_id, c.config_id, NEW.state FROM push_configs c
       WHERE c.tenant_id = NEW.tenant_id AND c.message_id = NEW.message_id;
  END IF;
  RETURN NULL;
END $function$
;
CREATE OR REPLACE FUNCTION public.registered_type_after(of_tenant text, after text)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
AS $function$
BEGIN
  RETURN (SELECT a.agent_type FROM agents a WHERE a.tenant_id = of_tenant AND a.agent_type > after
    AND coalesce(a.deregistered_at, 'infinity') = 'infinity' ORDER BY a.agent_type LIMIT 1);
END $function$
;
CREATE OR REPLACE FUNCTION public.routable_agents(of_tenant text, only_instance text, only_type text, only_skill text, for_message text)
 RETURNS TABLE(instance_id text, agent_type text, deployment_mode text, mesh_id text, connection_epoch bigint, max_concurrent_sessions integer, load integer, reserved integer, busy boolean, unreachable boolean)
 LANGUAGE plpgsql
 STABLE
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT a.instance_id, a.agent_type, a.deployment_mode, a.mesh_id, a.connection_epoch, a.max_concurrent_sessions,
           serving.load, serving.reserved, a.status = 'busy', missed.unreachable
      FROM agents a
      CROSS JOIN LATERAL (
        SELECT agent_load(a.tenant_id, a.instance_id) AS load,
               CASE WHEN a.max_concurrent_sessions > 0 THEN decisions_waiting(a.tenant_id, a.instance_id) ELSE 0 END AS reserved
      ) serving
      CROSS JOIN LATERAL (
        SELECT EXISTS (SELECT 1 FROM dispatches d WHERE d.tenant_id = a.tenant_id AND d.message_id = for_message
                          AND d.instance_id = a.instance_id AND d.state = 'void' AND d.error_code = 'CONNECT_FAILED') AS unreachable
      ) missed
      LEFT JOIN LATERAL (SELECT d.created_at FROM dispatches d WHERE d.tenant_id = a.tenant_id AND d.instance_id = a.instance_id
                          ORDER BY d.created_at DESC LIMIT 1) last ON true
     WHERE a.tenant_id = of_tenant AND a.deregistered_at IS NULL AND a.status IN ('available', 'unknown', 'busy')
       AND (a.deployment_mode = 'hosted' OR a.mesh_id IS NOT NULL)
       AND (only_instance IS NULL OR a.instance_id = only_instance)
       AND (only_type IS NULL OR a.agent_type = only_type)
       AND (only_skill IS NULL OR a.skills @> jsonb_build_array(jsonb_build_object('id', only_skill))
            OR a.agent_card -> 'skills' @> jsonb_build_array(jsonb_build_object('id', only_skill)))
     ORDER BY (a.status = 'busy' OR a.max_concurrent_sessions > 0 AND serving.load >= a.max_concurrent_sessions),
              missed.unreachable, serving.load, last.created_at NULLS FIRST, a.instance_id
     LIMIT 50;
END $function$
;
CREATE OR REPLACE FUNCTION public.target_registered(of_tenant text, only_instance text, only_type text, only_skill text)
 RETURNS boolean
 LANGUAGE plpgsql
 STABLE
AS $function$
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
END $function$
;
CREATE OR REPLACE FUNCTION public.type_may_join(of_tenant text, of_type text)
 RETURNS boolean
 LANGUAGE plpgsql
 STABLE
AS $function$
BEGIN
  RETURN coalesce(
    (SELECT t.allowed FROM agent_types t WHERE t.tenant_id = of_tenant AND t.agent_type = of_type),
    NOT EXISTS (SELECT 1 FROM agent_types t WHERE t.tenant_id = of_tenant AND t.allowed));
END $function$
;
CREATE OR REPLACE FUNCTION public.wait_for_locks(patient boolean)
 RETURNS text
 LANGUAGE plpgsql
AS $function$
BEGIN
  RETURN CASE WHEN patient THEN 'patient' ELSE set_config('lock_timeout', '100ms', true) END;
END $function$
;

-- Tables
CREATE TABLE agent_reports (
  tenant_id text NOT NULL,
  instance_id text NOT NULL,
  sessions integer NOT NULL
);
CREATE TABLE agent_types (
  tenant_id text NOT NULL,
  agent_type text NOT NULL,
  allowed boolean NOT NULL,
  decided_by text NOT NULL,
  decided_at timestamp with time zone NOT NULL DEFAULT now()
);
CREATE TABLE agents (
  tenant_id text NOT NULL,
  instance_id text NOT NULL,
  agent_type text NOT NULL,
  deployment_mode text NOT NULL,
  public_url text,
  status text NOT NULL,
  mesh_id text,
  connection_epoch bigint NOT NULL DEFAULT 0,
  connected_at timestamp with time zone,
  max_concurrent_sessions integer NOT NULL,
  consecutive_failures integer NOT NULL DEFAULT 0,
  last_seen timestamp with time zone,
  registered_at timestamp with time zone NOT NULL DEFAULT now(),
  deregistered_at timestamp with time zone,
  agent_version text,
  provider_organization text,
  provider_url text,
  agent_card jsonb NOT NULL DEFAULT '{}'::jsonb,
  skills jsonb NOT NULL DEFAULT '[]'::jsonb,
  tools jsonb NOT NULL DEFAULT '[]'::jsonb,
  context jsonb NOT NULL DEFAULT '{}'::jsonb,
  credential_id text,
  deregistration_cause text
);
CREATE TABLE credentials (
  tenant_id text NOT NULL,
  credential_id text NOT NULL,
  name text NOT NULL,
  scopes text[] NOT NULL,
  agent_types text[] NOT NULL DEFAULT '{}'::text[],
  secret_hash bytea NOT NULL,
  previous_secret_hash bytea,
  previous_expires_at timestamp with time zone,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone
);
CREATE TABLE dispatch_totals (
  tenant_id text NOT NULL,
  instance_id text NOT NULL,
  until timestamp with time zone NOT NULL DEFAULT '-infinity'::timestamp with time zone,
  succeeded bigint NOT NULL DEFAULT 0,
  failed bigint NOT NULL DEFAULT 0,
  last_error text,
  last_failed_at timestamp with time zone NOT NULL DEFAULT '-infinity'::timestamp with time zone
);
CREATE TABLE dispatches (
  tenant_id text NOT NULL,
  dispatch_id text NOT NULL,
  message_id text NOT NULL,
  session_id text NOT NULL,
  instance_id text NOT NULL,
  agent_type text NOT NULL,
  deployment_mode text NOT NULL,
  mesh_id text,
  epoch bigint NOT NULL,
  attempt integer NOT NULL,
  state text NOT NULL,
  skill_id text,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  sent_at timestamp with time zone,
  deadline_at timestamp with time zone,
  ended_at timestamp with time zone,
  error_code text
);
CREATE TABLE events (
  tenant_id text NOT NULL,
  event_id text NOT NULL,
  event_type text NOT NULL,
  category text NOT NULL,
  source text NOT NULL,
  severity text NOT NULL,
  session_id text NOT NULL DEFAULT ''::text,
  trace_id text,
  occurred_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  payload jsonb NOT NULL,
  xact_id xid8 NOT NULL DEFAULT pg_current_xact_id()
);
CREATE TABLE input_decisions (
  tenant_id text NOT NULL,
  decision_id text NOT NULL,
  request_id text NOT NULL,
  principal text NOT NULL,
  resolution jsonb NOT NULL,
  data jsonb,
  comment text,
  decided_at timestamp with time zone NOT NULL DEFAULT now()
);
CREATE TABLE input_requests (
  tenant_id text NOT NULL,
  request_id text NOT NULL,
  message_id text NOT NULL,
  session_id text NOT NULL,
  kind text NOT NULL,
  source text NOT NULL,
  title text NOT NULL,
  prompt text NOT NULL,
  schema jsonb,
  fields jsonb,
  tool text,
  arguments jsonb,
  state text NOT NULL,
  requested_at timestamp with time zone NOT NULL DEFAULT now(),
  expires_at timestamp with time zone NOT NULL,
  ended_at timestamp with time zone
);
CREATE TABLE mesh_nodes (
  mesh_id text NOT NULL,
  started_at timestamp with time zone NOT NULL DEFAULT now(),
  renewed_at timestamp with time zone NOT NULL DEFAULT now()
);
CREATE TABLE messages (
  tenant_id text NOT NULL,
  message_id text NOT NULL,
  session_id text NOT NULL,
  credential_id text NOT NULL,
  requested_context text NOT NULL,
  client_message_id text NOT NULL,
  content_hash bytea NOT NULL,
  state text NOT NULL,
  method text NOT NULL,
  parts jsonb NOT NULL,
  metadata jsonb NOT NULL DEFAULT '{}'::jsonb,
  turns jsonb NOT NULL DEFAULT '[]'::jsonb,
  user_input text NOT NULL,
  want_instance_id text,
  want_agent_type text,
  want_skill_id text,
  instance_id text,
  agent_type text,
  artifacts jsonb NOT NULL DEFAULT '[]'::jsonb,
  status_message jsonb,
  assistant_output text NOT NULL DEFAULT ''::text,
  trace_id text NOT NULL,
  parent_span_id text,
  baggage text,
  usage jsonb,
  error_code text,
  error_message text,
  deadline_ms integer NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  current_dispatch_id text,
  resolution jsonb,
  remote_task_id text,
  remote_context_id text,
  holds_slot boolean NOT NULL DEFAULT false,
  suspends_session boolean NOT NULL DEFAULT false,
  unrouted_since timestamp with time zone,
  wake_requested_at timestamp with time zone,
  supervised_at timestamp with time zone,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  updated_at timestamp with time zone NOT NULL DEFAULT now(),
  started_at timestamp with time zone,
  completed_at timestamp with time zone,
  lease_epoch integer NOT NULL DEFAULT 0,
  notifies boolean NOT NULL DEFAULT false,
  sender_agent_type text
);
CREATE TABLE platform_facts (
  name text NOT NULL,
  value text NOT NULL
);
CREATE TABLE push_configs (
  tenant_id text NOT NULL,
  message_id text NOT NULL,
  config_id text NOT NULL,
  url text NOT NULL,
  schemes text[] NOT NULL,
  secrets bytea,
  protocol_version text NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT now()
);
CREATE TABLE push_deliveries (
  tenant_id text NOT NULL,
  message_id text NOT NULL,
  config_id text NOT NULL,
  sequence bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  state text NOT NULL,
  told_at timestamp with time zone NOT NULL DEFAULT now(),
  wake_at timestamp with time zone DEFAULT now(),
  attempts jsonb NOT NULL DEFAULT '[]'::jsonb,
  outcome text,
  ended_at timestamp with time zone
);
CREATE TABLE session_agents (
  tenant_id text NOT NULL,
  session_id text NOT NULL,
  agent_type text NOT NULL,
  instance_id text NOT NULL,
  joined_at timestamp with time zone NOT NULL DEFAULT now(),
  join_reason text NOT NULL
);
CREATE TABLE sessions (
  tenant_id text NOT NULL,
  session_id text NOT NULL,
  user_id text,
  explicit boolean NOT NULL,
  agent_type text,
  instance_id text,
  status text NOT NULL,
  metadata jsonb NOT NULL DEFAULT '{}'::jsonb,
  idle_timeout_seconds integer NOT NULL,
  created_by text NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  ended_at timestamp with time zone,
  ended_reason text,
  wake_requested_at timestamp with time zone,
  supervised_at timestamp with time zone,
  sender_agent_type text
);
CREATE TABLE signing_keys (
  kid text NOT NULL,
  public_jwk jsonb NOT NULL,
  private_jwk_encrypted bytea NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  retired_at timestamp with time zone
);
CREATE TABLE tenants (
  tenant_id text NOT NULL,
  name text NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  deleted_at timestamp with time zone,
  default_agent_type text
);

-- Constraints
ALTER TABLE agent_reports ADD CONSTRAINT agent_reports_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id);
ALTER TABLE agent_reports ADD CONSTRAINT agent_reports_pkey PRIMARY KEY (tenant_id, instance_id);
ALTER TABLE agent_types ADD CONSTRAINT agent_types_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id);
ALTER TABLE agent_types ADD CONSTRAINT agent_types_pkey PRIMARY KEY (tenant_id, agent_type);
ALTER TABLE agents ADD CONSTRAINT agents_deployment_mode_check CHECK ((deployment_mode = ANY (ARRAY['hosted'::text, 'connected'::text])));
ALTER TABLE agents ADD CONSTRAINT agents_deregistration_cause_check CHECK ((deregistration_cause = ANY (ARRAY['explicit'::text, 'inactivity'::text])));
ALTER TABLE agents ADD CONSTRAINT agents_status_check CHECK ((status = ANY (ARRAY['available'::text, 'busy'::text, 'draining'::text, 'unhealthy'::text, 'offline'::text, 'unknown'::text])));
ALTER TABLE agents ADD CONSTRAINT agents_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id);
ALTER TABLE agents ADD CONSTRAINT agents_pkey PRIMARY KEY (tenant_id, instance_id);
ALTER TABLE credentials ADD CONSTRAINT credentials_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id);
ALTER TABLE credentials ADD CONSTRAINT credentials_pkey PRIMARY KEY (credential_id);
ALTER TABLE dispatch_totals ADD CONSTRAINT dispatch_totals_pkey PRIMARY KEY (tenant_id, instance_id);
ALTER TABLE dispatches ADD CONSTRAINT dispatches_pkey PRIMARY KEY (tenant_id, dispatch_id);
ALTER TABLE events ADD CONSTRAINT events_pkey PRIMARY KEY (tenant_id, occurred_at, event_id);
ALTER TABLE input_decisions ADD CONSTRAINT input_decisions_tenant_id_request_id_fkey FOREIGN KEY (tenant_id, request_id) REFERENCES input_requests(tenant_id, request_id);
ALTER TABLE input_decisions ADD CONSTRAINT input_decisions_pkey PRIMARY KEY (tenant_id, decision_id);
ALTER TABLE input_decisions ADD CONSTRAINT input_decisions_tenant_id_request_id_principal_key UNIQUE (tenant_id, request_id, principal);
ALTER TABLE input_requests ADD CONSTRAINT input_requests_kind_check CHECK ((kind = ANY (ARRAY['approval'::text, 'form'::text, 'confirmation'::text])));
ALTER TABLE input_requests ADD CONSTRAINT input_requests_source_check CHECK ((source = ANY (ARRAY['policy'::text, 'guard'::text, 'agent'::text, 'plan'::text])));
ALTER TABLE input_requests ADD CONSTRAINT input_requests_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'resolved'::text, 'expired'::text, 'withdrawn'::text])));
ALTER TABLE input_requests ADD CONSTRAINT input_requests_tenant_id_message_id_fkey FOREIGN KEY (tenant_id, message_id) REFERENCES messages(tenant_id, message_id);
ALTER TABLE input_requests ADD CONSTRAINT input_requests_pkey PRIMARY KEY (tenant_id, request_id);
ALTER TABLE mesh_nodes ADD CONSTRAINT mesh_nodes_pkey PRIMARY KEY (mesh_id);
ALTER TABLE messages ADD CONSTRAINT messages_pkey PRIMARY KEY (tenant_id, message_id);
ALTER TABLE platform_facts ADD CONSTRAINT platform_facts_pkey PRIMARY KEY (name);
ALTER TABLE push_configs ADD CONSTRAINT push_configs_protocol_version_check CHECK ((protocol_version = ANY (ARRAY['0.3'::text, '1.0'::text])));
ALTER TABLE push_configs ADD CONSTRAINT push_configs_pkey PRIMARY KEY (tenant_id, message_id, config_id);
ALTER TABLE push_deliveries ADD CONSTRAINT push_deliveries_outcome_check CHECK ((outcome = ANY (ARRAY['delivered'::text, 'failed'::text, 'dropped'::text])));
ALTER TABLE push_deliveries ADD CONSTRAINT push_deliveries_pkey PRIMARY KEY (tenant_id, message_id, config_id, sequence);
ALTER TABLE session_agents ADD CONSTRAINT session_agents_pkey PRIMARY KEY (tenant_id, session_id, instance_id);
ALTER TABLE sessions ADD CONSTRAINT sessions_pkey PRIMARY KEY (tenant_id, session_id);
ALTER TABLE signing_keys ADD CONSTRAINT signing_keys_pkey PRIMARY KEY (kid);
ALTER TABLE tenants ADD CONSTRAINT tenants_pkey PRIMARY KEY (tenant_id);

-- Indexes
CREATE INDEX agents_by_instance ON public.agents USING btree (instance_id);
CREATE INDEX agents_by_mesh ON public.agents USING btree (mesh_id) WHERE (mesh_id IS NOT NULL);
CREATE INDEX agents_by_sign ON public.agents USING btree (last_seen) WHERE (deregistered_at IS NULL);
CREATE INDEX agents_registered ON public.agents USING btree (tenant_id, agent_type) WHERE (COALESCE(deregistered_at, 'infinity'::timestamp with time zone) = 'infinity'::timestamp with time zone);
CREATE INDEX agents_routable ON public.agents USING btree (tenant_id, agent_type);
CREATE INDEX credentials_by_tenant ON public.credentials USING btree (tenant_id, created_at DESC);
CREATE INDEX dispatches_newest ON public.dispatches USING btree (instance_id, tenant_id, created_at DESC);
CREATE INDEX dispatches_open ON public.dispatches USING btree (tenant_id, instance_id, dispatch_id) WHERE (state = 'open'::text);
CREATE INDEX dispatches_unreachable ON public.dispatches USING btree (tenant_id, message_id) WHERE ((state = 'void'::text) AND (error_code = 'CONNECT_FAILED'::text));
CREATE INDEX events_by_session ON public.events USING btree (tenant_id, session_id, occurred_at DESC);
CREATE INDEX input_requests_by_message ON public.input_requests USING btree (tenant_id, message_id, requested_at DESC);
CREATE UNIQUE INDEX input_requests_one_open ON public.input_requests USING btree (tenant_id, message_id) WHERE (state = 'pending'::text);
CREATE INDEX input_requests_pending ON public.input_requests USING btree (tenant_id, requested_at) WHERE (state = 'pending'::text);
CREATE INDEX messages_by_error ON public.messages USING btree (error_code, message_id) WHERE (error_code IS NOT NULL);
CREATE INDEX messages_by_session ON public.messages USING btree (session_id, message_id);
CREATE INDEX messages_by_time ON public.messages USING brin (created_at) WITH (autosummarize='on');
CREATE INDEX messages_decided ON public.messages USING btree (tenant_id, instance_id) WHERE ((unrouted_since IS NOT NULL) AND (resolution IS NOT NULL));
CREATE UNIQUE INDEX messages_idempotency ON public.messages USING btree (client_message_id, credential_id, requested_context, tenant_id);
CREATE INDEX messages_in_flight ON public.messages USING btree (tenant_id, state, session_id) WHERE (state = ANY (ARRAY['submitted'::text, 'working'::text, 'input-required'::text]));
CREATE INDEX messages_slots ON public.messages USING btree (tenant_id, instance_id, session_id, message_id) WHERE holds_slot;
CREATE INDEX messages_supervised ON public.messages USING btree (supervised_at) WHERE ((supervised_at IS NOT NULL) AND (state = ANY (ARRAY['submitted'::text, 'working'::text, 'input-required'::text])));
CREATE INDEX messages_suspending ON public.messages USING btree (tenant_id, session_id) WHERE suspends_session;
CREATE INDEX messages_to_wake ON public.messages USING btree (wake_requested_at) WHERE (wake_requested_at IS NOT NULL);
CREATE INDEX messages_unrouted ON public.messages USING btree (tenant_id, created_at) WHERE (unrouted_since IS NOT NULL);
CREATE INDEX push_deliveries_due ON public.push_deliveries USING btree (wake_at) WHERE (wake_at IS NOT NULL);
CREATE INDEX push_deliveries_ended ON public.push_deliveries USING btree (ended_at) WHERE (ended_at IS NOT NULL);
CREATE INDEX sessions_slots ON public.sessions USING btree (tenant_id, instance_id, session_id) WHERE ((status = 'active'::text) AND explicit);
CREATE INDEX sessions_supervised ON public.sessions USING btree (supervised_at) WHERE ((supervised_at IS NOT NULL) AND (status = 'active'::text));
CREATE INDEX sessions_to_begin ON public.sessions USING btree (wake_requested_at) WHERE ((wake_requested_at IS NOT NULL) AND (NOT explicit));
CREATE INDEX sessions_to_wake ON public.sessions USING btree (wake_requested_at) WHERE ((wake_requested_at IS NOT NULL) AND explicit);

-- Triggers
CREATE TRIGGER push_deliveries_of_message AFTER UPDATE OF state ON public.messages FOR EACH ROW WHEN (new.notifies) EXECUTE FUNCTION note_push_deliveries();

-- Row-level security
ALTER TABLE agent_reports ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE agent_types ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE agents ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE credentials ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE dispatch_totals ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE dispatches ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE events ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE input_decisions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE input_requests ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE mesh_nodes DISABLE ROW LEVEL SECURITY;
ALTER TABLE messages ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE platform_facts DISABLE ROW LEVEL SECURITY;
ALTER TABLE push_configs ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE push_deliveries ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE session_agents ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE sessions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE signing_keys DISABLE ROW LEVEL SECURITY;
ALTER TABLE tenants ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

-- Policies
CREATE POLICY one_tenant ON agent_reports AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON agent_reports AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON agent_types AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON agent_types AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON agents AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON agents AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON credentials AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON credentials AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON dispatch_totals AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON dispatch_totals AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON dispatches AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON dispatches AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON events AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON events AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON input_decisions AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON input_decisions AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON input_requests AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON input_requests AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON messages AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON messages AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON push_configs AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON push_configs AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON push_deliveries AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON push_deliveries AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON session_agents AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON session_agents AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON sessions AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON sessions AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON tenants AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON tenants AS PERMISSIVE FOR ALL TO fleet_system USING (true);

-- Grants
GRANT DELETE, INSERT, SELECT, UPDATE ON agent_reports TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON agent_reports TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON agent_types TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON agent_types TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON agents TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON agents TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON credentials TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON credentials TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON dispatch_totals TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON dispatch_totals TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON dispatches TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON dispatches TO fleet_system;
GRANT INSERT, SELECT ON events TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON events TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON input_decisions TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON input_decisions TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON input_requests TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON input_requests TO fleet_system;
GRANT SELECT ON mesh_nodes TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON mesh_nodes TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON messages TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON messages TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON platform_facts TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON push_configs TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON push_configs TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON push_deliveries TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON push_deliveries TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON session_agents TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON session_agents TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON sessions TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON sessions TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON signing_keys TO fleet_system;
GRANT SELECT ON tenants TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON tenants TO fleet_system;
