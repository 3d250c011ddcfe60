-- The second half of the accept transaction: what was decided is written for all its messages together, since to begin
-- a statement takes longer than to write a row.

-- Lets the suspended session of a message go on. Called before the message is written: the trigger on the session
-- writes agent.capacity_changed only while no message of the session holds the slot.
CREATE FUNCTION resume_session(d accept_outcome) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE sessions s SET suspended = false
   WHERE s.tenant_id = (d.c).tenant_id AND s.session_id = (d.c).session_id AND s.instance_id = (d.agent).instance_id;
END $$;

-- Writes what only some messages have: a late change, the outcome of policies.
CREATE FUNCTION write_extra_rows(c accept_call, d accept_outcome) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF is_late(c.message_id) THEN
    PERFORM note_change(c.tenant_id, c.message_id);
    PERFORM forget_totals(c.tenant_id, c.session_id, c.message_id);
  END IF;
  IF c.decision IS NOT NULL THEN
    PERFORM record_policy_outcome(c, d.error_code IS NOT NULL, (d.agent).instance_id IS NOT NULL);
  END IF;
END $$;

-- Writes the messages, and gives an empty list.
CREATE FUNCTION write_messages(decided accept_outcome[]) RETURNS accept_outcome[] LANGUAGE plpgsql AS $$
BEGIN
  IF cardinality(decided) = 0 THEN
    RETURN decided;
  END IF;
  -- Each member is taken out of its record once, here.
  WITH given AS MATERIALIZED (
    SELECT c.tenant_id, c.message_id, c.session_id, c.credential_id, c.sender_agent_type, c.client_message_id,
           c.content_hash, c.method, c.parts, c.metadata, c.want_instance_id, x.want_type, c.want_skill_id, c.trace_id,
           c.parent_span_id, c.propagation, c.deadline_ms, c.created_by, c.idle_timeout_seconds, c.idempotency_hours,
           c.dispatch_id, c.event_id, c.token, coalesce(c.decision ? 'undecided', false) AS undecided,
           session_uuid(uuid_of(c.tenant_id), c.session_id) AS session_uuid, c.requested_context = '' AS opens_session,
           x.key, r.state, r.verdict = 'dispatched' AS dispatched,
           CASE r.verdict WHEN 'dispatched' THEN r.instance_id END AS instance_id, r.agent_type, r.user_id,
           r.deployment_mode, r.connection_epoch, r.mesh_id,
           CASE WHEN x.queue IS NOT NULL THEN now() + asked_wait(c.metadata, c.deadline_ms) END AS wait_ends_at,
           x.error_code, x.error_text, x.ordered, x.hops, x.queue
      FROM unnest(decided) AS x CROSS JOIN LATERAL (SELECT (x.c).*) AS c CROSS JOIN LATERAL (SELECT (x.result).*) AS r),
  key AS (
    INSERT INTO idempotency_keys (idempotency_key, tenant_id, content_hash, message_id, expires_at)
      SELECT key, uuid_of(tenant_id), content_hash, uuid_of(message_id), now() + idempotency_hours * interval '1 hour'
        FROM given),
  accepted AS (
    INSERT INTO messages (tenant_id, message_id, session_id, session_uuid, credential_id, user_id, sender_agent_type,
        client_message_id, method, parts, metadata, want_agent_type, trace_id, parent_span_id, propagation,
        deadline_ms, state, unsuccessful_state, instance_id, agent_type, error_code, error_message, started_at,
        completed_at)
      SELECT tenant_id, message_id, session_id, session_uuid, credential_id, user_id, sender_agent_type,
             client_message_id, method, parts, metadata, want_type, trace_id, parent_span_id, propagation, deadline_ms,
             state, CASE WHEN state = 'failed' THEN state END, instance_id, agent_type, error_code, error_text,
             CASE WHEN dispatched THEN now() END, CASE WHEN error_code IS NOT NULL THEN now() END FROM given),
  running AS (
    INSERT INTO running_messages (tenant_id, message_id, session_id, state, want_instance_id, want_agent_type,
        want_skill_id, instance_id, agent_type, attempts, current_dispatch_id, holds_slot, wake_requested_at,
        undecided, token, ordered, hops, queue, unrouted_since, wait_ends_at)
      SELECT tenant_id, message_id, session_id, state, want_instance_id, want_type, want_skill_id, instance_id,
             agent_type, dispatched::integer, CASE WHEN dispatched THEN dispatch_id END, dispatched,
             CASE WHEN state <> 'working' AND queue IS NULL THEN now() END, undecided, token, ordered, hops, queue,
             CASE WHEN queue IS NOT NULL THEN now() END, wait_ends_at
        FROM given WHERE error_code IS NULL),
  opened AS (
    INSERT INTO sessions (tenant_id, session_id, explicit, status, idle_timeout_seconds, idle_check_at, user_id,
        credential_id, sender_agent_type, instance_id, agent_type)
      SELECT tenant_id, session_id, false, 'active', idle_timeout_seconds,
             now() + idle_timeout_seconds * interval '1 s', user_id, credential_id, sender_agent_type, instance_id,
               agent_type FROM given WHERE opens_session),
  sent AS (
    INSERT INTO dispatches (tenant_id, dispatch_id, message_id, instance_id, agent_type, deployment_mode, mesh_id,
        epoch, attempt, state, skill_id, sent_at, deadline_at)
      SELECT tenant_id, dispatch_id, message_id, instance_id, agent_type, deployment_mode, mesh_id, connection_epoch,
             1, 'sent', want_skill_id, now(), now() + deadline_ms * interval '1 ms' FROM given WHERE dispatched)
  INSERT INTO event_groups (tenant_id, group_id, session_uuid, session_name, message_id, dispatch_id, trace_id, types,
    instance_mark, events)
    SELECT uuid_of(tenant_id), group_of(event_id), session_uuid, session_name(session_id), uuid_of(message_id),
           CASE WHEN dispatched THEN uuid_of(dispatch_id) END, trace_id::uuid,
           event_bit('message.received') | CASE WHEN opens_session THEN event_bit('session.created') ELSE 0 END
             | CASE WHEN dispatched THEN event_bit('dispatch.sent')
               ELSE 0 END | CASE WHEN error_code IS NOT NULL THEN event_bit('message.error') ELSE 0 END,
           instance_mark(CASE WHEN dispatched THEN instance_id END),
           -- As text, which takes half as long as jsonb.
           ('[' || CASE WHEN opens_session THEN '{"created_by":' || to_json(created_by) || '},' ELSE '' END
             || CASE WHEN sender_agent_type IS NULL THEN '{}' ELSE '{"role":"agent"}' END
             || CASE WHEN dispatched THEN ',{"instance_id":' || to_json(instance_id)
               || coalesce(',"skill_id":' || to_json(want_skill_id), '') || '}'
                ELSE '' END
             || CASE WHEN error_code IS NOT NULL THEN ',[{"error":' || to_json(error_code) || '},"warning"]'
               ELSE '' END || ']')::json
      FROM given;
  RETURN '{}';
END $$;
