-- Routing and health: what an agent reports about itself counts, a decision waits ahead of new work, and an operator finds why a message
-- ended.

-- `busy` is what the agent said, until its next report; an agent that is full by the count is only shown as busy.
ALTER TABLE agents DROP CONSTRAINT agents_status_check;
ALTER TABLE agents ADD CONSTRAINT agents_status_check
  CHECK (status IN ('available', 'busy', 'draining', 'unhealthy', 'offline', 'unknown'));
-- Sessions that an agent last reported, where they were more than those counted here; else 0. A table of its own, because T1 reads it by a
-- plan that was made while it was empty: there is no index but the key to take.
CREATE TABLE agent_reports (
  tenant_id   text NOT NULL REFERENCES tenants,
  instance_id text NOT NULL,
  sessions    integer NOT NULL,
  PRIMARY KEY (tenant_id, instance_id)
);
ALTER TABLE agent_reports ENABLE ROW LEVEL SECURITY;
ALTER TABLE agent_reports FORCE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON agent_reports TO fleet_app USING (tenant_id = current_tenant());
CREATE POLICY whole_platform ON agent_reports TO fleet_system USING (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON agent_reports TO fleet_app, fleet_system;

-- Sessions that an instance serves for the platform: those from /sessions/init that are bound to it and not suspended, and those with a
-- dispatch on it.
CREATE FUNCTION counted_sessions(of_tenant text, of_instance text) RETURNS integer LANGUAGE plpgsql STABLE AS $$
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

-- The larger of the reported and the counted number of sessions (decisions.md, Agents).
CREATE OR REPLACE FUNCTION agent_load(of_tenant text, of_instance text) RETURNS integer LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN greatest(counted_sessions(of_tenant, of_instance),
    (SELECT r.sessions FROM agent_reports r WHERE r.tenant_id = of_tenant AND r.instance_id = of_instance));
END $$;

-- Decisions that wait for their instance's next free slot: few, and looked for at every claim of room.
CREATE INDEX messages_decided ON messages (tenant_id, instance_id) WHERE unrouted_since IS NOT NULL AND resolution IS NOT NULL;

-- Sessions whose decision waits for room on an instance, which new work leaves to them.
CREATE FUNCTION decisions_waiting(of_tenant text, of_instance text) RETURNS integer LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT count(DISTINCT m.session_id)::integer FROM messages m
           WHERE m.tenant_id = of_tenant AND m.instance_id = of_instance AND m.unrouted_since IS NOT NULL
             AND m.resolution IS NOT NULL AND NOT m.holds_slot);
END $$;

-- As it was, and: an agent that reports busy comes with those that are full, and `reserved` is the room that decisions wait for.
DROP FUNCTION routable_agents;
CREATE FUNCTION routable_agents(of_tenant text, only_instance text, only_type text, only_skill text, for_message text)
RETURNS TABLE (instance_id text, agent_type text, deployment_mode text, mesh_id text, connection_epoch bigint,
               max_concurrent_sessions integer, load integer, reserved integer, busy boolean, unreachable boolean)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
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
END $$;

-- As it was, and: decisions that wait for this very instance come first. One that waits for another instance is woken only where that one
-- cannot be routed to, because then this one may take its place.
CREATE OR REPLACE FUNCTION call_waiting(of_tenant text, roomy_type text, roomy_instance text, most integer)
RETURNS jsonb LANGUAGE plpgsql AS $$
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
END $$;

-- T2 says whose end it wrote, so that whoever called can name it in its log.
ALTER TYPE dispatch_ended ADD ATTRIBUTE session_id text, ADD ATTRIBUTE instance_id text, ADD ATTRIBUTE agent_type text;
CREATE OR REPLACE FUNCTION end_dispatch(c dispatch_end) RETURNS dispatch_ended LANGUAGE plpgsql AS $$
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
END $$;

-- What lists of messages are filtered by at no cost to who writes them: few messages fail, and rows are written in the order of their
-- times. The messages of an instance are found by its dispatches. Whole indexes by type and instance took 12 % of the throughput.
CREATE INDEX messages_by_error ON messages (error_code, message_id) WHERE error_code IS NOT NULL;
CREATE INDEX messages_by_time ON messages USING brin (created_at) WITH (autosummarize = on);
