-- What the migrations make, read back from the catalog. Written by `npm run db:dump`; a test compares it.

-- Functions
CREATE OR REPLACE FUNCTION public.agent_load(of_tenant text, of_instance text)
 RETURNS integer
 LANGUAGE sql
 STABLE
AS $function$
  SELECT count(*)::integer FROM (
    SELECT s.session_id FROM sessions s
     WHERE s.tenant_id = of_tenant AND s.instance_id = of_instance AND s.status = 'active' AND s.explicit
       AND NOT EXISTS (SELECT 1 FROM messages m
                        WHERE m.tenant_id = s.tenant_id AND m.session_id = s.session_id AND m.suspends_session)
    UNION
    SELECT m.session_id FROM messages m WHERE m.tenant_id = of_tenant AND m.instance_id = of_instance AND m.holds_slot
  ) AS served
$function$
;
CREATE OR REPLACE FUNCTION public.current_tenant()
 RETURNS text
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$ SELECT nullif(current_setting('app.tenant_id', true), '') $function$
;

-- Tables
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
  context jsonb NOT NULL DEFAULT '{}'::jsonb
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
CREATE TABLE event_outbox (
  event_id text NOT NULL,
  tenant_id text NOT NULL,
  occurred_at timestamp with time zone NOT NULL
);
CREATE TABLE event_positions (
  pos bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  event_id text NOT NULL,
  tenant_id text NOT NULL
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
  payload jsonb NOT NULL
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
  completed_at timestamp with time zone
);
CREATE TABLE platform_facts (
  name text NOT NULL,
  value text NOT NULL
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
  supervised_at timestamp with time zone
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
  deleted_at timestamp with time zone
);

-- Constraints
ALTER TABLE agents ADD CONSTRAINT agents_deployment_mode_check CHECK ((deployment_mode = ANY (ARRAY['hosted'::text, 'connected'::text])));
ALTER TABLE agents ADD CONSTRAINT agents_status_check CHECK ((status = ANY (ARRAY['available'::text, 'draining'::text, 'unhealthy'::text, 'offline'::text, 'unknown'::text])));
ALTER TABLE agents ADD CONSTRAINT agents_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id);
ALTER TABLE agents ADD CONSTRAINT agents_pkey PRIMARY KEY (tenant_id, instance_id);
ALTER TABLE credentials ADD CONSTRAINT credentials_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id);
ALTER TABLE credentials ADD CONSTRAINT credentials_pkey PRIMARY KEY (credential_id);
ALTER TABLE dispatches ADD CONSTRAINT dispatches_state_check CHECK ((state = ANY (ARRAY['open'::text, 'completed'::text, 'input-required'::text, 'failed'::text, 'canceled'::text, 'void'::text])));
ALTER TABLE dispatches ADD CONSTRAINT dispatches_tenant_id_message_id_fkey FOREIGN KEY (tenant_id, message_id) REFERENCES messages(tenant_id, message_id);
ALTER TABLE dispatches ADD CONSTRAINT dispatches_pkey PRIMARY KEY (tenant_id, dispatch_id);
ALTER TABLE event_outbox ADD CONSTRAINT event_outbox_pkey PRIMARY KEY (event_id);
ALTER TABLE event_positions ADD CONSTRAINT event_positions_pkey PRIMARY KEY (pos);
ALTER TABLE event_positions ADD CONSTRAINT event_positions_event_id_key UNIQUE (event_id);
ALTER TABLE events ADD CONSTRAINT events_severity_check CHECK ((severity = ANY (ARRAY['info'::text, 'warning'::text, 'critical'::text])));
ALTER TABLE events ADD CONSTRAINT events_pkey PRIMARY KEY (event_id);
ALTER TABLE input_decisions ADD CONSTRAINT input_decisions_tenant_id_request_id_fkey FOREIGN KEY (tenant_id, request_id) REFERENCES input_requests(tenant_id, request_id);
ALTER TABLE input_decisions ADD CONSTRAINT input_decisions_pkey PRIMARY KEY (tenant_id, decision_id);
ALTER TABLE input_decisions ADD CONSTRAINT input_decisions_tenant_id_request_id_principal_key UNIQUE (tenant_id, request_id, principal);
ALTER TABLE input_requests ADD CONSTRAINT input_requests_kind_check CHECK ((kind = ANY (ARRAY['approval'::text, 'form'::text, 'confirmation'::text])));
ALTER TABLE input_requests ADD CONSTRAINT input_requests_source_check CHECK ((source = ANY (ARRAY['policy'::text, 'guard'::text, 'agent'::text, 'plan'::text])));
ALTER TABLE input_requests ADD CONSTRAINT input_requests_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'resolved'::text, 'expired'::text, 'withdrawn'::text])));
ALTER TABLE input_requests ADD CONSTRAINT input_requests_tenant_id_message_id_fkey FOREIGN KEY (tenant_id, message_id) REFERENCES messages(tenant_id, message_id);
ALTER TABLE input_requests ADD CONSTRAINT input_requests_pkey PRIMARY KEY (tenant_id, request_id);
ALTER TABLE mesh_nodes ADD CONSTRAINT mesh_nodes_pkey PRIMARY KEY (mesh_id);
ALTER TABLE messages ADD CONSTRAINT messages_state_check CHECK ((state = ANY (ARRAY['submitted'::text, 'working'::text, 'input-required'::text, 'completed'::text, 'failed'::text, 'canceled'::text])));
ALTER TABLE messages ADD CONSTRAINT messages_tenant_id_session_id_fkey FOREIGN KEY (tenant_id, session_id) REFERENCES sessions(tenant_id, session_id);
ALTER TABLE messages ADD CONSTRAINT messages_pkey PRIMARY KEY (tenant_id, message_id);
ALTER TABLE platform_facts ADD CONSTRAINT platform_facts_pkey PRIMARY KEY (name);
ALTER TABLE session_agents ADD CONSTRAINT session_agents_tenant_id_session_id_fkey FOREIGN KEY (tenant_id, session_id) REFERENCES sessions(tenant_id, session_id);
ALTER TABLE session_agents ADD CONSTRAINT session_agents_pkey PRIMARY KEY (tenant_id, session_id, instance_id);
ALTER TABLE sessions ADD CONSTRAINT sessions_status_check CHECK ((status = ANY (ARRAY['active'::text, 'completed'::text, 'expired'::text])));
ALTER TABLE sessions ADD CONSTRAINT sessions_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id);
ALTER TABLE sessions ADD CONSTRAINT sessions_pkey PRIMARY KEY (tenant_id, session_id);
ALTER TABLE signing_keys ADD CONSTRAINT signing_keys_pkey PRIMARY KEY (kid);
ALTER TABLE tenants ADD CONSTRAINT tenants_pkey PRIMARY KEY (tenant_id);

-- Indexes
CREATE INDEX agents_by_instance ON public.agents USING btree (instance_id);
CREATE INDEX agents_by_mesh ON public.agents USING btree (mesh_id) WHERE (mesh_id IS NOT NULL);
CREATE INDEX agents_by_sign ON public.agents USING btree (last_seen) WHERE (deregistered_at IS NULL);
CREATE INDEX agents_routable ON public.agents USING btree (tenant_id, agent_type) WHERE (deregistered_at IS NULL);
CREATE INDEX credentials_by_tenant ON public.credentials USING btree (tenant_id, created_at DESC);
CREATE INDEX dispatches_by_message ON public.dispatches USING btree (tenant_id, message_id);
CREATE INDEX dispatches_newest ON public.dispatches USING btree (tenant_id, instance_id, created_at DESC);
CREATE INDEX dispatches_open ON public.dispatches USING btree (tenant_id, instance_id) WHERE (state = 'open'::text);
CREATE INDEX event_positions_by_tenant ON public.event_positions USING btree (tenant_id, pos);
CREATE INDEX events_by_session ON public.events USING btree (tenant_id, session_id, occurred_at DESC) WHERE (session_id <> ''::text);
CREATE INDEX events_newest ON public.events USING btree (tenant_id, occurred_at DESC, event_id DESC);
CREATE INDEX input_requests_by_message ON public.input_requests USING btree (tenant_id, message_id, requested_at DESC);
CREATE UNIQUE INDEX input_requests_one_open ON public.input_requests USING btree (tenant_id, message_id) WHERE (state = 'pending'::text);
CREATE INDEX input_requests_pending ON public.input_requests USING btree (tenant_id, requested_at) WHERE (state = 'pending'::text);
CREATE INDEX messages_by_session ON public.messages USING btree (tenant_id, session_id, created_at DESC);
CREATE UNIQUE INDEX messages_idempotency ON public.messages USING btree (tenant_id, credential_id, requested_context, client_message_id);
CREATE INDEX messages_in_flight ON public.messages USING btree (tenant_id, session_id) WHERE (state = ANY (ARRAY['submitted'::text, 'working'::text, 'input-required'::text]));
CREATE INDEX messages_newest ON public.messages USING btree (tenant_id, created_at DESC, message_id DESC);
CREATE INDEX messages_slots ON public.messages USING btree (tenant_id, instance_id) WHERE holds_slot;
CREATE INDEX messages_supervised ON public.messages USING btree (supervised_at) WHERE (state = ANY (ARRAY['submitted'::text, 'working'::text, 'input-required'::text]));
CREATE INDEX messages_suspending ON public.messages USING btree (tenant_id, session_id) WHERE suspends_session;
CREATE INDEX messages_to_wake ON public.messages USING btree (wake_requested_at) WHERE (wake_requested_at IS NOT NULL);
CREATE INDEX messages_unrouted ON public.messages USING btree (tenant_id, created_at) WHERE (unrouted_since IS NOT NULL);
CREATE INDEX sessions_newest ON public.sessions USING btree (tenant_id, created_at DESC, session_id DESC);
CREATE INDEX sessions_slots ON public.sessions USING btree (tenant_id, instance_id) WHERE ((status = 'active'::text) AND explicit);
CREATE INDEX sessions_supervised ON public.sessions USING btree (supervised_at) WHERE (status = 'active'::text);
CREATE INDEX sessions_to_wake ON public.sessions USING btree (wake_requested_at) WHERE (wake_requested_at IS NOT NULL);

-- Row-level security
ALTER TABLE agents ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE credentials ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE dispatches ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE event_outbox ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE event_positions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE events ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE input_decisions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE input_requests ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE mesh_nodes DISABLE ROW LEVEL SECURITY;
ALTER TABLE messages ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE platform_facts DISABLE ROW LEVEL SECURITY;
ALTER TABLE session_agents ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE sessions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE signing_keys DISABLE ROW LEVEL SECURITY;
ALTER TABLE tenants ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

-- Policies
CREATE POLICY one_tenant ON agents AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON agents AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON credentials AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON credentials AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON dispatches AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON dispatches AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON event_outbox AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON event_outbox AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON event_positions AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON event_positions AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON events AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON events AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON input_decisions AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON input_decisions AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON input_requests AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON input_requests AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON messages AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON messages AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON session_agents AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON session_agents AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON sessions AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON sessions AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON tenants AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON tenants AS PERMISSIVE FOR ALL TO fleet_system USING (true);

-- Grants
GRANT DELETE, INSERT, SELECT, UPDATE ON agents TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON agents TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON credentials TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON credentials TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON dispatches TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON dispatches TO fleet_system;
GRANT INSERT ON event_outbox TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON event_outbox TO fleet_system;
GRANT SELECT ON event_positions TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON event_positions TO fleet_system;
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
GRANT DELETE, INSERT, SELECT, UPDATE ON session_agents TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON session_agents TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON sessions TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON sessions TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON signing_keys TO fleet_system;
GRANT SELECT ON tenants TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON tenants TO fleet_system;
