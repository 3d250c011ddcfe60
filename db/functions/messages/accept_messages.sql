-- The accept transaction (docs/internals.md): puts messages on the record and, on the fast path, opens their dispatches as sent, in one
-- round trip. Several callers may share it: what fails one call undoes all, and the process then makes each call by itself. A call that
-- would wait for a lock of another transaction is answered 'later' and writes nothing; the others go on (db/connections/batcher.ts). A messageId that is
-- on the record already is found by its key, at any step, and nothing is written.

-- What the limits have to say of a call that some limit may refuse: `verdict` NULL when none does, and the counts that were taken. Each state is
-- counted for itself, and in the order of running_in_flight: a plan for both at once takes the key and reads all, and so may one that was made
-- while the table was small.
CREATE FUNCTION check_limits(c accept_call) RETURNS accept_result LANGUAGE plpgsql AS $$
DECLARE
  result accept_result;
BEGIN
  IF c.in_flight_limit > 0 THEN
    result.in_flight :=
      (SELECT count(*) FROM (SELECT 1 FROM running_messages r
        WHERE r.tenant_id = c.tenant_id AND r.state = 'working' ORDER BY r.session_id LIMIT c.in_flight_limit) AS working)
      + (SELECT count(*) FROM (SELECT 1 FROM running_messages r
        WHERE r.tenant_id = c.tenant_id AND r.state = 'submitted' ORDER BY r.session_id LIMIT c.in_flight_limit) AS submitted);
  END IF;
  IF c.waiting_limit > 0 THEN
    result.waiting := (SELECT count(*) FROM (SELECT 1 FROM running_messages r
      WHERE r.tenant_id = c.tenant_id AND r.state = 'input-required' ORDER BY r.session_id LIMIT c.waiting_limit) AS waiting);
  END IF;
  result.verdict := CASE WHEN c.quota_exceeded THEN 'quota_exceeded' WHEN c.waiting_full THEN 'waiting_full'
    WHEN result.in_flight >= c.in_flight_limit THEN 'full' WHEN result.waiting >= c.waiting_limit THEN 'waiting_full' END;
  RETURN result;
END $$;

-- `may_wait`: it waits for session, room and key where another transaction holds them. Nobody else's call may then stand behind it, and its
-- transaction must hold no lock yet.
--
-- plpgsql prepares each expression anew in every transaction, which takes a microsecond or more. Most messages open a session and are dispatched
-- at once: their way has few.
CREATE FUNCTION accept_message(c accept_call, may_wait boolean) RETURNS accept_result LANGUAGE plpgsql AS $$
DECLARE
  result accept_result;
  session record;
  in_session boolean := c.requested_context <> '';
  want_type text := c.want_agent_type;
  is_bound boolean; -- where it matters
  resumes boolean; -- NULL without a session, as `ordered`
  ordered boolean;
  wish routing;
  agent chosen_agent;
  error_code text := c.decision #>> '{error,code}';
  error_text text;
  dispatched boolean;
  first_state text;
  hops integer; -- where an agent sends it
  key uuid;
BEGIN
  IF c.quota_exceeded OR c.waiting_full OR c.in_flight_limit > 0 OR c.waiting_limit > 0 THEN
    result := check_limits(c);
    IF result.verdict IS NOT NULL THEN
      RETURN not_accepted(c, result, result.verdict);
    END IF;
  END IF;
  IF c.sender_agent_type IS NOT NULL THEN
    hops := hops_of(c);
    IF hops > 16 THEN -- LIMITS.messageHopsMax
      RETURN not_accepted(c, result, 'too_many_hops');
    END IF;
  END IF;

  IF in_session THEN
    IF may_wait THEN
      PERFORM 1 FROM sessions s WHERE s.tenant_id = c.tenant_id AND s.session_id = c.requested_context FOR SHARE;
    END IF;
    SELECT s.status, s.explicit, s.suspended, s.instance_id, s.agent_type, s.user_id, s.ordered INTO session FROM sessions s
     WHERE s.tenant_id = c.tenant_id AND s.session_id = c.requested_context FOR SHARE SKIP LOCKED;
    IF NOT FOUND AND EXISTS (SELECT 1 FROM sessions s WHERE s.tenant_id = c.tenant_id AND s.session_id = c.requested_context) THEN
      RETURN accept_later(result, 'session ' || c.requested_context);
    END IF;
    IF session.status IS DISTINCT FROM 'active' THEN
      RETURN not_accepted(c, result, CASE WHEN session.status IS NULL THEN 'no_session' ELSE 'session_closed' END);
    END IF;
    result.user_id := session.user_id;
    ordered := session.ordered;
    -- Whoever has the session's lock sees all messages before its own. Where another has it, the workflow path decides.
    -- The look is a statement of its own, which sees what was committed before the lock.
    IF ordered AND c.dispatch_id IS NOT NULL THEN
      IF NOT lock_session_at_once(c.tenant_id, c.requested_context) THEN
        c.dispatch_id := NULL;
      ELSIF next_in_order(c.tenant_id, c.requested_context) IS NOT NULL THEN
        c.dispatch_id := NULL;
      END IF;
    END IF;
    want_type := coalesce(want_type, session.agent_type);
    -- A question to a human suspended the session: it claims room again. Where its row cannot be changed now, the workflow path does that.
    resumes := session.suspended AND c.dispatch_id IS NOT NULL;
    IF resumes AND NOT lock_session_at_once(c.tenant_id, c.requested_context) THEN
      c.dispatch_id := NULL;
    END IF;
  END IF;
  IF coalesce(want_type, c.want_instance_id, c.want_skill_id) IS NULL THEN
    IF in_session THEN
      -- No agent has joined the session yet: it will be one of the type that its first message waits for.
      SELECT r.want_agent_type INTO want_type FROM running_messages r
       WHERE r.tenant_id = c.tenant_id AND r.session_id = c.requested_context AND r.state IN ('submitted', 'working', 'input-required')
         AND r.want_agent_type IS NOT NULL ORDER BY r.created_at, r.message_id LIMIT 1;
    END IF;
    want_type := coalesce(want_type, default_target(c.tenant_id));
    IF want_type IS NULL THEN
      RETURN not_accepted(c, result, 'target_required');
    END IF;
  END IF;

  IF in_session THEN
    wish := (c.tenant_id, c.session_id, session.explicit, session.suspended, session.instance_id, session.agent_type,
      NULL, NULL, c.want_instance_id, want_type, c.want_skill_id, NULL, false, c.mesh_id, c.any_mesh, false)::routing;
  ELSE
    wish := (c.tenant_id, NULL, false, false, NULL, NULL,
      NULL, NULL, c.want_instance_id, want_type, c.want_skill_id, NULL, false, c.mesh_id, c.any_mesh, false)::routing;
  END IF;
  IF c.dispatch_id IS NOT NULL THEN
    agent := choose_agent(wish);
    IF agent.instance_id IS NULL AND agent.awaited_id IS NOT NULL THEN
      IF may_wait THEN
        -- Once only: one that waits for a second room while it holds a first could wait for ever.
        PERFORM lock_room(c.tenant_id, agent.awaited_id);
        agent := choose_agent(wish);
      END IF;
      IF agent.awaited_id IS NOT NULL THEN
        RETURN accept_later(result, 'room ' || agent.awaited_id);
      END IF;
    END IF;
  END IF;
  dispatched := agent.instance_id IS NOT NULL;
  IF dispatched AND resumes THEN
    UPDATE sessions s SET suspended = false
     WHERE s.tenant_id = c.tenant_id AND s.session_id = c.requested_context AND s.instance_id = agent.instance_id;
  END IF;
  IF NOT dispatched AND error_code IS NULL THEN
    -- The session's agent of the type goes before a wanted instance or skill. Messages wait only for what is registered.
    IF in_session THEN
      is_bound := session.agent_type = want_type OR EXISTS (SELECT 1 FROM session_agents j
        WHERE j.tenant_id = c.tenant_id AND j.session_id = c.requested_context AND j.agent_type = want_type);
    END IF;
    IF NOT target_registered(c.tenant_id, CASE WHEN is_bound IS NOT TRUE THEN c.want_instance_id END, want_type,
        CASE WHEN is_bound IS NOT TRUE THEN c.want_skill_id END) THEN
      IF c.unavailable_text IS NULL THEN
        result.agent_type := want_type;
        RETURN not_accepted(c, result, 'target_unknown');
      END IF;
      error_code := 'TARGET_UNAVAILABLE';
      error_text := c.unavailable_text;
    ELSIF NOT coalesce(c.decision ? 'input_request', false) AND all_saturated(wish) THEN
      result.agent_type := want_type;
      RETURN not_accepted(c, result, 'agents_saturated');
    END IF;
  END IF;

  first_state := CASE WHEN error_code IS NOT NULL THEN 'failed' WHEN dispatched THEN 'working' WHEN c.decision ? 'input_request' THEN 'input-required'
    ELSE 'submitted' END;

  -- Whoever writes a key holds its lock, so that the INSERT meets no key of a transaction that has not ended.
  key := idempotency_key(c.tenant_id, c.credential_id, c.requested_context, c.client_message_id);
  IF may_wait THEN
    PERFORM pg_advisory_xact_lock(uuid_hash_extended(key, 0));
  ELSIF NOT pg_try_advisory_xact_lock(uuid_hash_extended(key, 0)) THEN
    RETURN accept_later(result, 'message ' || key);
  END IF;

  WITH key AS (
    INSERT INTO idempotency_keys AS k (idempotency_key, tenant_id, content_hash, message_id, expires_at)
      VALUES (key, c.tenant_id, c.content_hash,
        c.message_id, now() + c.idempotency_hours * interval '1 hour')
      ON CONFLICT (idempotency_key) DO UPDATE SET content_hash = excluded.content_hash, message_id = excluded.message_id,
        expires_at = excluded.expires_at WHERE k.expires_at <= now()
      RETURNING 1),
  accepted AS (
    INSERT INTO messages (tenant_id, message_id, session_id, credential_id, sender_agent_type, client_message_id, method, parts, metadata,
        want_agent_type, trace_id, parent_span_id, baggage, deadline_ms, state, instance_id, agent_type, error_code, error_message, started_at,
        completed_at)
      SELECT c.tenant_id, c.message_id, c.session_id, c.credential_id, c.sender_agent_type, c.client_message_id, c.method, c.parts, c.metadata,
        want_type, c.trace_id, c.parent_span_id, c.baggage, c.deadline_ms,
        first_state, agent.instance_id, agent.agent_type, error_code,
        coalesce(error_text, c.decision #>> '{error,message}'), CASE WHEN dispatched THEN now() END,
        CASE WHEN error_code IS NOT NULL THEN now() END
        FROM key),
  running AS (
    INSERT INTO running_messages (tenant_id, message_id, session_id, state, want_instance_id, want_agent_type, want_skill_id, instance_id,
        agent_type, attempts, current_dispatch_id, holds_slot, wake_requested_at, undecided, token, ordered, hops)
      SELECT c.tenant_id, c.message_id, c.session_id, first_state, c.want_instance_id, want_type,
        c.want_skill_id, agent.instance_id, agent.agent_type, dispatched::integer, CASE WHEN dispatched THEN c.dispatch_id END, dispatched, now(),
        coalesce(c.decision ? 'undecided', false), c.token, coalesce(ordered, false), coalesce(hops, (c.metadata ->> 'hops')::integer, 0)
        FROM key WHERE error_code IS NULL),
  opened AS (
    INSERT INTO sessions (tenant_id, session_id, explicit, status, idle_timeout_seconds, created_by, idle_check_at, instance_id,
        agent_type)
      SELECT c.tenant_id, c.session_id, false, 'active', c.idle_timeout_seconds, c.created_by,
        now() + c.idle_timeout_seconds * interval '1 s', agent.instance_id, agent.agent_type
        FROM key WHERE NOT in_session),
  sent AS (
    INSERT INTO dispatches (tenant_id, dispatch_id, message_id, session_id, instance_id, agent_type, deployment_mode, mesh_id, epoch, attempt,
        state, skill_id, sent_at, deadline_at)
      SELECT c.tenant_id, c.dispatch_id, c.message_id, c.session_id, agent.instance_id, agent.agent_type, agent.deployment_mode,
        CASE WHEN agent.deployment_mode = 'hosted' THEN c.mesh_id ELSE agent.mesh_id END, agent.connection_epoch, 1, 'sent',
        c.want_skill_id, now(), now() + c.deadline_ms * interval '1 ms'
        FROM key WHERE dispatched)
  INSERT INTO event_groups (tenant_id, group_id, session_id, message_id, dispatch_id, trace_id, event_count, events)
    SELECT c.tenant_id, group_of(c.event_id), c.session_id, uuid_of(c.message_id), CASE WHEN dispatched THEN uuid_of(c.dispatch_id) END,
      c.trace_id::uuid, 1 + (NOT in_session)::integer + dispatched::integer + (error_code IS NOT NULL)::integer, to_jsonb(array_remove(ARRAY[
        CASE WHEN NOT in_session THEN event_of('session.created', jsonb_build_object('created_by', c.created_by)) END,
        event_of('message.received', jsonb_build_object('role', CASE WHEN c.sender_agent_type IS NULL THEN 'user' ELSE 'agent' END)),
        CASE WHEN dispatched THEN event_of('dispatch.sent', jsonb_strip_nulls(jsonb_build_object('instance_id', agent.instance_id,
          'skill_id', c.want_skill_id))) END,
        CASE WHEN error_code IS NOT NULL THEN event_of('message.error', jsonb_build_object('error', error_code), 'warning') END], NULL))
      FROM key;
  IF NOT FOUND THEN
    -- Nothing was written here. What was sent before is committed, or was written by this same statement. Retention may have dropped the message
    -- before its key, where both times were shortened.
    DELETE FROM idempotency_keys k WHERE k.idempotency_key = key
       AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.tenant_id = k.tenant_id AND m.message_id = k.message_id OFFSET 0);
    IF FOUND THEN
      RETURN accept_message(c, false); -- it may hold a room
    END IF;
    RETURN not_accepted(c, result, NULL);
  END IF;
  IF is_late(c.message_id) THEN
    PERFORM note_change(c.tenant_id, c.message_id);
  END IF;
  IF c.decision IS NOT NULL THEN
    PERFORM record_decision(c, error_code IS NOT NULL, dispatched);
  END IF;
  RETURN (CASE WHEN c.decision ? 'error' THEN 'denied' WHEN error_code IS NOT NULL THEN 'unavailable' WHEN dispatched THEN 'dispatched'
      WHEN c.decision ? 'input_request' THEN 'asked' ELSE 'accepted' END, c.message_id, c.session_id, now(),
    agent.instance_id, agent.agent_type, agent.deployment_mode, agent.connection_epoch,
    CASE WHEN agent.deployment_mode = 'hosted' THEN c.mesh_id ELSE agent.mesh_id END, agent.public_url, agent.agent_card,
    result.user_id, result.in_flight, result.waiting, NULL::text);
END $$;

-- `wait_for_locks`: the first call may wait, while nothing is locked yet. Without sorts messages are counted by the index that has their order:
-- the key and a sort look cheaper while few messages run.
CREATE FUNCTION accept_messages(calls jsonb, wait_for_locks boolean) RETURNS SETOF accept_result LANGUAGE plpgsql
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  c accept_call;
  tenant text := '';
  pace text := limit_lock_wait(wait_for_locks);
BEGIN
  FOR place IN 0 .. jsonb_array_length(calls) - 1 LOOP
    c := jsonb_populate_record(NULL::accept_call, calls -> place);
    IF c.tenant_id <> tenant THEN
      tenant := act_for_tenant(c.tenant_id);
    END IF;
    RETURN NEXT accept_message(c, wait_for_locks AND place = 0);
  END LOOP;
END $$;
