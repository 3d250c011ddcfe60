-- The record: tenants, credentials, agents, sessions, messages, dispatches, requests to humans, events.
-- Row-level security: fleet_app sees the tenant that the transaction names; fleet_system (sweeper, sequencer, sign-in) sees all.

DO $$
BEGIN
  CREATE ROLE fleet_app NOLOGIN NOINHERIT;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
DO $$
BEGIN
  CREATE ROLE fleet_system NOLOGIN NOINHERIT;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
DO $$
BEGIN
  IF NOT pg_has_role(current_user, 'fleet_app', 'SET') THEN EXECUTE format('GRANT fleet_app TO %I', current_user); END IF;
  IF NOT pg_has_role(current_user, 'fleet_system', 'SET') THEN EXECUTE format('GRANT fleet_system TO %I', current_user); END IF;
END $$;

-- The tenant of the running transaction; NULL outside one (after commit the setting is '', not NULL).
CREATE FUNCTION current_tenant() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
  AS $$ SELECT nullif(current_setting('app.tenant_id', true), '') $$;

CREATE TABLE platform_facts (
  name  text PRIMARY KEY,
  value text NOT NULL
);

CREATE TABLE tenants (
  tenant_id  text PRIMARY KEY,
  name       text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  deleted_at timestamptz
);

CREATE TABLE signing_keys (
  kid                   text PRIMARY KEY,
  public_jwk            jsonb NOT NULL,
  private_jwk_encrypted bytea NOT NULL,
  created_at            timestamptz NOT NULL DEFAULT now(),
  retired_at            timestamptz
);

CREATE TABLE credentials (
  tenant_id            text NOT NULL REFERENCES tenants,
  credential_id        text PRIMARY KEY,
  name                 text NOT NULL,
  scopes               text[] NOT NULL,
  agent_types          text[] NOT NULL DEFAULT '{}',
  secret_hash          bytea NOT NULL,
  previous_secret_hash bytea,
  previous_expires_at  timestamptz,
  created_at           timestamptz NOT NULL DEFAULT now(),
  expires_at           timestamptz,
  revoked_at           timestamptz
);
CREATE INDEX credentials_by_tenant ON credentials (tenant_id, created_at DESC);

-- One row per running process with the mesh role; a node that stops renewing is dead.
CREATE TABLE mesh_nodes (
  mesh_id    text PRIMARY KEY,
  started_at timestamptz NOT NULL DEFAULT now(),
  renewed_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE agents (
  tenant_id               text NOT NULL REFERENCES tenants,
  instance_id             text NOT NULL,
  agent_type              text NOT NULL,
  deployment_mode         text NOT NULL CHECK (deployment_mode IN ('hosted', 'connected')),
  public_url              text,
  status                  text NOT NULL CHECK (status IN ('available', 'draining', 'unhealthy', 'offline', 'unknown')),
  mesh_id                 text,
  connection_epoch        bigint NOT NULL DEFAULT 0,
  connected_at            timestamptz,
  max_concurrent_sessions integer NOT NULL,
  consecutive_failures    integer NOT NULL DEFAULT 0,
  last_seen               timestamptz,
  registered_at           timestamptz NOT NULL DEFAULT now(),
  deregistered_at         timestamptz,
  agent_version           text,
  provider_organization   text,
  provider_url            text,
  agent_card              jsonb NOT NULL DEFAULT '{}',
  skills                  jsonb NOT NULL DEFAULT '[]',
  tools                   jsonb NOT NULL DEFAULT '[]',
  context                 jsonb NOT NULL DEFAULT '{}',
  PRIMARY KEY (tenant_id, instance_id)
);
CREATE INDEX agents_routable ON agents (tenant_id, agent_type) WHERE deregistered_at IS NULL;
CREATE INDEX agents_by_mesh ON agents (mesh_id) WHERE mesh_id IS NOT NULL;
CREATE INDEX agents_by_sign ON agents (last_seen) WHERE deregistered_at IS NULL;
CREATE INDEX agents_by_instance ON agents (instance_id);

CREATE TABLE sessions (
  tenant_id            text NOT NULL REFERENCES tenants,
  session_id           text NOT NULL,
  user_id              text,
  -- From /sessions/init: holds a slot of its instance until it ends. Others hold one only while a message runs.
  explicit             boolean NOT NULL,
  agent_type           text,
  instance_id          text,
  -- 'paused' is derived from messages that wait for a human, never stored.
  status               text NOT NULL CHECK (status IN ('active', 'completed', 'expired')),
  metadata             jsonb NOT NULL DEFAULT '{}',
  idle_timeout_seconds integer NOT NULL,
  created_by           text NOT NULL,
  created_at           timestamptz NOT NULL DEFAULT now(),
  ended_at             timestamptz,
  ended_reason         text,
  -- Set when the session's workflow must look at the row again; cleared by the workflow itself.
  wake_requested_at    timestamptz,
  supervised_at        timestamptz,
  PRIMARY KEY (tenant_id, session_id)
);
CREATE INDEX sessions_newest ON sessions (tenant_id, created_at DESC, session_id DESC);
CREATE INDEX sessions_slots ON sessions (tenant_id, instance_id) WHERE status = 'active' AND explicit;
CREATE INDEX sessions_to_wake ON sessions (wake_requested_at) WHERE wake_requested_at IS NOT NULL;
CREATE INDEX sessions_supervised ON sessions (supervised_at) WHERE status = 'active';

CREATE TABLE session_agents (
  tenant_id   text NOT NULL,
  session_id  text NOT NULL,
  agent_type  text NOT NULL,
  instance_id text NOT NULL,
  joined_at   timestamptz NOT NULL DEFAULT now(),
  join_reason text NOT NULL,
  PRIMARY KEY (tenant_id, session_id, instance_id),
  FOREIGN KEY (tenant_id, session_id) REFERENCES sessions
);

CREATE TABLE messages (
  tenant_id           text NOT NULL,
  message_id          text NOT NULL,
  session_id          text NOT NULL,
  credential_id       text NOT NULL,
  -- The contextId that the caller sent, '' for none: part of the idempotency key.
  requested_context   text NOT NULL,
  client_message_id   text NOT NULL,
  content_hash        bytea NOT NULL,
  state               text NOT NULL
                      CHECK (state IN ('submitted', 'working', 'input-required', 'completed', 'failed', 'canceled')),
  method              text NOT NULL,
  parts               jsonb NOT NULL,
  metadata            jsonb NOT NULL DEFAULT '{}',
  -- Turns after the first: what the agent asked and what was answered, as A2A messages.
  turns               jsonb NOT NULL DEFAULT '[]',
  user_input          text NOT NULL,
  want_instance_id    text,
  want_agent_type     text,
  want_skill_id       text,
  instance_id         text,
  agent_type          text,
  artifacts           jsonb NOT NULL DEFAULT '[]',
  status_message      jsonb,
  assistant_output    text NOT NULL DEFAULT '',
  trace_id            text NOT NULL,
  parent_span_id      text,
  baggage             text,
  usage               jsonb,
  error_code          text,
  error_message       text,
  deadline_ms         integer NOT NULL,
  attempts            integer NOT NULL DEFAULT 0,
  current_dispatch_id text,
  -- The answer that the next dispatch carries: {request_id, resolution, data?, comment?}.
  resolution          jsonb,
  remote_task_id      text,
  remote_context_id   text,
  -- The session's slot on the instance, held from the opening of a dispatch to its end.
  holds_slot          boolean NOT NULL DEFAULT false,
  -- From the question to a human until the session's next dispatch, which claims room again: its session holds no slot meanwhile,
  -- also when the question is withdrawn.
  suspends_session    boolean NOT NULL DEFAULT false,
  unrouted_since      timestamptz,
  wake_requested_at   timestamptz,
  supervised_at       timestamptz,
  created_at          timestamptz NOT NULL DEFAULT now(),
  updated_at          timestamptz NOT NULL DEFAULT now(),
  started_at          timestamptz,
  completed_at        timestamptz,
  PRIMARY KEY (tenant_id, message_id),
  FOREIGN KEY (tenant_id, session_id) REFERENCES sessions
);
CREATE UNIQUE INDEX messages_idempotency ON messages (tenant_id, credential_id, requested_context, client_message_id);
CREATE INDEX messages_newest ON messages (tenant_id, created_at DESC, message_id DESC);
CREATE INDEX messages_by_session ON messages (tenant_id, session_id, created_at DESC);
CREATE INDEX messages_in_flight ON messages (tenant_id, session_id) WHERE state IN ('submitted', 'working', 'input-required');
CREATE INDEX messages_slots ON messages (tenant_id, instance_id) WHERE holds_slot;
CREATE INDEX messages_suspending ON messages (tenant_id, session_id) WHERE suspends_session;
CREATE INDEX messages_unrouted ON messages (tenant_id, created_at) WHERE unrouted_since IS NOT NULL;
CREATE INDEX messages_to_wake ON messages (wake_requested_at) WHERE wake_requested_at IS NOT NULL;
CREATE INDEX messages_supervised ON messages (supervised_at) WHERE state IN ('submitted', 'working', 'input-required');

CREATE TABLE dispatches (
  tenant_id       text NOT NULL,
  dispatch_id     text NOT NULL,
  message_id      text NOT NULL,
  session_id      text NOT NULL,
  instance_id     text NOT NULL,
  agent_type      text NOT NULL,
  deployment_mode text NOT NULL,
  mesh_id         text,
  epoch           bigint NOT NULL,
  attempt         integer NOT NULL,
  state           text NOT NULL CHECK (state IN ('open', 'completed', 'input-required', 'failed', 'canceled', 'void')),
  skill_id        text,
  created_at      timestamptz NOT NULL DEFAULT now(),
  -- Written before the first byte goes out: from here on the agent may have seen it.
  sent_at         timestamptz,
  deadline_at     timestamptz,
  ended_at        timestamptz,
  error_code      text,
  PRIMARY KEY (tenant_id, dispatch_id),
  FOREIGN KEY (tenant_id, message_id) REFERENCES messages
);
CREATE INDEX dispatches_by_message ON dispatches (tenant_id, message_id);
CREATE INDEX dispatches_newest ON dispatches (tenant_id, instance_id, created_at DESC);
CREATE INDEX dispatches_open ON dispatches (tenant_id, instance_id) WHERE state = 'open';

CREATE TABLE input_requests (
  tenant_id    text NOT NULL,
  request_id   text NOT NULL,
  message_id   text NOT NULL,
  session_id   text NOT NULL,
  kind         text NOT NULL CHECK (kind IN ('approval', 'form', 'confirmation')),
  source       text NOT NULL CHECK (source IN ('policy', 'guard', 'agent', 'plan')),
  title        text NOT NULL,
  prompt       text NOT NULL,
  schema       jsonb,
  fields       jsonb,
  tool         text,
  arguments    jsonb,
  state        text NOT NULL CHECK (state IN ('pending', 'resolved', 'expired', 'withdrawn')),
  requested_at timestamptz NOT NULL DEFAULT now(),
  expires_at   timestamptz NOT NULL,
  ended_at     timestamptz,
  PRIMARY KEY (tenant_id, request_id),
  FOREIGN KEY (tenant_id, message_id) REFERENCES messages
);
-- One request is open per message.
CREATE UNIQUE INDEX input_requests_one_open ON input_requests (tenant_id, message_id) WHERE state = 'pending';
CREATE INDEX input_requests_by_message ON input_requests (tenant_id, message_id, requested_at DESC);
CREATE INDEX input_requests_pending ON input_requests (tenant_id, requested_at) WHERE state = 'pending';

-- The audit of who decided what.
CREATE TABLE input_decisions (
  tenant_id   text NOT NULL,
  decision_id text NOT NULL,
  request_id  text NOT NULL,
  principal   text NOT NULL,
  resolution  jsonb NOT NULL,
  data        jsonb,
  comment     text,
  decided_at  timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, decision_id),
  UNIQUE (tenant_id, request_id, principal),
  FOREIGN KEY (tenant_id, request_id) REFERENCES input_requests
);

CREATE TABLE events (
  tenant_id  text NOT NULL,
  event_id   text PRIMARY KEY,
  event_type text NOT NULL,
  category   text NOT NULL,
  source     text NOT NULL,
  severity   text NOT NULL CHECK (severity IN ('info', 'warning', 'critical')),
  session_id text NOT NULL DEFAULT '',
  trace_id   text,
  occurred_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  payload    jsonb NOT NULL
);
CREATE INDEX events_newest ON events (tenant_id, occurred_at DESC, event_id DESC);
CREATE INDEX events_by_session ON events (tenant_id, session_id, occurred_at DESC) WHERE session_id <> '';

-- Committed events that the sequencer has not placed yet; written by the statement that writes the event.
CREATE TABLE event_outbox (
  event_id    text PRIMARY KEY,
  tenant_id   text NOT NULL,
  occurred_at timestamptz NOT NULL
);
-- The order in which events became visible; streams and roll-ups follow pos.
CREATE TABLE event_positions (
  pos       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  event_id  text NOT NULL UNIQUE,
  tenant_id text NOT NULL
);
CREATE INDEX event_positions_by_tenant ON event_positions (tenant_id, pos);

-- Sessions that an instance serves right now: those from /sessions/init that are bound to it and not suspended, and those with a
-- dispatch on it. Counted, never stored, so that it cannot drift.
CREATE FUNCTION agent_load(of_tenant text, of_instance text) RETURNS integer LANGUAGE sql STABLE AS $$
  SELECT count(*)::integer FROM (
    SELECT s.session_id FROM sessions s
     WHERE s.tenant_id = of_tenant AND s.instance_id = of_instance AND s.status = 'active' AND s.explicit
       AND NOT EXISTS (SELECT 1 FROM messages m
                        WHERE m.tenant_id = s.tenant_id AND m.session_id = s.session_id AND m.suspends_session)
    UNION
    SELECT m.session_id FROM messages m WHERE m.tenant_id = of_tenant AND m.instance_id = of_instance AND m.holds_slot
  ) AS served
$$;

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['tenants', 'credentials', 'agents', 'sessions', 'session_agents', 'messages', 'dispatches',
                              'input_requests', 'input_decisions', 'events', 'event_outbox', 'event_positions'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY one_tenant ON %I TO fleet_app USING (tenant_id = current_tenant())', name);
    EXECUTE format('CREATE POLICY whole_platform ON %I TO fleet_system USING (true)', name);
  END LOOP;
END $$;

GRANT SELECT, INSERT, UPDATE, DELETE ON credentials, agents, sessions, session_agents, messages, dispatches,
  input_requests, input_decisions TO fleet_app;
GRANT SELECT, INSERT ON events TO fleet_app;
GRANT INSERT ON event_outbox TO fleet_app;
GRANT SELECT ON tenants, event_positions, mesh_nodes TO fleet_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO fleet_system;
