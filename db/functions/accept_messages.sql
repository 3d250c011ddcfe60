-- The accept transaction (docs/internals.md): puts messages on the record and, on the fast path, opens their dispatches as sent, in one
-- round trip. Several callers may share it: what fails one call undoes all, and the process then makes each call by itself. A call that
-- would wait for a lock of another transaction is answered 'later' and writes nothing; the others go on (db/batcher.ts). A messageId that is
-- on the record already is found by its key, at any step, and nothing is written.

-- `in_flight_limit`, `waiting_limit`: bounds to count to; 0: not to be counted. `waiting_full`: the process knows that the second is reached.
-- `unavailable_text`: the error of a message whose target is not registered, which is then put on the record as failed; NULL: refused.
-- `dispatch_id`: of the dispatch that the process may open; NULL: the workflow path. `mesh_id`: the node that sends to hosted agents, and to
-- agents connected to it; with `any_mesh` an agent that is connected to another node may be chosen too. `event_ids`: of session.created,
-- message.received, dispatch.sent and message.error.
CREATE TYPE accept_call AS (
  tenant_id text, message_id text, session_id text, requested_context text, credential_id text, sender_agent_type text,
  client_message_id text, content_hash bytea, method text, parts jsonb, metadata jsonb, want_instance_id text, want_agent_type text,
  want_skill_id text, trace_id text, parent_span_id text, baggage text, deadline_ms integer, created_by text, idle_timeout_seconds integer,
  idempotency_hours integer, in_flight_limit integer, waiting_limit integer, waiting_full boolean, unavailable_text text, dispatch_id text,
  mesh_id text, any_mesh boolean, event_ids text[]
);

-- `verdict`: dispatched | accepted | unavailable | repeat | mismatch | full | waiting_full | no_session | session_closed | target_required |
-- target_unknown | agents_saturated (with both, `agent_type` is the type that was looked for) | later (`awaits` names the lock). From
-- `instance_id` on for `dispatched`, `mesh_id` is the node that sends; the counts where they were taken.
CREATE TYPE accept_result AS (
  verdict text, message_id text, session_id text, accepted_at timestamptz, instance_id text, agent_type text, deployment_mode text,
  connection_epoch bigint, mesh_id text, public_url text, agent_card jsonb, user_id text, in_flight integer, waiting integer, awaits text
);

-- What makes a messageId one: the same from the same credential in the same context ('' for none) is a repeat. Half of a SHA-256, and no
-- part can pass for another.
CREATE FUNCTION idempotency_key(of_tenant text, credential_id text, requested_context text, client_message_id text) RETURNS uuid
  LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN left(encode(sha256(convert_to(concat_ws('/', of_tenant, credential_id, length(requested_context), requested_context
    || client_message_id), 'UTF8')), 'hex'), 32)::uuid;
END $$;

-- The result of a call that writes nothing: 'repeat' or 'mismatch' when the messageId is on the record, else `otherwise`.
CREATE FUNCTION not_accepted(c accept_call, result accept_result, otherwise text) RETURNS accept_result LANGUAGE plpgsql AS $$
BEGIN
  SELECT k.message_id, m.session_id, CASE WHEN k.content_hash = c.content_hash THEN 'repeat' ELSE 'mismatch' END
    INTO result.message_id, result.session_id, result.verdict
    FROM idempotency_keys k JOIN messages m ON m.tenant_id = k.tenant_id AND m.message_id = k.message_id
   WHERE k.idempotency_key = idempotency_key(c.tenant_id, c.credential_id, c.requested_context, c.client_message_id)
     AND k.expires_at > now();
  result.verdict := coalesce(result.verdict, otherwise);
  RETURN result;
END $$;

-- The result of a call that another transaction keeps from a lock.
CREATE FUNCTION accept_later(result accept_result, lock_name text) RETURNS accept_result LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  result.verdict := 'later';
  result.awaits := lock_name;
  RETURN result;
END $$;

-- `may_wait`: it waits for session, room and key where another transaction holds them. Nobody else's call may then stand behind it, and its
-- transaction must hold no lock yet.
CREATE FUNCTION accept_message(c accept_call, may_wait boolean) RETURNS accept_result LANGUAGE plpgsql AS $$
DECLARE
  result accept_result;
  session record;
  in_session boolean := c.requested_context <> '';
  want_type text := c.want_agent_type;
  is_bound boolean := false;
  resumes boolean := false;
  wish routing;
  agent chosen_agent;
  failed boolean := false;
  dispatched boolean;
  key_lock bigint;
BEGIN
  IF c.waiting_full THEN
    RETURN not_accepted(c, result, 'waiting_full');
  END IF;
  IF c.in_flight_limit > 0 THEN
    -- Each state for itself, and in the order of running_in_flight: a plan for both at once takes the key and reads all, and so may one that
    -- was made while the table was small.
    result.in_flight :=
      (SELECT count(*) FROM (SELECT 1 FROM running_messages r
        WHERE r.tenant_id = c.tenant_id AND r.state = 'working' ORDER BY r.session_id LIMIT c.in_flight_limit) AS working)
      + (SELECT count(*) FROM (SELECT 1 FROM running_messages r
        WHERE r.tenant_id = c.tenant_id AND r.state = 'submitted' ORDER BY r.session_id LIMIT c.in_flight_limit) AS submitted);
    IF result.in_flight >= c.in_flight_limit THEN
      RETURN not_accepted(c, result, 'full');
    END IF;
  END IF;
  IF c.waiting_limit > 0 THEN
    result.waiting := (SELECT count(*) FROM (SELECT 1 FROM running_messages r
      WHERE r.tenant_id = c.tenant_id AND r.state = 'input-required' ORDER BY r.session_id LIMIT c.waiting_limit) AS waiting);
    IF result.waiting >= c.waiting_limit THEN
      RETURN not_accepted(c, result, 'waiting_full');
    END IF;
  END IF;

  IF in_session THEN
    IF may_wait THEN
      PERFORM 1 FROM sessions s WHERE s.tenant_id = c.tenant_id AND s.session_id = c.requested_context FOR SHARE;
    END IF;
    SELECT s.status, s.explicit, s.suspended, s.instance_id, s.agent_type, s.user_id INTO session FROM sessions s
     WHERE s.tenant_id = c.tenant_id AND s.session_id = c.requested_context FOR SHARE SKIP LOCKED;
    IF NOT FOUND AND EXISTS (SELECT 1 FROM sessions s WHERE s.tenant_id = c.tenant_id AND s.session_id = c.requested_context) THEN
      RETURN accept_later(result, 'session ' || c.requested_context);
    END IF;
    IF session.status IS DISTINCT FROM 'active' THEN
      RETURN not_accepted(c, result, CASE WHEN session.status IS NULL THEN 'no_session' ELSE 'session_closed' END);
    END IF;
    result.user_id := session.user_id;
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
    IF agent.awaited_id IS NOT NULL AND may_wait THEN
      -- Once only: one that waits for a second room while it holds a first could wait for ever.
      PERFORM lock_room(c.tenant_id, agent.awaited_id);
      agent := choose_agent(wish);
    END IF;
    IF agent.awaited_id IS NOT NULL THEN
      RETURN accept_later(result, 'room ' || agent.awaited_id);
    END IF;
  END IF;
  dispatched := agent.instance_id IS NOT NULL;
  IF agent.deployment_mode = 'hosted' THEN
    agent.mesh_id := c.mesh_id;
  END IF;
  IF dispatched AND resumes THEN
    UPDATE sessions s SET suspended = false
     WHERE s.tenant_id = c.tenant_id AND s.session_id = c.requested_context AND s.instance_id = agent.instance_id;
  END IF;
  IF NOT dispatched THEN
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
      failed := true;
    ELSIF all_saturated(wish) THEN
      result.agent_type := want_type;
      RETURN not_accepted(c, result, 'agents_saturated');
    END IF;
  END IF;

  -- Whoever writes a key holds this lock, so that the INSERT meets no key of a transaction that has not ended.
  key_lock := hashtextextended('message:' || c.tenant_id || ' ' || c.credential_id || ' ' || c.requested_context || ' ' || c.client_message_id, 0);
  IF may_wait THEN
    PERFORM pg_advisory_xact_lock(key_lock);
  ELSIF NOT pg_try_advisory_xact_lock(key_lock) THEN
    RETURN accept_later(result, 'message ' || key_lock);
  END IF;

  WITH key AS (
    INSERT INTO idempotency_keys AS k (idempotency_key, tenant_id, content_hash, message_id, expires_at)
      VALUES (idempotency_key(c.tenant_id, c.credential_id, c.requested_context, c.client_message_id), c.tenant_id, c.content_hash,
        c.message_id, now() + c.idempotency_hours * interval '1 hour')
      ON CONFLICT (idempotency_key) DO UPDATE SET content_hash = excluded.content_hash, message_id = excluded.message_id,
        -- Retention may have dropped the message first: where both times were shortened, the key still has the longer one.
        expires_at = excluded.expires_at WHERE k.expires_at <= now()
          OR NOT EXISTS (SELECT 1 FROM messages m WHERE m.tenant_id = k.tenant_id AND m.message_id = k.message_id)
      RETURNING 1),
  accepted AS (
    INSERT INTO messages (tenant_id, message_id, session_id, credential_id, sender_agent_type, client_message_id, method, parts, metadata,
        want_agent_type, trace_id, parent_span_id, baggage, deadline_ms, state, instance_id, agent_type, error_code, error_message, started_at,
        completed_at)
      SELECT c.tenant_id, c.message_id, c.session_id, c.credential_id, c.sender_agent_type, c.client_message_id, c.method, c.parts, c.metadata,
        want_type, c.trace_id, c.parent_span_id, c.baggage, c.deadline_ms,
        CASE WHEN failed THEN 'failed' WHEN dispatched THEN 'working' ELSE 'submitted' END, agent.instance_id, agent.agent_type,
        CASE WHEN failed THEN 'TARGET_UNAVAILABLE' END, CASE WHEN failed THEN c.unavailable_text END, CASE WHEN dispatched THEN now() END,
        CASE WHEN failed THEN now() END
        FROM key),
  running AS (
    INSERT INTO running_messages (tenant_id, message_id, session_id, state, want_instance_id, want_agent_type, want_skill_id, instance_id,
        agent_type, attempts, current_dispatch_id, holds_slot, wake_requested_at)
      SELECT c.tenant_id, c.message_id, c.session_id, CASE WHEN dispatched THEN 'working' ELSE 'submitted' END, c.want_instance_id, want_type,
        c.want_skill_id, agent.instance_id, agent.agent_type, dispatched::integer, CASE WHEN dispatched THEN c.dispatch_id END, dispatched, now()
        FROM key WHERE NOT failed),
  opened AS (
    INSERT INTO sessions (tenant_id, session_id, explicit, status, idle_timeout_seconds, created_by, idle_check_at, instance_id,
        agent_type)
      SELECT c.tenant_id, c.session_id, false, 'active', c.idle_timeout_seconds, c.created_by,
        now() + c.idle_timeout_seconds * interval '1 s', agent.instance_id, agent.agent_type
        FROM key WHERE NOT in_session),
  sent AS (
    INSERT INTO dispatches (tenant_id, dispatch_id, message_id, session_id, instance_id, agent_type, deployment_mode, mesh_id, epoch, attempt,
        state, skill_id, sent_at, deadline_at)
      SELECT c.tenant_id, c.dispatch_id, c.message_id, c.session_id, agent.instance_id, agent.agent_type, agent.deployment_mode, agent.mesh_id,
        agent.connection_epoch, 1, 'sent', c.want_skill_id, now(), now() + c.deadline_ms * interval '1 ms'
        FROM key WHERE dispatched)
  INSERT INTO events (tenant_id, event_id, event_type, category, source, severity, session_id, trace_id, payload)
    SELECT c.tenant_id, c.event_ids[event.place], event.type, event.category, 'platform', event.severity, c.session_id, c.trace_id,
           CASE event.place
             WHEN 1 THEN jsonb_build_object('session_id', c.session_id, 'tenant_id', c.tenant_id, 'created_by', c.created_by)
             WHEN 2 THEN jsonb_build_object('message_id', c.message_id, 'session_id', c.session_id, 'role',
               CASE WHEN c.sender_agent_type IS NULL THEN 'user' ELSE 'agent' END)
             WHEN 3 THEN jsonb_build_object('dispatch_id', c.dispatch_id, 'instance_id', agent.instance_id, 'skill_id', c.want_skill_id,
               'session_id', c.session_id)
             ELSE jsonb_build_object('message_id', c.message_id, 'session_id', c.session_id, 'error', 'TARGET_UNAVAILABLE')
           END
      FROM key, (VALUES (1, 'session.created', 'session', 'info', NOT in_session), (2, 'message.received', 'message', 'info', true),
        (3, 'dispatch.sent', 'dispatch', 'info', dispatched), (4, 'message.error', 'message', 'warning', failed))
        AS event (place, type, category, severity, happened)
     WHERE event.happened;
  IF NOT FOUND THEN
    -- Nothing was written here. What was sent before is committed, or was written by this same statement.
    RETURN not_accepted(c, result, NULL);
  END IF;
  PERFORM note_change(c.tenant_id, c.message_id);
  RETURN (CASE WHEN failed THEN 'unavailable' WHEN dispatched THEN 'dispatched' ELSE 'accepted' END, c.message_id, c.session_id, now(),
    agent.instance_id, agent.agent_type, agent.deployment_mode, agent.connection_epoch, agent.mesh_id, agent.public_url, agent.agent_card,
    result.user_id, result.in_flight, result.waiting, NULL::text);
END $$;

-- `wait_for_locks`: the first call may wait, while nothing is locked yet.
CREATE FUNCTION accept_messages(calls jsonb, wait_for_locks boolean) RETURNS SETOF accept_result LANGUAGE plpgsql
  SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
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
