-- What the migrations make, read back from the catalog. Written by `npm run db:dump`; a test compares it.

-- Functions
CREATE OR REPLACE FUNCTION public.audit_decision()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO audit_entries (tenant_id, audit_id, principal_type, principal_id, action, target_type, target_id, target_name, ip, message_id,
      plan_id, after)
    SELECT NEW.tenant_id, 'aud_' || substr(NEW.approval_id, strpos(NEW.approval_id, '_') + 1), NEW.principal_type, NEW.principal_id,
           'request.decide', 'request', NEW.request_id, q.title, NEW.ip, NEW.message_id, NEW.plan_id,
           (SELECT json_object_agg(m.name, m.value) FROM (VALUES
               ('resolution', to_json(NEW.resolution)), ('kind', to_json(NEW.kind)), ('source', to_json(NEW.source)),
               ('tool', to_json(q.tool)), ('arguments', q.arguments), ('executor', to_json(q.executor)),
               ('message_id', to_json(NEW.message_id)), ('plan_id', to_json(NEW.plan_id)), ('approval_id', to_json(NEW.approval_id)),
               ('digest', to_json(NEW.digest)), ('arguments_changed', to_json(NEW.arguments_changed)), ('comment', to_json(NEW.comment))
             ) AS m (name, value) WHERE m.value IS NOT NULL)
      FROM (SELECT 1) AS one
      LEFT JOIN input_requests q ON q.tenant_id = NEW.tenant_id AND q.request_id = NEW.request_id;
  RETURN NULL;
END $function$
;
CREATE OR REPLACE FUNCTION public.current_tenant()
 RETURNS text
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$ SELECT nullif(current_setting('app.tenant_id', true), '') $function$
;
CREATE OR REPLACE FUNCTION public.current_tenant_uuid()
 RETURNS uuid
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$ SELECT right(nullif(current_setting('app.tenant_id', true), ''), 36)::uuid $function$
;
CREATE OR REPLACE FUNCTION public.event_bit(event_type text)
 RETURNS bigint
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$ SELECT 1::bigint << (array_position(event_types(), event_type) - 1) $function$
;
CREATE OR REPLACE FUNCTION public.event_types()
 RETURNS text[]
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$ SELECT ARRAY[
  'session.created', 'message.received', 'policy.denied', 'guard.denied', 'message.resolved', 'dispatch.sent', 'dispatch.success',
  'dispatch.failed', 'message.input_required', 'policy.approval_required', 'guard.approval_required', 'message.completed',
  'message.canceled', 'message.error', 'session.closed', 'policy.audited', 'guard.allowed', 'agent.registered', 'agent.deregistered',
  'agent.health_changed', 'agent.capacity_changed', 'plan.created', 'plan.approval_required', 'plan.approved', 'plan.completed',
  'plan.failed', 'plan.canceled', 'plan.rejected', 'system.alert_triggered', 'tenant.created', 'tenant.deleted',
  'message.decision_effect'] $function$
;
CREATE OR REPLACE FUNCTION public.group_minute(group_id uuid)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$ SELECT ('x' || left(group_id::text, 8))::bit(32)::integer $function$
;
CREATE OR REPLACE FUNCTION public.instance_mark(instance_id text)
 RETURNS smallint
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$ SELECT (coalesce(hashtext(instance_id), 0) & 32767)::smallint $function$
;
CREATE OR REPLACE FUNCTION public.isolate_tenants(tables text[], app_privileges text DEFAULT 'SELECT, INSERT, UPDATE, DELETE'::text, own_tenant text DEFAULT 'current_tenant()'::text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY tables LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY one_tenant ON %I TO fleet_app USING (tenant_id = %s)', name, own_tenant);
    EXECUTE format('CREATE POLICY whole_platform ON %I TO fleet_system USING (true)', name);
    EXECUTE format('GRANT %s ON %I TO fleet_app', app_privileges, name);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO fleet_system', name);
  END LOOP;
END $function$
;
CREATE OR REPLACE FUNCTION public.note_capacity_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM running_messages r WHERE r.tenant_id = NEW.tenant_id AND r.instance_id = NEW.instance_id
                   AND r.session_id = NEW.session_id AND r.holds_slot) THEN
    PERFORM record_capacity(NEW.tenant_id, NEW.instance_id);
  END IF;
  RETURN NULL;
END $function$
;
CREATE OR REPLACE FUNCTION public.note_room()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  UPDATE agent_skills s SET has_room = NEW.has_room WHERE s.tenant_id = NEW.tenant_id AND s.instance_id = NEW.instance_id;
  RETURN NULL;
END $function$
;
CREATE OR REPLACE FUNCTION public.note_skills()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    DELETE FROM agent_skills s WHERE s.tenant_id = OLD.tenant_id AND s.instance_id = OLD.instance_id;
  END IF;
  INSERT INTO agent_skills (tenant_id, instance_id, skill_id, agent_type, shuffle, has_room)
    SELECT NEW.tenant_id, NEW.instance_id, named.skill #>> '{}', of_type, NEW.shuffle, NEW.has_room
      FROM (SELECT jsonb_path_query(NEW.skills, '$[*].id') AS skill UNION SELECT jsonb_path_query(NEW.agent_card, '$.skills[*].id')) AS named
     CROSS JOIN unnest(ARRAY['', NEW.agent_type]) AS of_type
     WHERE NEW.deregistered_at IS NULL AND jsonb_typeof(named.skill) = 'string' AND length(named.skill #>> '{}') <= 256;
  RETURN NULL;
END $function$
;
CREATE OR REPLACE FUNCTION public.note_state_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NEW.state <> OLD.state AND NEW.state <> 'submitted' THEN
    INSERT INTO push_changes (tenant_id, message_id, config_id, state)
      SELECT c.tenant_id, c.message_id, c.config_id, NEW.state FROM push_configs c
       WHERE c.tenant_id = NEW.tenant_id AND c.message_id = NEW.message_id;
    INSERT INTO plan_wakes (tenant_id, plan_id)
      SELECT p.tenant_id, p.plan_id FROM plan_messages p WHERE p.tenant_id = NEW.tenant_id AND p.message_id = NEW.message_id;
  END IF;
  RETURN NULL;
END $function$
;
CREATE OR REPLACE FUNCTION public.note_tool_decision()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
DECLARE
  decided tool_grants;
BEGIN
  UPDATE tool_grants g SET decided_at = now() WHERE g.tenant_id = NEW.tenant_id AND g.request_id = NEW.request_id RETURNING * INTO decided;
  UPDATE dispatches d SET deadline_at = now() + decided.deadline_left_ms * interval '1 ms'
   WHERE d.tenant_id = decided.tenant_id AND d.dispatch_id = decided.dispatch_id AND d.state = 'sent' AND d.deadline_at IS NULL;
  RETURN NULL;
END $function$
;
CREATE OR REPLACE FUNCTION public.place_audit_entry()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
DECLARE
  next_position bigint;
BEGIN
  INSERT INTO audit_heads AS h (tenant_id, last_position) VALUES (NEW.tenant_id, 1)
    ON CONFLICT (tenant_id) DO UPDATE SET last_position = h.last_position + 1
    RETURNING h.last_position INTO next_position;
  UPDATE audit_entries e SET position = next_position WHERE e.tenant_id = NEW.tenant_id AND e.audit_id = NEW.audit_id;
  RETURN NULL;
END $function$
;
CREATE OR REPLACE FUNCTION public.record_capacity(of_tenant text, of_instance text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
BEGIN
  PERFORM record_event(a.tenant_id, new_event_id(), 'agent.capacity_changed', 'info', '', NULL, jsonb_build_object('agent_type', a.agent_type, 'instance_id', a.instance_id,
        'current_sessions', agent_load(a.tenant_id, a.instance_id), 'max_concurrent_sessions', a.max_concurrent_sessions))
    FROM agents a WHERE a.tenant_id = of_tenant AND a.instance_id = of_instance;
END $function$
;
CREATE OR REPLACE FUNCTION public.requeue_messages()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  UPDATE running_messages r SET queue = '/' || OLD.agent_type || '/' || coalesce(r.want_skill_id, '')
   WHERE r.tenant_id = OLD.tenant_id AND r.message_id IN (SELECT w.message_id FROM running_messages w
     WHERE w.tenant_id = OLD.tenant_id AND w.queue = OLD.instance_id || '//' AND w.want_instance_id IS DISTINCT FROM OLD.instance_id
       FOR UPDATE SKIP LOCKED);
  RETURN NULL;
END $function$
;
CREATE OR REPLACE FUNCTION public.session_name(session_id text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$ SELECT CASE WHEN NOT (length(session_id) = 40 AND starts_with(session_id, 'ses_')) THEN session_id END $function$
;
CREATE OR REPLACE FUNCTION public.session_of(session_uuid uuid, session_name text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$ SELECT coalesce(session_name, 'ses_' || session_uuid, '') $function$
;
CREATE OR REPLACE FUNCTION public.session_uuid(tenant_id uuid, session_id text)
 RETURNS uuid
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  SELECT CASE WHEN session_id = '' THEN NULL WHEN public.session_name(session_id) IS NULL THEN right(session_id, 36)::uuid
    ELSE md5(tenant_id::text || '/' || session_id)::uuid END
$function$
;
CREATE OR REPLACE FUNCTION public.trace_of(trace_id text, message_id text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$ SELECT coalesce(trace_id, replace(right(message_id, 36), '-', '')) $function$
;

-- Tables
CREATE TABLE agent_outcomes (
  tenant_id text NOT NULL,
  instance_id text NOT NULL,
  failures smallint NOT NULL,
  failing_since timestamp with time zone,
  paused_until timestamp with time zone,
  pauses smallint NOT NULL DEFAULT 0,
  last_error text NOT NULL
);
CREATE TABLE agent_reports (
  tenant_id text NOT NULL,
  instance_id text NOT NULL,
  sessions integer NOT NULL
);
CREATE TABLE agent_skills (
  tenant_id text NOT NULL,
  instance_id text NOT NULL,
  skill_id text NOT NULL,
  agent_type text NOT NULL,
  shuffle double precision NOT NULL,
  has_room boolean
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
  dispatch_auth bytea,
  status text NOT NULL,
  mesh_id text,
  connection_epoch bigint NOT NULL DEFAULT 0,
  connected_at timestamp with time zone,
  max_concurrent_sessions integer NOT NULL,
  max_concurrent_tasks integer NOT NULL DEFAULT 0,
  drained boolean NOT NULL DEFAULT false,
  saturated_until timestamp with time zone,
  saturated_on jsonb NOT NULL DEFAULT '{}'::jsonb,
  full_at timestamp with time zone,
  consecutive_failures integer NOT NULL DEFAULT 0,
  last_seen timestamp with time zone,
  registered_at timestamp with time zone NOT NULL DEFAULT now(),
  deregistered_at timestamp with time zone,
  deregistration_cause text,
  agent_version text,
  provider_organization text,
  provider_url text,
  agent_card jsonb NOT NULL DEFAULT '{}'::jsonb,
  skills jsonb NOT NULL DEFAULT '[]'::jsonb,
  tools jsonb NOT NULL DEFAULT '[]'::jsonb,
  context jsonb NOT NULL DEFAULT '{}'::jsonb,
  credential_id text,
  updated_by text,
  shuffle double precision NOT NULL DEFAULT random(),
  has_room boolean GENERATED ALWAYS AS (
CASE
    WHEN ((deregistered_at IS NULL) AND (NOT drained) AND (status = ANY (ARRAY['available'::text, 'unknown'::text, 'busy'::text])) AND ((deployment_mode = 'hosted'::text) OR (mesh_id IS NOT NULL))) THEN ((status <> 'busy'::text) AND (full_at IS NULL))
    ELSE NULL::boolean
END),
  modes_digest text NOT NULL GENERATED ALWAYS AS (md5(((((jsonb_path_query_array(agent_card, '$."defaultInputModes"[*]'::jsonpath))::text || (jsonb_path_query_array(agent_card, '$."skills"[*]."inputModes"[*]'::jsonpath))::text) || (jsonb_path_query_array(agent_card, '$."defaultOutputModes"[*]'::jsonpath))::text) || (jsonb_path_query_array(agent_card, '$."skills"[*]."outputModes"[*]'::jsonpath))::text)))
);
CREATE TABLE alert_channels (
  tenant_id text NOT NULL,
  rule_id text NOT NULL,
  channel_id text NOT NULL,
  place integer NOT NULL,
  type text NOT NULL,
  enabled boolean NOT NULL,
  config jsonb NOT NULL,
  secrets bytea
);
CREATE TABLE alert_revisions (
  tenant_id text NOT NULL,
  revision bigint NOT NULL
);
CREATE TABLE alert_rules (
  tenant_id text NOT NULL,
  rule_id text NOT NULL,
  name text NOT NULL,
  description text NOT NULL,
  event text NOT NULL,
  filters jsonb NOT NULL DEFAULT '{}'::jsonb,
  severity text NOT NULL,
  threshold integer NOT NULL,
  window_seconds integer NOT NULL,
  cooldown_seconds integer NOT NULL,
  approvers text[] NOT NULL DEFAULT '{}'::text[],
  writers text[] NOT NULL DEFAULT '{}'::text[],
  enabled boolean NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  updated_at timestamp with time zone NOT NULL DEFAULT now(),
  updated_by text
);
CREATE TABLE alert_states (
  tenant_id text NOT NULL,
  rule_id text NOT NULL,
  counted_ms jsonb NOT NULL DEFAULT '[]'::jsonb,
  fired_ms bigint
);
CREATE TABLE audit_entries (
  tenant_id text NOT NULL,
  audit_id text NOT NULL,
  "position" bigint,
  at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  principal_type text NOT NULL,
  principal_id text NOT NULL,
  action text NOT NULL,
  target_type text NOT NULL,
  target_id text NOT NULL,
  target_name text,
  ip text,
  before json,
  after json,
  message_id text,
  plan_id text
);
CREATE TABLE audit_heads (
  tenant_id text NOT NULL,
  last_position bigint NOT NULL
);
CREATE TABLE callback_tokens (
  token_hash bytea NOT NULL,
  tenant_id text NOT NULL,
  message_id text,
  plan_id text,
  request_id text NOT NULL,
  digest text NOT NULL,
  rule_id text NOT NULL,
  writers text[] NOT NULL,
  destination text,
  slack_user text,
  expires_at timestamp with time zone NOT NULL,
  used_at timestamp with time zone
);
CREATE TABLE console_sessions (
  tenant_id text NOT NULL,
  console_session text NOT NULL,
  credential_id text NOT NULL,
  sign_in_id text,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  expires_at timestamp with time zone NOT NULL
);
CREATE TABLE counted_usage (
  tenant_id text NOT NULL,
  message_id text NOT NULL,
  model text NOT NULL,
  input_tokens numeric NOT NULL,
  output_tokens numeric NOT NULL,
  reported_cost_usd numeric NOT NULL
);
CREATE TABLE credentials (
  tenant_id text,
  credential_id text NOT NULL,
  name text NOT NULL,
  scopes text[] NOT NULL,
  agent_types text[] NOT NULL DEFAULT '{}'::text[],
  secret_hash bytea,
  previous_secret_hash bytea,
  previous_expires_at timestamp with time zone,
  secret_key_id text,
  previous_secret_key_id text,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  updated_by text,
  last_used_at timestamp with time zone
);
CREATE TABLE decision_outcomes (
  tenant_id text NOT NULL,
  request_id text NOT NULL,
  outcome text NOT NULL,
  error_code text,
  settled_at timestamp with time zone NOT NULL DEFAULT now()
);
CREATE TABLE deliveries (
  tenant_id text NOT NULL,
  delivery_id text NOT NULL,
  event_type text NOT NULL,
  session_id text NOT NULL,
  event_id text,
  rule_id text,
  channel_id text,
  mail_to text NOT NULL DEFAULT ''::text,
  message_id text,
  config_id text,
  sequence bigint,
  changed_at timestamp with time zone,
  url text NOT NULL,
  receiver text NOT NULL,
  body bytea,
  status text NOT NULL,
  traceparent text,
  max_attempts integer NOT NULL,
  attempts jsonb NOT NULL DEFAULT '[]'::jsonb,
  attempts_before integer NOT NULL DEFAULT 0,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  ended_at timestamp with time zone
);
CREATE TABLE delivery_queue (
  tenant_id text NOT NULL,
  queue_id text NOT NULL,
  is_approval boolean NOT NULL,
  receiver text NOT NULL,
  input jsonb NOT NULL,
  queued_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  starts integer NOT NULL DEFAULT 0,
  started_at timestamp with time zone,
  check_at timestamp with time zone
);
CREATE TABLE delivery_turns (
  is_approval boolean NOT NULL,
  tenant_id text NOT NULL,
  from_receiver text NOT NULL
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
CREATE TABLE dispatch_transfers (
  tenant_id text NOT NULL,
  instance_id text NOT NULL,
  dispatch_id text NOT NULL,
  mesh_id text NOT NULL,
  epoch bigint NOT NULL,
  resume_token_hashes bytea[] NOT NULL,
  progress text NOT NULL,
  expires_at timestamp with time zone NOT NULL
);
CREATE TABLE dispatches (
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  sent_at timestamp with time zone,
  deadline_at timestamp with time zone,
  ended_at timestamp with time zone,
  epoch bigint NOT NULL,
  attempt smallint NOT NULL,
  tenant_id text NOT NULL,
  dispatch_id text NOT NULL,
  message_id text NOT NULL,
  instance_id text NOT NULL,
  agent_type text NOT NULL,
  deployment_mode text NOT NULL,
  mesh_id text,
  state text NOT NULL,
  skill_id text,
  error_code text
) PARTITION BY RANGE (dispatch_id);
CREATE TABLE erasures (
  erasure_id text NOT NULL,
  tenant_id text NOT NULL,
  kind text NOT NULL,
  selection jsonb NOT NULL,
  digest text NOT NULL,
  requested_by text NOT NULL,
  requested_at timestamp with time zone NOT NULL DEFAULT now(),
  next_at timestamp with time zone NOT NULL DEFAULT now(),
  done_until text NOT NULL DEFAULT ''::text,
  removed jsonb NOT NULL DEFAULT '{}'::jsonb,
  removing_workflows text[] NOT NULL DEFAULT '{}'::text[],
  removing_keys text[] NOT NULL DEFAULT '{}'::text[],
  finished_at timestamp with time zone
);
CREATE TABLE event_batches (
  last_position bigint NOT NULL,
  seen pg_snapshot NOT NULL,
  system_identifier bigint NOT NULL,
  positioned_at timestamp with time zone NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE event_cursors (
  consumer text NOT NULL,
  "position" bigint NOT NULL,
  updated_at timestamp with time zone NOT NULL DEFAULT now()
);
CREATE TABLE event_groups (
  occurred_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
  types bigint NOT NULL,
  instance_mark smallint NOT NULL DEFAULT 0,
  group_id uuid NOT NULL,
  tenant_id uuid NOT NULL,
  message_id uuid,
  dispatch_id uuid,
  trace_id uuid,
  session_uuid uuid,
  session_name text,
  events json NOT NULL
) PARTITION BY RANGE (group_id);
CREATE TABLE event_positions (
  "position" bigint NOT NULL,
  transaction_id xid8 NOT NULL,
  tenant_id uuid NOT NULL,
  last_group_id uuid NOT NULL,
  earlier_group_ids uuid[]
) PARTITION BY RANGE (last_group_id);
CREATE TABLE guards (
  tenant_id text NOT NULL,
  guard text NOT NULL,
  enabled boolean NOT NULL,
  decision text NOT NULL,
  config jsonb NOT NULL,
  updated_at timestamp with time zone NOT NULL DEFAULT now(),
  updated_by text
);
CREATE TABLE idempotency_keys (
  idempotency_key uuid NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  tenant_id uuid NOT NULL,
  message_id uuid NOT NULL,
  content_hash uuid NOT NULL
);
CREATE TABLE input_decisions (
  tenant_id text NOT NULL,
  approval_id text NOT NULL,
  request_id text NOT NULL,
  message_id text,
  plan_id text,
  kind text NOT NULL,
  source text NOT NULL,
  title text,
  tool text,
  arguments json,
  executor jsonb,
  resolution text NOT NULL,
  principal_type text NOT NULL,
  principal_id text NOT NULL,
  voter text NOT NULL,
  stands_for text[] NOT NULL DEFAULT '{}'::text[],
  digest text NOT NULL,
  arguments_changed boolean NOT NULL DEFAULT false,
  comment text,
  ip text,
  decided_at timestamp with time zone NOT NULL DEFAULT now()
);
CREATE TABLE input_requests (
  tenant_id text NOT NULL,
  request_id text NOT NULL,
  message_id text,
  plan_id text,
  session_id text NOT NULL,
  kind text NOT NULL,
  source text NOT NULL,
  stage text NOT NULL,
  title text NOT NULL,
  prompt text NOT NULL,
  schema json,
  fields jsonb,
  action text,
  tool text,
  arguments json,
  executor jsonb,
  path text,
  policy_id text,
  policy_name text,
  guard text,
  policy_request jsonb,
  digest text NOT NULL,
  salt bytea NOT NULL DEFAULT (uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())),
  approvers text[] NOT NULL DEFAULT '{}'::text[],
  quorum integer NOT NULL DEFAULT 1,
  allow_self boolean NOT NULL DEFAULT true,
  on_reject text NOT NULL DEFAULT 'fail'::text,
  escalate_to text[] NOT NULL DEFAULT '{}'::text[],
  reminder_seconds integer,
  reminders integer NOT NULL DEFAULT 0,
  remind_at timestamp with time zone,
  state text NOT NULL,
  answer jsonb,
  requested_at timestamp with time zone NOT NULL DEFAULT now(),
  expires_at timestamp with time zone NOT NULL,
  ended_at timestamp with time zone,
  wake_requested_at timestamp with time zone
);
CREATE TABLE knowledge_bases (
  tenant_id text NOT NULL,
  namespace text NOT NULL,
  display_name text NOT NULL,
  description text NOT NULL,
  visibility text NOT NULL,
  config jsonb NOT NULL,
  created_by text NOT NULL,
  idempotency_key text,
  fingerprint text,
  revision bigint NOT NULL DEFAULT nextval('knowledge_order'::regclass),
  deletions bigint NOT NULL DEFAULT 0,
  last_ingested_at timestamp with time zone,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  updated_at timestamp with time zone NOT NULL DEFAULT now(),
  deleted_at timestamp with time zone
);
CREATE TABLE knowledge_chunks (
  tenant_id text NOT NULL,
  namespace text NOT NULL,
  source_id text NOT NULL,
  ordinal integer NOT NULL,
  chunk_id text NOT NULL,
  text text NOT NULL,
  char_start integer NOT NULL,
  char_end integer NOT NULL,
  page_start integer,
  page_end integer,
  heading_path text[] NOT NULL DEFAULT '{}'::text[],
  tokens integer NOT NULL,
  embedding bytea,
  dim integer,
  model text
);
CREATE TABLE knowledge_documents (
  tenant_id text NOT NULL,
  job_id text NOT NULL,
  ordinal integer NOT NULL,
  namespace text NOT NULL,
  source_id text NOT NULL,
  place bigint NOT NULL DEFAULT nextval('knowledge_order'::regclass),
  state text NOT NULL,
  input jsonb NOT NULL,
  content bytea,
  content_bytes bigint NOT NULL,
  content_hash text,
  attempts integer NOT NULL DEFAULT 0,
  result text,
  chunk_count integer NOT NULL DEFAULT 0,
  chunks_done integer NOT NULL DEFAULT 0,
  error jsonb
);
CREATE TABLE knowledge_jobs (
  tenant_id text NOT NULL,
  job_id text NOT NULL,
  namespace text NOT NULL,
  operation text NOT NULL,
  status text NOT NULL,
  phase text NOT NULL,
  created_by text NOT NULL,
  idempotency_key text,
  fingerprint text NOT NULL,
  documents integer NOT NULL,
  wake_at timestamp with time zone,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  updated_at timestamp with time zone NOT NULL DEFAULT now(),
  ended_at timestamp with time zone
);
CREATE TABLE knowledge_sources (
  tenant_id text NOT NULL,
  namespace text NOT NULL,
  source_id text NOT NULL,
  place bigint NOT NULL,
  version bigint NOT NULL,
  revision bigint NOT NULL DEFAULT 0,
  title text NOT NULL,
  filename text,
  url text,
  etag text,
  content_type text NOT NULL,
  source_type text,
  declared jsonb NOT NULL DEFAULT '{}'::jsonb,
  tags text[] NOT NULL DEFAULT '{}'::text[],
  metadata jsonb NOT NULL DEFAULT '{}'::jsonb,
  content_hash text NOT NULL,
  chunking text NOT NULL,
  extracted bytea NOT NULL,
  chunk_count integer NOT NULL,
  token_count bigint NOT NULL,
  byte_count bigint NOT NULL,
  model text,
  dim integer,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  updated_at timestamp with time zone NOT NULL DEFAULT now()
);
CREATE TABLE late_changes (
  tenant_id text NOT NULL,
  message_id text NOT NULL,
  session_id text NOT NULL,
  changed_at timestamp with time zone NOT NULL
);
CREATE TABLE mesh_nodes (
  mesh_id text NOT NULL,
  started_at timestamp with time zone NOT NULL DEFAULT now(),
  renewed_at timestamp with time zone NOT NULL DEFAULT now(),
  resumed_at timestamp with time zone,
  draining boolean NOT NULL DEFAULT false
);
CREATE TABLE messages (
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  updated_at timestamp with time zone NOT NULL DEFAULT now(),
  started_at timestamp with time zone,
  completed_at timestamp with time zone,
  deadline_ms integer NOT NULL,
  notifies boolean NOT NULL DEFAULT false,
  tenant_id text NOT NULL,
  message_id text NOT NULL,
  session_id text NOT NULL,
  session_uuid uuid,
  credential_id text NOT NULL,
  user_id text,
  sender_agent_type text,
  client_message_id text NOT NULL,
  method text NOT NULL,
  parts jsonb NOT NULL,
  metadata jsonb NOT NULL DEFAULT '{}'::jsonb,
  want_agent_type text,
  trace_id text,
  parent_span_id text,
  propagation jsonb,
  state text NOT NULL,
  unsuccessful_state text,
  instance_id text,
  agent_type text,
  turns jsonb NOT NULL DEFAULT '[]'::jsonb,
  artifacts jsonb NOT NULL DEFAULT '[]'::jsonb,
  status_message jsonb,
  usage jsonb,
  error_code text,
  error_message text,
  retry_of text,
  first_credential_id text,
  retried_as text
) PARTITION BY RANGE (message_id);
CREATE TABLE model_prices (
  tenant_id text NOT NULL,
  model text NOT NULL,
  input_per_million numeric NOT NULL,
  output_per_million numeric NOT NULL,
  updated_at timestamp with time zone NOT NULL DEFAULT now(),
  updated_by text
);
CREATE TABLE plan_messages (
  tenant_id text NOT NULL,
  message_id text NOT NULL,
  plan_id text NOT NULL,
  place integer NOT NULL,
  attempt integer NOT NULL
);
CREATE TABLE plan_steps (
  tenant_id text NOT NULL,
  plan_id text NOT NULL,
  place integer NOT NULL,
  step_id text NOT NULL,
  description text NOT NULL,
  agent_type text,
  instance_id text,
  skill_id text,
  parts jsonb NOT NULL,
  depends_on integer[] NOT NULL,
  requires_approval boolean NOT NULL,
  timeout_seconds integer,
  max_attempts integer NOT NULL,
  state text NOT NULL DEFAULT 'pending'::text,
  attempts integer NOT NULL DEFAULT 0,
  message_id text,
  started_at timestamp with time zone,
  ended_at timestamp with time zone,
  retry_at timestamp with time zone,
  postponed integer NOT NULL DEFAULT 0,
  due_at timestamp with time zone,
  time_left_ms bigint,
  error_code text,
  error_message text
);
CREATE TABLE plan_wakes (
  wake_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  tenant_id text NOT NULL,
  plan_id text NOT NULL,
  due_at timestamp with time zone NOT NULL DEFAULT now()
);
CREATE TABLE plans (
  tenant_id text NOT NULL,
  plan_id text NOT NULL,
  session_id text NOT NULL,
  description text NOT NULL,
  state text NOT NULL,
  max_parallel integer NOT NULL,
  auto_approve boolean NOT NULL,
  credential_id text NOT NULL,
  created_by text NOT NULL,
  agent_type text NOT NULL,
  scopes text[] NOT NULL,
  trace_id text NOT NULL,
  parent_span_id text,
  sampled boolean NOT NULL DEFAULT true,
  proposal_key text,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  started_at timestamp with time zone,
  ended_at timestamp with time zone,
  error_code text,
  error_message text,
  failed_step integer,
  check_at timestamp with time zone
);
CREATE TABLE platform_facts (
  name text NOT NULL,
  value text NOT NULL
);
CREATE TABLE policies (
  tenant_id text NOT NULL,
  policy_id text NOT NULL,
  scope text NOT NULL,
  name text NOT NULL,
  decision text NOT NULL,
  description text NOT NULL,
  match jsonb NOT NULL,
  reason text NOT NULL,
  approvers text[] NOT NULL,
  evaluator jsonb NOT NULL,
  evaluator_secret bytea,
  priority integer NOT NULL,
  enabled boolean NOT NULL,
  end_at timestamp with time zone,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  updated_at timestamp with time zone NOT NULL DEFAULT now(),
  updated_by text,
  max_calls integer
);
CREATE TABLE policy_calls (
  tenant_id text NOT NULL,
  policy_id text NOT NULL,
  calls_allowed integer NOT NULL DEFAULT 0
);
CREATE TABLE policy_revisions (
  tenant_id text NOT NULL,
  revision bigint NOT NULL,
  changed_by xid8 NOT NULL DEFAULT pg_current_xact_id()
);
CREATE TABLE push_changes (
  tenant_id text NOT NULL,
  sequence bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  message_id text NOT NULL,
  config_id text NOT NULL,
  state text NOT NULL,
  changed_at timestamp with time zone NOT NULL DEFAULT now()
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
CREATE TABLE queue_absences (
  tenant_id text NOT NULL,
  queue text NOT NULL,
  since timestamp with time zone NOT NULL
);
CREATE TABLE receiver_breakers (
  tenant_id text NOT NULL,
  receiver text NOT NULL,
  failures integer NOT NULL,
  open_until timestamp with time zone,
  opened_at timestamp with time zone,
  probe text,
  changed_at timestamp with time zone NOT NULL DEFAULT now()
);
CREATE TABLE running_messages (
  tenant_id text NOT NULL,
  message_id text NOT NULL,
  session_id text NOT NULL,
  state text NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  want_instance_id text,
  want_agent_type text,
  want_skill_id text,
  instance_id text,
  agent_type text,
  attempts integer NOT NULL DEFAULT 0,
  current_dispatch_id text,
  failed_openings smallint NOT NULL DEFAULT 0,
  holds_slot boolean NOT NULL DEFAULT false,
  resolution jsonb,
  held_output json,
  remote_task_id text,
  remote_context_id text,
  unrouted_since timestamp with time zone,
  queue text,
  wait_ends_at timestamp with time zone,
  unreachable_ids text[] NOT NULL DEFAULT '{}'::text[],
  wake_requested_at timestamp with time zone,
  supervised_at timestamp with time zone,
  ordered boolean NOT NULL DEFAULT false,
  hops smallint NOT NULL DEFAULT 0,
  repeat_until timestamp with time zone,
  approved boolean NOT NULL DEFAULT false,
  undecided boolean NOT NULL DEFAULT false,
  asked_policies text[] NOT NULL DEFAULT '{}'::text[],
  verdicts jsonb NOT NULL DEFAULT '{}'::jsonb,
  token jsonb
);
CREATE TABLE session_agents (
  tenant_id text NOT NULL,
  session_id text NOT NULL,
  agent_type text NOT NULL,
  instance_id text NOT NULL,
  joined_at timestamp with time zone NOT NULL DEFAULT now(),
  join_reason text NOT NULL
);
CREATE TABLE session_totals (
  turns bigint NOT NULL,
  tenant_id text NOT NULL,
  session_id text NOT NULL,
  counted_until text NOT NULL,
  tokens numeric NOT NULL,
  open_ids text[] NOT NULL
);
CREATE TABLE sessions (
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  ended_at timestamp with time zone,
  wake_requested_at timestamp with time zone,
  supervised_at timestamp with time zone,
  idle_check_at timestamp with time zone,
  idle_timeout_seconds integer NOT NULL,
  explicit boolean NOT NULL,
  reserves boolean NOT NULL DEFAULT false,
  suspended boolean NOT NULL DEFAULT false,
  ordered boolean NOT NULL DEFAULT false,
  tenant_id text NOT NULL,
  session_id text NOT NULL,
  user_id text,
  credential_id text NOT NULL DEFAULT ''::text,
  agent_type text,
  instance_id text,
  status text NOT NULL,
  metadata jsonb NOT NULL DEFAULT '{}'::jsonb,
  sender_agent_type text,
  ended_reason text
);
CREATE TABLE sign_in_links (
  tenant_id text NOT NULL,
  link_digest bytea NOT NULL,
  credential_id text NOT NULL,
  expires_at timestamp with time zone NOT NULL
);
CREATE TABLE sign_ins (
  sign_in_id text NOT NULL,
  issuer text NOT NULL,
  subject text NOT NULL,
  name text NOT NULL,
  is_operator boolean NOT NULL,
  grants jsonb NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  expires_at timestamp with time zone NOT NULL
);
CREATE TABLE signing_keys (
  kid text NOT NULL,
  kind text NOT NULL DEFAULT 'token'::text,
  public_jwk jsonb NOT NULL,
  private_jwk_encrypted bytea,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  retired_at timestamp with time zone
);
CREATE TABLE tenant_ceilings (
  tenant_id text NOT NULL,
  messages_per_day bigint,
  tokens_per_day bigint,
  cost_usd_per_month numeric,
  updated_at timestamp with time zone NOT NULL DEFAULT now(),
  updated_by text
);
CREATE TABLE tenant_limits (
  tenant_id text NOT NULL,
  messages_per_day bigint,
  tokens_per_day bigint,
  cost_usd_per_month numeric,
  per_key jsonb NOT NULL DEFAULT '{}'::jsonb,
  updated_at timestamp with time zone NOT NULL DEFAULT now(),
  updated_by text
);
CREATE TABLE tenants (
  tenant_id text NOT NULL,
  name text NOT NULL,
  default_agent_type text,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  updated_by text,
  deleted_at timestamp with time zone,
  deleted_by text
);
CREATE TABLE tool_grants (
  tenant_id text NOT NULL,
  request_id text NOT NULL,
  message_id text NOT NULL,
  dispatch_id text NOT NULL,
  deadline_left_ms bigint NOT NULL,
  asked_digest text NOT NULL,
  target jsonb NOT NULL,
  node_id text NOT NULL,
  call jsonb NOT NULL,
  decided_at timestamp with time zone,
  used_at timestamp with time zone,
  used_by uuid,
  answered_at timestamp with time zone
);
CREATE TABLE tool_owners (
  tenant_id text NOT NULL,
  tool text NOT NULL,
  agent_types text[] NOT NULL,
  decided_by text NOT NULL,
  decided_at timestamp with time zone NOT NULL DEFAULT now()
);
CREATE TABLE trace_exports (
  exporter text NOT NULL,
  "position" bigint NOT NULL,
  tried_at timestamp with time zone NOT NULL DEFAULT now(),
  leased_by uuid,
  leased_until timestamp with time zone
);
CREATE TABLE trace_spans (
  tenant_id text NOT NULL,
  message_id text NOT NULL,
  span_id text NOT NULL,
  parent_span_id text NOT NULL,
  name text NOT NULL,
  kind text NOT NULL,
  started_at timestamp with time zone NOT NULL,
  ended_at timestamp with time zone NOT NULL,
  error_type text,
  attributes jsonb NOT NULL,
  late_at timestamp with time zone
);
CREATE TABLE usage_batches (
  source text NOT NULL,
  sequence bigint NOT NULL,
  added_at timestamp with time zone NOT NULL DEFAULT now()
);
CREATE TABLE usage_by_key (
  tenant_id text NOT NULL,
  hour timestamp with time zone NOT NULL,
  kind text NOT NULL,
  key text NOT NULL,
  messages bigint NOT NULL,
  dispatches bigint NOT NULL,
  tool_calls bigint NOT NULL,
  input_tokens numeric NOT NULL,
  output_tokens numeric NOT NULL,
  duration_ms bigint NOT NULL,
  cost_usd numeric NOT NULL
);
CREATE TABLE usage_days (
  tenant_id text NOT NULL,
  day date NOT NULL,
  messages bigint NOT NULL,
  tokens numeric NOT NULL,
  cost_usd numeric NOT NULL
);
CREATE TABLE usage_hours (
  tenant_id text NOT NULL,
  hour timestamp with time zone NOT NULL,
  agent_type text NOT NULL,
  instance_id text NOT NULL,
  model text NOT NULL,
  messages bigint NOT NULL,
  dispatches bigint NOT NULL,
  tool_calls bigint NOT NULL,
  input_tokens numeric NOT NULL,
  output_tokens numeric NOT NULL,
  duration_ms bigint NOT NULL,
  cost_usd numeric NOT NULL
);
CREATE TABLE usage_sessions (
  hour timestamp with time zone NOT NULL,
  duration_ms bigint NOT NULL,
  messages integer NOT NULL,
  dispatches integer NOT NULL,
  tool_calls integer NOT NULL,
  tenant_id uuid NOT NULL,
  session_uuid uuid NOT NULL,
  session_name text,
  input_tokens numeric NOT NULL,
  output_tokens numeric NOT NULL,
  cost_usd numeric NOT NULL
);
CREATE TABLE user_token_epochs (
  tenant_id text NOT NULL,
  user_id text NOT NULL,
  token_epoch integer NOT NULL
);

-- Constraints
ALTER TABLE agent_outcomes ADD CONSTRAINT agent_outcomes_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id);
ALTER TABLE agent_outcomes ADD CONSTRAINT agent_outcomes_pkey PRIMARY KEY (tenant_id, instance_id);
ALTER TABLE agent_reports ADD CONSTRAINT agent_reports_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id);
ALTER TABLE agent_reports ADD CONSTRAINT agent_reports_pkey PRIMARY KEY (tenant_id, instance_id);
ALTER TABLE agent_skills ADD CONSTRAINT agent_skills_tenant_id_instance_id_fkey FOREIGN KEY (tenant_id, instance_id) REFERENCES agents(tenant_id, instance_id) ON DELETE CASCADE;
ALTER TABLE agent_skills ADD CONSTRAINT agent_skills_pkey PRIMARY KEY (tenant_id, instance_id, skill_id, agent_type);
ALTER TABLE agent_types ADD CONSTRAINT agent_types_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id);
ALTER TABLE agent_types ADD CONSTRAINT agent_types_pkey PRIMARY KEY (tenant_id, agent_type);
ALTER TABLE agents ADD CONSTRAINT agents_deployment_mode_check CHECK ((deployment_mode = ANY (ARRAY['hosted'::text, 'connected'::text])));
ALTER TABLE agents ADD CONSTRAINT agents_deregistration_cause_check CHECK ((deregistration_cause = ANY (ARRAY['explicit'::text, 'inactivity'::text])));
ALTER TABLE agents ADD CONSTRAINT agents_status_check CHECK ((status = ANY (ARRAY['available'::text, 'busy'::text, 'draining'::text, 'unhealthy'::text, 'offline'::text, 'unknown'::text])));
ALTER TABLE agents ADD CONSTRAINT agents_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id);
ALTER TABLE agents ADD CONSTRAINT agents_pkey PRIMARY KEY (tenant_id, instance_id);
ALTER TABLE alert_channels ADD CONSTRAINT alert_channels_type_check CHECK ((type = ANY (ARRAY['webhook'::text, 'slack'::text, 'email'::text])));
ALTER TABLE alert_channels ADD CONSTRAINT alert_channels_tenant_id_rule_id_fkey FOREIGN KEY (tenant_id, rule_id) REFERENCES alert_rules(tenant_id, rule_id) ON DELETE CASCADE;
ALTER TABLE alert_channels ADD CONSTRAINT alert_channels_pkey PRIMARY KEY (tenant_id, channel_id);
ALTER TABLE alert_revisions ADD CONSTRAINT alert_revisions_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id);
ALTER TABLE alert_revisions ADD CONSTRAINT alert_revisions_pkey PRIMARY KEY (tenant_id);
ALTER TABLE alert_rules ADD CONSTRAINT alert_rules_severity_check CHECK ((severity = ANY (ARRAY['info'::text, 'warning'::text, 'critical'::text])));
ALTER TABLE alert_rules ADD CONSTRAINT alert_rules_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id);
ALTER TABLE alert_rules ADD CONSTRAINT alert_rules_pkey PRIMARY KEY (tenant_id, rule_id);
ALTER TABLE alert_states ADD CONSTRAINT alert_states_pkey PRIMARY KEY (tenant_id, rule_id);
ALTER TABLE audit_entries ADD CONSTRAINT audit_entries_principal_type_check CHECK ((principal_type = ANY (ARRAY['credential'::text, 'agent'::text, 'person'::text, 'callback'::text, 'page'::text, 'slack'::text, 'system'::text, 'schedule'::text, 'operator'::text, 'temporal'::text])));
ALTER TABLE audit_entries ADD CONSTRAINT audit_entries_pkey PRIMARY KEY (tenant_id, audit_id);
ALTER TABLE audit_entries ADD CONSTRAINT position_of_audit_entry TRIGGER DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE audit_heads ADD CONSTRAINT audit_heads_pkey PRIMARY KEY (tenant_id);
ALTER TABLE callback_tokens ADD CONSTRAINT callback_tokens_check CHECK ((num_nonnulls(message_id, plan_id) = 1));
ALTER TABLE callback_tokens ADD CONSTRAINT callback_tokens_tenant_id_plan_id_fkey FOREIGN KEY (tenant_id, plan_id) REFERENCES plans(tenant_id, plan_id) ON DELETE CASCADE;
ALTER TABLE callback_tokens ADD CONSTRAINT callback_tokens_pkey PRIMARY KEY (token_hash);
ALTER TABLE console_sessions ADD CONSTRAINT console_sessions_credential_id_fkey FOREIGN KEY (credential_id) REFERENCES credentials(credential_id) ON DELETE CASCADE;
ALTER TABLE console_sessions ADD CONSTRAINT console_sessions_sign_in_id_fkey FOREIGN KEY (sign_in_id) REFERENCES sign_ins(sign_in_id) ON DELETE CASCADE;
ALTER TABLE console_sessions ADD CONSTRAINT console_sessions_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id);
ALTER TABLE console_sessions ADD CONSTRAINT console_sessions_pkey PRIMARY KEY (tenant_id, console_session);
ALTER TABLE counted_usage ADD CONSTRAINT counted_usage_pkey PRIMARY KEY (tenant_id, message_id, model);
ALTER TABLE credentials ADD CONSTRAINT credentials_of_operators CHECK (((tenant_id IS NULL) = (credential_id ~~ 'op\_%'::text)));
ALTER TABLE credentials ADD CONSTRAINT credentials_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id);
ALTER TABLE credentials ADD CONSTRAINT credentials_pkey PRIMARY KEY (credential_id);
ALTER TABLE decision_outcomes ADD CONSTRAINT decision_outcomes_outcome_check CHECK ((outcome = ANY (ARRAY['succeeded'::text, 'failed'::text, 'expired'::text])));
ALTER TABLE decision_outcomes ADD CONSTRAINT decision_outcomes_pkey PRIMARY KEY (tenant_id, request_id);
ALTER TABLE deliveries ADD CONSTRAINT deliveries_check CHECK (((rule_id IS NULL) <> (config_id IS NULL)));
ALTER TABLE deliveries ADD CONSTRAINT deliveries_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'delivered'::text, 'failed'::text, 'dropped'::text])));
ALTER TABLE deliveries ADD CONSTRAINT deliveries_pkey PRIMARY KEY (tenant_id, delivery_id);
ALTER TABLE deliveries ADD CONSTRAINT deliveries_tenant_id_event_id_rule_id_channel_id_mail_to_key UNIQUE (tenant_id, event_id, rule_id, channel_id, mail_to);
ALTER TABLE delivery_queue ADD CONSTRAINT delivery_queue_pkey PRIMARY KEY (tenant_id, queue_id);
ALTER TABLE delivery_turns ADD CONSTRAINT delivery_turns_pkey PRIMARY KEY (tenant_id, is_approval);
ALTER TABLE dispatch_totals ADD CONSTRAINT dispatch_totals_pkey PRIMARY KEY (tenant_id, instance_id);
ALTER TABLE dispatch_transfers ADD CONSTRAINT dispatch_transfers_pkey PRIMARY KEY (tenant_id, instance_id, dispatch_id);
ALTER TABLE dispatches ADD CONSTRAINT dispatches_pkey PRIMARY KEY (tenant_id, dispatch_id);
ALTER TABLE erasures ADD CONSTRAINT erasures_kind_check CHECK ((kind = ANY (ARRAY['messages'::text, 'sessions'::text, 'tenant'::text])));
ALTER TABLE erasures ADD CONSTRAINT erasures_pkey PRIMARY KEY (erasure_id);
ALTER TABLE event_batches ADD CONSTRAINT event_batches_pkey PRIMARY KEY (last_position);
ALTER TABLE event_cursors ADD CONSTRAINT event_cursors_pkey PRIMARY KEY (consumer);
ALTER TABLE event_groups ADD CONSTRAINT event_groups_pkey PRIMARY KEY (tenant_id, group_id) INCLUDE (types, instance_mark);
ALTER TABLE guards ADD CONSTRAINT guards_decision_check CHECK ((decision = ANY (ARRAY['allow'::text, 'require_approval'::text, 'deny'::text])));
ALTER TABLE guards ADD CONSTRAINT guards_guard_check CHECK ((guard = ANY (ARRAY['path'::text, 'egress'::text, 'secrets'::text, 'prompt_injection'::text, 'limits'::text])));
ALTER TABLE guards ADD CONSTRAINT guards_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id);
ALTER TABLE guards ADD CONSTRAINT guards_pkey PRIMARY KEY (tenant_id, guard);
ALTER TABLE idempotency_keys ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (idempotency_key);
ALTER TABLE input_decisions ADD CONSTRAINT input_decisions_check CHECK ((num_nonnulls(message_id, plan_id) = 1));
ALTER TABLE input_decisions ADD CONSTRAINT input_decisions_principal_type_check CHECK ((principal_type = ANY (ARRAY['credential'::text, 'person'::text, 'callback'::text, 'page'::text, 'slack'::text, 'temporal'::text, 'system'::text])));
ALTER TABLE input_decisions ADD CONSTRAINT input_decisions_pkey PRIMARY KEY (tenant_id, approval_id);
ALTER TABLE input_decisions ADD CONSTRAINT input_decisions_tenant_id_request_id_voter_digest_key UNIQUE (tenant_id, request_id, voter, digest);
ALTER TABLE input_requests ADD CONSTRAINT input_requests_check CHECK (((num_nonnulls(message_id, plan_id) = 1) AND ((plan_id IS NOT NULL) = (stage = 'proposal'::text))));
ALTER TABLE input_requests ADD CONSTRAINT input_requests_kind_check CHECK ((kind = ANY (ARRAY['approval'::text, 'form'::text, 'confirmation'::text])));
ALTER TABLE input_requests ADD CONSTRAINT input_requests_on_reject_check CHECK ((on_reject = ANY (ARRAY['fail'::text, 'tell_agent'::text])));
ALTER TABLE input_requests ADD CONSTRAINT input_requests_source_check CHECK ((source = ANY (ARRAY['policy'::text, 'guard'::text, 'agent'::text, 'plan'::text])));
ALTER TABLE input_requests ADD CONSTRAINT input_requests_stage_check CHECK ((stage = ANY (ARRAY['admission'::text, 'dispatch'::text, 'tool'::text, 'output'::text, 'plan'::text, 'agent'::text, 'proposal'::text])));
ALTER TABLE input_requests ADD CONSTRAINT input_requests_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'resolved'::text, 'expired'::text, 'withdrawn'::text])));
ALTER TABLE input_requests ADD CONSTRAINT input_requests_tenant_id_plan_id_fkey FOREIGN KEY (tenant_id, plan_id) REFERENCES plans(tenant_id, plan_id) ON DELETE CASCADE;
ALTER TABLE input_requests ADD CONSTRAINT input_requests_pkey PRIMARY KEY (tenant_id, request_id);
ALTER TABLE knowledge_bases ADD CONSTRAINT knowledge_bases_visibility_check CHECK ((visibility = ANY (ARRAY['private'::text, 'tenant'::text])));
ALTER TABLE knowledge_bases ADD CONSTRAINT knowledge_bases_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id);
ALTER TABLE knowledge_bases ADD CONSTRAINT knowledge_bases_pkey PRIMARY KEY (tenant_id, namespace);
ALTER TABLE knowledge_chunks ADD CONSTRAINT knowledge_chunks_check CHECK ((((embedding IS NULL) = (model IS NULL)) AND ((embedding IS NULL) = (dim IS NULL))));
ALTER TABLE knowledge_chunks ADD CONSTRAINT knowledge_chunks_tenant_id_namespace_source_id_fkey FOREIGN KEY (tenant_id, namespace, source_id) REFERENCES knowledge_sources(tenant_id, namespace, source_id) ON DELETE CASCADE;
ALTER TABLE knowledge_chunks ADD CONSTRAINT knowledge_chunks_pkey PRIMARY KEY (tenant_id, namespace, source_id, ordinal);
ALTER TABLE knowledge_documents ADD CONSTRAINT knowledge_documents_check CHECK (((state = 'pending'::text) OR (content IS NULL)));
ALTER TABLE knowledge_documents ADD CONSTRAINT knowledge_documents_result_check CHECK ((result = ANY (ARRAY['created'::text, 'updated'::text, 'unchanged'::text, 'failed'::text])));
ALTER TABLE knowledge_documents ADD CONSTRAINT knowledge_documents_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'done'::text, 'failed'::text])));
ALTER TABLE knowledge_documents ADD CONSTRAINT knowledge_documents_tenant_id_job_id_fkey FOREIGN KEY (tenant_id, job_id) REFERENCES knowledge_jobs(tenant_id, job_id) ON DELETE CASCADE;
ALTER TABLE knowledge_documents ADD CONSTRAINT knowledge_documents_pkey PRIMARY KEY (tenant_id, job_id, ordinal);
ALTER TABLE knowledge_jobs ADD CONSTRAINT knowledge_jobs_operation_check CHECK ((operation = ANY (ARRAY['create'::text, 'ingest'::text, 'refresh'::text])));
ALTER TABLE knowledge_jobs ADD CONSTRAINT knowledge_jobs_phase_check CHECK ((phase = ANY (ARRAY['queued'::text, 'working'::text, 'done'::text])));
ALTER TABLE knowledge_jobs ADD CONSTRAINT knowledge_jobs_status_check CHECK ((status = ANY (ARRAY['processing'::text, 'completed'::text, 'failed'::text])));
ALTER TABLE knowledge_jobs ADD CONSTRAINT knowledge_jobs_tenant_id_namespace_fkey FOREIGN KEY (tenant_id, namespace) REFERENCES knowledge_bases(tenant_id, namespace) ON DELETE CASCADE;
ALTER TABLE knowledge_jobs ADD CONSTRAINT knowledge_jobs_pkey PRIMARY KEY (tenant_id, job_id);
ALTER TABLE knowledge_jobs ADD CONSTRAINT knowledge_jobs_tenant_id_namespace_idempotency_key_key UNIQUE (tenant_id, namespace, idempotency_key);
ALTER TABLE knowledge_sources ADD CONSTRAINT knowledge_sources_tenant_id_namespace_fkey FOREIGN KEY (tenant_id, namespace) REFERENCES knowledge_bases(tenant_id, namespace);
ALTER TABLE knowledge_sources ADD CONSTRAINT knowledge_sources_pkey PRIMARY KEY (tenant_id, namespace, source_id);
ALTER TABLE late_changes ADD CONSTRAINT late_changes_pkey PRIMARY KEY (tenant_id, message_id);
ALTER TABLE mesh_nodes ADD CONSTRAINT mesh_nodes_pkey PRIMARY KEY (mesh_id);
ALTER TABLE messages ADD CONSTRAINT messages_pkey PRIMARY KEY (tenant_id, message_id);
ALTER TABLE model_prices ADD CONSTRAINT model_prices_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id);
ALTER TABLE model_prices ADD CONSTRAINT model_prices_pkey PRIMARY KEY (tenant_id, model);
ALTER TABLE plan_messages ADD CONSTRAINT plan_messages_tenant_id_plan_id_fkey FOREIGN KEY (tenant_id, plan_id) REFERENCES plans(tenant_id, plan_id) ON DELETE CASCADE;
ALTER TABLE plan_messages ADD CONSTRAINT plan_messages_pkey PRIMARY KEY (tenant_id, message_id);
ALTER TABLE plan_steps ADD CONSTRAINT plan_steps_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'running'::text, 'input-required'::text, 'completed'::text, 'failed'::text, 'skipped'::text])));
ALTER TABLE plan_steps ADD CONSTRAINT plan_steps_tenant_id_plan_id_fkey FOREIGN KEY (tenant_id, plan_id) REFERENCES plans(tenant_id, plan_id) ON DELETE CASCADE;
ALTER TABLE plan_steps ADD CONSTRAINT plan_steps_pkey PRIMARY KEY (tenant_id, plan_id, place);
ALTER TABLE plan_wakes ADD CONSTRAINT plan_wakes_tenant_id_plan_id_fkey FOREIGN KEY (tenant_id, plan_id) REFERENCES plans(tenant_id, plan_id) ON DELETE CASCADE;
ALTER TABLE plan_wakes ADD CONSTRAINT plan_wakes_pkey PRIMARY KEY (wake_id);
ALTER TABLE plans ADD CONSTRAINT plans_state_check CHECK ((state = ANY (ARRAY['proposed'::text, 'running'::text, 'completed'::text, 'failed'::text, 'canceled'::text, 'rejected'::text])));
ALTER TABLE plans ADD CONSTRAINT plans_pkey PRIMARY KEY (tenant_id, plan_id);
ALTER TABLE platform_facts ADD CONSTRAINT platform_facts_pkey PRIMARY KEY (name);
ALTER TABLE policies ADD CONSTRAINT max_calls_of_tools CHECK (((max_calls IS NULL) OR ((scope = 'tool'::text) AND (decision = 'allow'::text))));
ALTER TABLE policies ADD CONSTRAINT policies_decision_check CHECK ((decision = ANY (ARRAY['allow'::text, 'deny'::text, 'require_approval'::text, 'audit'::text])));
ALTER TABLE policies ADD CONSTRAINT policies_max_calls_check CHECK (((max_calls >= 1) AND (max_calls <= 1000000)));
ALTER TABLE policies ADD CONSTRAINT policies_scope_check CHECK ((scope = ANY (ARRAY['admission'::text, 'dispatch'::text, 'tool'::text, 'plan'::text, 'session'::text])));
ALTER TABLE policies ADD CONSTRAINT policies_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id);
ALTER TABLE policies ADD CONSTRAINT policies_pkey PRIMARY KEY (tenant_id, policy_id);
ALTER TABLE policy_calls ADD CONSTRAINT policy_calls_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id);
ALTER TABLE policy_calls ADD CONSTRAINT policy_calls_tenant_id_policy_id_fkey FOREIGN KEY (tenant_id, policy_id) REFERENCES policies(tenant_id, policy_id) ON DELETE CASCADE;
ALTER TABLE policy_calls ADD CONSTRAINT policy_calls_pkey PRIMARY KEY (tenant_id, policy_id);
ALTER TABLE policy_revisions ADD CONSTRAINT policy_revisions_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id);
ALTER TABLE policy_revisions ADD CONSTRAINT policy_revisions_pkey PRIMARY KEY (tenant_id);
ALTER TABLE push_changes ADD CONSTRAINT push_changes_pkey PRIMARY KEY (tenant_id, sequence);
ALTER TABLE push_configs ADD CONSTRAINT push_configs_protocol_version_check CHECK ((protocol_version = ANY (ARRAY['0.3'::text, '1.0'::text])));
ALTER TABLE push_configs ADD CONSTRAINT push_configs_pkey PRIMARY KEY (tenant_id, message_id, config_id);
ALTER TABLE queue_absences ADD CONSTRAINT queue_absences_pkey PRIMARY KEY (tenant_id, queue);
ALTER TABLE receiver_breakers ADD CONSTRAINT receiver_breakers_pkey PRIMARY KEY (tenant_id, receiver);
ALTER TABLE running_messages ADD CONSTRAINT running_messages_pkey PRIMARY KEY (tenant_id, message_id);
ALTER TABLE session_agents ADD CONSTRAINT session_agents_pkey PRIMARY KEY (tenant_id, session_id, instance_id);
ALTER TABLE session_totals ADD CONSTRAINT session_totals_pkey PRIMARY KEY (tenant_id, session_id);
ALTER TABLE sessions ADD CONSTRAINT sessions_pkey PRIMARY KEY (tenant_id, session_id);
ALTER TABLE sign_in_links ADD CONSTRAINT sign_in_links_credential_id_fkey FOREIGN KEY (credential_id) REFERENCES credentials(credential_id) ON DELETE CASCADE;
ALTER TABLE sign_in_links ADD CONSTRAINT sign_in_links_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id);
ALTER TABLE sign_in_links ADD CONSTRAINT sign_in_links_pkey PRIMARY KEY (tenant_id, link_digest);
ALTER TABLE sign_in_links ADD CONSTRAINT sign_in_links_link_digest_key UNIQUE (link_digest);
ALTER TABLE sign_ins ADD CONSTRAINT sign_ins_pkey PRIMARY KEY (sign_in_id);
ALTER TABLE signing_keys ADD CONSTRAINT signing_keys_kind_check CHECK ((kind = ANY (ARRAY['token'::text, 'receipt'::text])));
ALTER TABLE signing_keys ADD CONSTRAINT signing_keys_pkey PRIMARY KEY (kid);
ALTER TABLE tenant_ceilings ADD CONSTRAINT tenant_ceilings_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id);
ALTER TABLE tenant_ceilings ADD CONSTRAINT tenant_ceilings_pkey PRIMARY KEY (tenant_id);
ALTER TABLE tenant_limits ADD CONSTRAINT tenant_limits_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id);
ALTER TABLE tenant_limits ADD CONSTRAINT tenant_limits_pkey PRIMARY KEY (tenant_id);
ALTER TABLE tenants ADD CONSTRAINT tenants_pkey PRIMARY KEY (tenant_id);
ALTER TABLE tool_grants ADD CONSTRAINT tool_grants_pkey PRIMARY KEY (tenant_id, request_id);
ALTER TABLE tool_owners ADD CONSTRAINT tool_owners_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id);
ALTER TABLE tool_owners ADD CONSTRAINT tool_owners_pkey PRIMARY KEY (tenant_id, tool);
ALTER TABLE trace_exports ADD CONSTRAINT trace_exports_pkey PRIMARY KEY (exporter);
ALTER TABLE trace_spans ADD CONSTRAINT trace_spans_pkey PRIMARY KEY (tenant_id, message_id, span_id);
ALTER TABLE usage_batches ADD CONSTRAINT usage_batches_pkey PRIMARY KEY (source);
ALTER TABLE usage_by_key ADD CONSTRAINT usage_by_key_pkey PRIMARY KEY (tenant_id, kind, key, hour);
ALTER TABLE usage_days ADD CONSTRAINT usage_days_pkey PRIMARY KEY (tenant_id, day);
ALTER TABLE usage_hours ADD CONSTRAINT usage_hours_pkey PRIMARY KEY (tenant_id, hour, agent_type, instance_id, model);
ALTER TABLE usage_sessions ADD CONSTRAINT usage_sessions_pkey PRIMARY KEY (tenant_id, hour, session_uuid);
ALTER TABLE user_token_epochs ADD CONSTRAINT user_token_epochs_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id);
ALTER TABLE user_token_epochs ADD CONSTRAINT user_token_epochs_pkey PRIMARY KEY (tenant_id, user_id);

-- Indexes
CREATE INDEX agent_skills_sampled ON public.agent_skills USING btree (skill_id, tenant_id, agent_type, has_room, shuffle) WHERE (skill_id IS NOT NULL);
CREATE INDEX agents_by_mesh ON public.agents USING btree (mesh_id) WHERE (mesh_id IS NOT NULL);
CREATE INDEX agents_by_sign ON public.agents USING btree (last_seen) WHERE (deregistered_at IS NULL);
CREATE INDEX agents_full ON public.agents USING btree (tenant_id, full_at) WHERE (full_at IS NOT NULL);
CREATE INDEX agents_of_type ON public.agents USING btree (agent_type, tenant_id) WHERE (agent_type IS NOT NULL);
CREATE INDEX agents_registered ON public.agents USING btree (tenant_id, agent_type, modes_digest) WHERE (COALESCE(deregistered_at, 'infinity'::timestamp with time zone) = 'infinity'::timestamp with time zone);
CREATE INDEX agents_sampled ON public.agents USING btree (tenant_id, agent_type, has_room, shuffle) WHERE (has_room IS NOT NULL);
CREATE INDEX agents_saturated ON public.agents USING btree (tenant_id) WHERE (saturated_until IS NOT NULL);
CREATE INDEX alert_channels_by_rule ON public.alert_channels USING btree (tenant_id, rule_id, place);
CREATE INDEX audit_entries_by_message ON public.audit_entries USING btree (tenant_id, message_id) WHERE (message_id IS NOT NULL);
CREATE INDEX audit_entries_by_plan ON public.audit_entries USING btree (tenant_id, plan_id) WHERE (plan_id IS NOT NULL);
CREATE INDEX audit_entries_by_principal ON public.audit_entries USING btree (tenant_id, principal_id, "position");
CREATE INDEX audit_entries_by_target ON public.audit_entries USING btree (tenant_id, target_id, "position");
CREATE UNIQUE INDEX audit_entries_in_order ON public.audit_entries USING btree (tenant_id, "position");
CREATE INDEX audit_entries_old ON public.audit_entries USING btree (at);
CREATE INDEX callback_tokens_by_message ON public.callback_tokens USING btree (tenant_id, message_id);
CREATE INDEX callback_tokens_expiry ON public.callback_tokens USING btree (expires_at);
CREATE INDEX callback_tokens_of_plan ON public.callback_tokens USING btree (tenant_id, plan_id) WHERE (plan_id IS NOT NULL);
CREATE INDEX console_sessions_by_sign_in ON public.console_sessions USING btree (sign_in_id) WHERE (sign_in_id IS NOT NULL);
CREATE INDEX credentials_by_tenant ON public.credentials USING btree (tenant_id, created_at DESC);
CREATE INDEX deliveries_by_config ON public.deliveries USING btree (tenant_id, message_id, config_id, sequence) WHERE (config_id IS NOT NULL);
CREATE INDEX deliveries_by_rule ON public.deliveries USING btree (tenant_id, rule_id, delivery_id) WHERE (rule_id IS NOT NULL);
CREATE INDEX deliveries_ended ON public.deliveries USING btree (ended_at) WHERE (ended_at IS NOT NULL);
CREATE INDEX deliveries_failed ON public.deliveries USING btree (tenant_id, delivery_id) WHERE (status = 'failed'::text);
CREATE INDEX deliveries_pending ON public.deliveries USING btree (tenant_id, receiver) WHERE (status = 'pending'::text);
CREATE INDEX delivery_queue_old ON public.delivery_queue USING btree (queued_at) WHERE (started_at IS NULL);
CREATE INDEX delivery_queue_started ON public.delivery_queue USING btree (check_at) WHERE (started_at IS NOT NULL);
CREATE INDEX delivery_queue_waiting ON public.delivery_queue USING btree (is_approval, tenant_id, receiver, queued_at, queue_id) WHERE (started_at IS NULL);
CREATE INDEX dispatches_newest ON ONLY public.dispatches USING btree (instance_id, tenant_id, created_at) WHERE (instance_id IS NOT NULL);
CREATE INDEX erasures_due ON public.erasures USING btree (next_at) WHERE (finished_at IS NULL);
CREATE UNIQUE INDEX erasures_of_tenant ON public.erasures USING btree (tenant_id) WHERE (kind = 'tenant'::text);
CREATE INDEX event_groups_by_session ON ONLY public.event_groups USING btree (session_uuid, group_minute(group_id)) WITH (fillfactor='60');
CREATE INDEX event_groups_by_transaction ON ONLY public.event_groups USING btree (transaction_id);
CREATE INDEX event_positions_by_transaction ON ONLY public.event_positions USING btree (transaction_id);
CREATE INDEX event_positions_in_order ON ONLY public.event_positions USING btree ("position");
CREATE INDEX event_positions_of_tenant ON ONLY public.event_positions USING btree (tenant_id, "position");
CREATE INDEX idempotency_keys_expiry ON public.idempotency_keys USING btree (expires_at);
CREATE INDEX input_decisions_by_message ON public.input_decisions USING btree (tenant_id, message_id, approval_id) WHERE (message_id IS NOT NULL);
CREATE INDEX input_decisions_by_plan ON public.input_decisions USING btree (tenant_id, plan_id, approval_id) WHERE (plan_id IS NOT NULL);
CREATE INDEX input_decisions_to_empty ON public.input_decisions USING btree (tenant_id, approval_id) WHERE (num_nonnulls(comment, ip, title, arguments) > 0);
CREATE INDEX input_requests_by_digest ON public.input_requests USING btree (tenant_id, digest, requested_at);
CREATE INDEX input_requests_by_expiry ON public.input_requests USING btree (tenant_id, expires_at, request_id);
CREATE INDEX input_requests_by_message ON public.input_requests USING btree (tenant_id, message_id, requested_at DESC);
CREATE INDEX input_requests_due ON public.input_requests USING btree (LEAST(expires_at, remind_at)) WHERE (state = 'pending'::text);
CREATE INDEX input_requests_in_order ON public.input_requests USING btree (tenant_id, requested_at, request_id);
CREATE UNIQUE INDEX input_requests_of_plan ON public.input_requests USING btree (tenant_id, plan_id) WHERE (plan_id IS NOT NULL);
CREATE INDEX input_requests_of_state ON public.input_requests USING btree (tenant_id, state, requested_at, request_id);
CREATE INDEX input_requests_of_state_by_expiry ON public.input_requests USING btree (tenant_id, state, expires_at, request_id);
CREATE UNIQUE INDEX input_requests_one_open ON public.input_requests USING btree (tenant_id, message_id) WHERE (state = 'pending'::text);
CREATE INDEX input_requests_pending ON public.input_requests USING btree (tenant_id, requested_at) WHERE (state = 'pending'::text);
CREATE INDEX input_requests_to_wake ON public.input_requests USING btree (wake_requested_at) WHERE (wake_requested_at IS NOT NULL);
CREATE INDEX knowledge_bases_deleted ON public.knowledge_bases USING btree (deleted_at) WHERE (deleted_at IS NOT NULL);
CREATE INDEX knowledge_bases_newest ON public.knowledge_bases USING btree (tenant_id, created_at, namespace) WHERE (deleted_at IS NULL);
CREATE UNIQUE INDEX knowledge_chunks_by_id ON public.knowledge_chunks USING btree (tenant_id, chunk_id);
CREATE INDEX knowledge_documents_of_source ON public.knowledge_documents USING btree (tenant_id, namespace, source_id) WHERE (state = 'pending'::text);
CREATE INDEX knowledge_jobs_ended ON public.knowledge_jobs USING btree (ended_at) WHERE (ended_at IS NOT NULL);
CREATE INDEX knowledge_jobs_processing ON public.knowledge_jobs USING btree (tenant_id) WHERE (status = 'processing'::text);
CREATE INDEX knowledge_jobs_waiting ON public.knowledge_jobs USING btree (wake_at) WHERE (status = 'processing'::text);
CREATE INDEX knowledge_sources_changed ON public.knowledge_sources USING btree (tenant_id, namespace, revision);
CREATE INDEX knowledge_sources_newest ON public.knowledge_sources USING btree (tenant_id, namespace, created_at, source_id);
CREATE INDEX late_changes_newest ON public.late_changes USING btree (tenant_id, changed_at, message_id);
CREATE INDEX late_changes_of_session ON public.late_changes USING btree (tenant_id, session_id, changed_at);
CREATE INDEX messages_by_error ON ONLY public.messages USING btree (tenant_id, error_code, message_id) WHERE (error_code IS NOT NULL);
CREATE INDEX messages_by_session ON ONLY public.messages USING btree (session_uuid, message_id) WHERE (session_uuid IS NOT NULL);
CREATE INDEX messages_by_trace ON ONLY public.messages USING btree (trace_id, tenant_id, message_id) WHERE (parent_span_id IS NOT NULL);
CREATE INDEX messages_by_user ON ONLY public.messages USING btree (tenant_id, user_id, message_id) WHERE (user_id IS NOT NULL);
CREATE INDEX messages_unsuccessful ON ONLY public.messages USING btree (tenant_id, unsuccessful_state, message_id) WHERE (unsuccessful_state IS NOT NULL);
CREATE INDEX plan_messages_of_plan ON public.plan_messages USING btree (tenant_id, plan_id);
CREATE INDEX plan_wakes_due ON public.plan_wakes USING btree (due_at);
CREATE INDEX plan_wakes_of_plan ON public.plan_wakes USING btree (tenant_id, plan_id);
CREATE INDEX plans_by_trace ON public.plans USING btree (trace_id, tenant_id);
CREATE INDEX plans_of_session ON public.plans USING btree (tenant_id, session_id, plan_id);
CREATE INDEX plans_open ON public.plans USING btree (tenant_id, session_id) WHERE (state = ANY (ARRAY['proposed'::text, 'running'::text]));
CREATE UNIQUE INDEX plans_proposed ON public.plans USING btree (tenant_id, proposal_key) WHERE (proposal_key IS NOT NULL);
CREATE INDEX plans_to_check ON public.plans USING btree (check_at) WHERE (check_at IS NOT NULL);
CREATE INDEX policy_revisions_by_change ON public.policy_revisions USING btree (changed_by);
CREATE INDEX receiver_breakers_old ON public.receiver_breakers USING btree (changed_at);
CREATE INDEX receiver_breakers_open ON public.receiver_breakers USING btree (tenant_id) WHERE (open_until IS NOT NULL);
CREATE INDEX running_in_flight ON public.running_messages USING btree (tenant_id, state, session_id) WHERE (state = ANY (ARRAY['submitted'::text, 'working'::text, 'input-required'::text]));
CREATE INDEX running_queued ON public.running_messages USING btree (tenant_id, queue, ((resolution IS NULL)), created_at) WHERE (queue IS NOT NULL);
CREATE INDEX running_slots ON public.running_messages USING btree (tenant_id, instance_id, session_id, message_id) WHERE holds_slot;
CREATE INDEX running_to_wake ON public.running_messages USING btree (wake_requested_at) WHERE (wake_requested_at IS NOT NULL);
CREATE INDEX running_waits ON public.running_messages USING btree (wait_ends_at) WHERE (wait_ends_at IS NOT NULL);
CREATE INDEX sessions_by_user ON public.sessions USING btree (tenant_id, user_id, session_id) WHERE (user_id IS NOT NULL);
CREATE INDEX sessions_slots ON public.sessions USING btree (tenant_id, instance_id, session_id) WHERE ((status = 'active'::text) AND reserves);
CREATE INDEX sessions_supervised ON public.sessions USING btree (supervised_at) WHERE ((supervised_at IS NOT NULL) AND (status = 'active'::text));
CREATE INDEX sessions_to_check ON public.sessions USING btree (idle_check_at) WHERE (idle_check_at IS NOT NULL);
CREATE INDEX sessions_to_wake ON public.sessions USING btree (wake_requested_at) WHERE (wake_requested_at IS NOT NULL);
CREATE INDEX sign_ins_by_end ON public.sign_ins USING btree (expires_at);
CREATE INDEX sign_ins_by_person ON public.sign_ins USING btree (issuer, subject);
CREATE INDEX tool_grants_by_message ON public.tool_grants USING btree (tenant_id, message_id);
CREATE INDEX tool_grants_decided ON public.tool_grants USING btree (node_id, decided_at) WHERE (decided_at IS NOT NULL);
CREATE INDEX late_spans ON public.trace_spans USING btree (late_at) WHERE (late_at IS NOT NULL);
CREATE INDEX usage_by_key_hours ON public.usage_by_key USING btree (tenant_id, hour);

-- Triggers
CREATE TRIGGER queue_of_agent AFTER UPDATE ON public.agents FOR EACH ROW WHEN (((old.has_room IS NOT NULL) AND (new.has_room IS NULL))) EXECUTE FUNCTION requeue_messages();
CREATE TRIGGER room_of_agent AFTER UPDATE ON public.agents FOR EACH ROW WHEN ((old.has_room IS DISTINCT FROM new.has_room)) EXECUTE FUNCTION note_room();
CREATE TRIGGER skills_of_agent AFTER UPDATE OF skills, agent_card, agent_type, deregistered_at ON public.agents FOR EACH ROW WHEN (((old.skills <> new.skills) OR (old.agent_card <> new.agent_card) OR (old.agent_type <> new.agent_type) OR ((old.deregistered_at IS NULL) <> (new.deregistered_at IS NULL)))) EXECUTE FUNCTION note_skills();
CREATE TRIGGER skills_of_new_agent AFTER INSERT ON public.agents FOR EACH ROW EXECUTE FUNCTION note_skills();
CREATE CONSTRAINT TRIGGER position_of_audit_entry AFTER INSERT ON public.audit_entries DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION place_audit_entry();
CREATE TRIGGER audit_of_decision AFTER INSERT ON public.input_decisions FOR EACH ROW EXECUTE FUNCTION audit_decision();
CREATE TRIGGER tool_decisions AFTER UPDATE OF state ON public.input_requests FOR EACH ROW WHEN (((old.state = 'pending'::text) AND (new.state <> 'pending'::text) AND (new.stage = 'tool'::text))) EXECUTE FUNCTION note_tool_decision();
CREATE TRIGGER state_change_of_message AFTER UPDATE OF state ON public.messages FOR EACH ROW WHEN (new.notifies) EXECUTE FUNCTION note_state_change();
CREATE TRIGGER capacity_of_session AFTER UPDATE OF suspended ON public.sessions FOR EACH ROW WHEN (((new.suspended <> old.suspended) AND new.reserves AND (new.instance_id = old.instance_id) AND (new.status = 'active'::text))) EXECUTE FUNCTION note_capacity_change();

-- Row-level security
ALTER TABLE agent_outcomes ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE agent_reports ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE agent_skills ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE agent_types ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE agents ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE alert_channels ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE alert_revisions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE alert_rules ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE alert_states ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE audit_entries ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE audit_heads ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE callback_tokens ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE console_sessions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE counted_usage ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE credentials ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE decision_outcomes ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE deliveries ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE delivery_queue ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE delivery_turns ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE dispatch_totals ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE dispatch_transfers ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE dispatches ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE erasures ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE event_batches DISABLE ROW LEVEL SECURITY;
ALTER TABLE event_cursors DISABLE ROW LEVEL SECURITY;
ALTER TABLE event_groups ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE event_positions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE guards ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE idempotency_keys ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE input_decisions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE input_requests ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE knowledge_bases ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE knowledge_chunks ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE knowledge_documents ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE knowledge_jobs ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE knowledge_sources ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE late_changes ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE mesh_nodes DISABLE ROW LEVEL SECURITY;
ALTER TABLE messages ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE model_prices ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE plan_messages ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE plan_steps ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE plan_wakes ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE plans ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE platform_facts DISABLE ROW LEVEL SECURITY;
ALTER TABLE policies ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE policy_calls ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE policy_revisions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE push_changes ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE push_configs ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE queue_absences ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE receiver_breakers ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE running_messages ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE session_agents ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE session_totals ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE sessions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE sign_in_links ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE sign_ins DISABLE ROW LEVEL SECURITY;
ALTER TABLE signing_keys DISABLE ROW LEVEL SECURITY;
ALTER TABLE tenant_ceilings ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE tenant_limits ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE tenants ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE tool_grants ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE tool_owners ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE trace_exports DISABLE ROW LEVEL SECURITY;
ALTER TABLE trace_spans ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE usage_batches DISABLE ROW LEVEL SECURITY;
ALTER TABLE usage_by_key ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE usage_days ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE usage_hours ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE usage_sessions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE user_token_epochs ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

-- Policies
CREATE POLICY one_tenant ON agent_outcomes AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON agent_outcomes AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON agent_reports AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON agent_reports AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON agent_skills AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON agent_skills AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON agent_types AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON agent_types AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON agents AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON agents AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON alert_channels AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON alert_channels AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON alert_revisions AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON alert_revisions AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON alert_rules AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON alert_rules AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON alert_states AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON alert_states AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON audit_entries AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON audit_entries AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON audit_heads AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON audit_heads AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON callback_tokens AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON callback_tokens AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON console_sessions AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON console_sessions AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON counted_usage AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON counted_usage AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON credentials AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON credentials AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON decision_outcomes AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON decision_outcomes AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON deliveries AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON deliveries AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON delivery_queue AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON delivery_queue AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON delivery_turns AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON delivery_turns AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON dispatch_totals AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON dispatch_totals AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON dispatch_transfers AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON dispatch_transfers AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON dispatches AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON dispatches AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY whole_platform ON erasures AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON event_groups AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant_uuid()));
CREATE POLICY whole_platform ON event_groups AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON event_positions AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant_uuid()));
CREATE POLICY whole_platform ON event_positions AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON guards AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON guards AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON idempotency_keys AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant_uuid()));
CREATE POLICY whole_platform ON idempotency_keys AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON input_decisions AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON input_decisions AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON input_requests AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON input_requests AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON knowledge_bases AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON knowledge_bases AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON knowledge_chunks AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON knowledge_chunks AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON knowledge_documents AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON knowledge_documents AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON knowledge_jobs AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON knowledge_jobs AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON knowledge_sources AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON knowledge_sources AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON late_changes AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON late_changes AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON messages AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON messages AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON model_prices AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON model_prices AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON plan_messages AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON plan_messages AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON plan_steps AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON plan_steps AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON plan_wakes AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON plan_wakes AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON plans AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON plans AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON policies AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON policies AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON policy_calls AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON policy_calls AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON policy_revisions AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON policy_revisions AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON push_changes AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON push_changes AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON push_configs AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON push_configs AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON queue_absences AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON queue_absences AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON receiver_breakers AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON receiver_breakers AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON running_messages AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON running_messages AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON session_agents AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON session_agents AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON session_totals AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON session_totals AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON sessions AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON sessions AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON sign_in_links AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON sign_in_links AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON tenant_ceilings AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON tenant_ceilings AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON tenant_limits AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON tenant_limits AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON tenants AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON tenants AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON tool_grants AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON tool_grants AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON tool_owners AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON tool_owners AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON trace_spans AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON trace_spans AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON usage_by_key AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON usage_by_key AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON usage_days AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON usage_days AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON usage_hours AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON usage_hours AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON usage_sessions AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant_uuid()));
CREATE POLICY whole_platform ON usage_sessions AS PERMISSIVE FOR ALL TO fleet_system USING (true);
CREATE POLICY one_tenant ON user_token_epochs AS PERMISSIVE FOR ALL TO fleet_app USING ((tenant_id = current_tenant()));
CREATE POLICY whole_platform ON user_token_epochs AS PERMISSIVE FOR ALL TO fleet_system USING (true);

-- Grants
GRANT DELETE, INSERT, SELECT, UPDATE ON agent_outcomes TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON agent_outcomes TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON agent_reports TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON agent_reports TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON agent_skills TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON agent_skills TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON agent_types TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON agent_types TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON agents TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON agents TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON alert_channels TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON alert_channels TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON alert_revisions TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON alert_revisions TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON alert_rules TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON alert_rules TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON alert_states TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON alert_states TO fleet_system;
GRANT INSERT, SELECT ON audit_entries TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON audit_entries TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON audit_heads TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON audit_heads TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON callback_tokens TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON callback_tokens TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON console_sessions TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON console_sessions TO fleet_system;
GRANT SELECT ON counted_usage TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON counted_usage TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON credentials TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON credentials TO fleet_system;
GRANT INSERT, SELECT ON decision_outcomes TO fleet_app;
GRANT INSERT, SELECT ON decision_outcomes TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON deliveries TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON deliveries TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON delivery_queue TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON delivery_queue TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON delivery_turns TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON delivery_turns TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON dispatch_totals TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON dispatch_totals TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON dispatch_transfers TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON dispatch_transfers TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON dispatches TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON dispatches TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON erasures TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON event_batches TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON event_cursors TO fleet_system;
GRANT INSERT, SELECT ON event_groups TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON event_groups TO fleet_system;
GRANT SELECT ON event_positions TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON event_positions TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON guards TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON guards TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON idempotency_keys TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON idempotency_keys TO fleet_system;
GRANT INSERT, SELECT ON input_decisions TO fleet_app;
GRANT INSERT, SELECT ON input_decisions TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON input_requests TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON input_requests TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON knowledge_bases TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON knowledge_bases TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON knowledge_chunks TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON knowledge_chunks TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON knowledge_documents TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON knowledge_documents TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON knowledge_jobs TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON knowledge_jobs TO fleet_system;
GRANT USAGE ON knowledge_order TO fleet_app;
GRANT USAGE ON knowledge_order TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON knowledge_sources TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON knowledge_sources TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON late_changes TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON late_changes TO fleet_system;
GRANT SELECT ON mesh_nodes TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON mesh_nodes TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON messages TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON messages TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON model_prices TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON model_prices TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON plan_messages TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON plan_messages TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON plan_steps TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON plan_steps TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON plan_wakes TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON plan_wakes TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON plans TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON plans TO fleet_system;
GRANT SELECT ON platform_facts TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON platform_facts TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON policies TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON policies TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON policy_calls TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON policy_calls TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON policy_revisions TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON policy_revisions TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON push_changes TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON push_changes TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON push_configs TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON push_configs TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON queue_absences TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON queue_absences TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON receiver_breakers TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON receiver_breakers TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON running_messages TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON running_messages TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON session_agents TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON session_agents TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON session_totals TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON session_totals TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON sessions TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON sessions TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON sign_in_links TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON sign_in_links TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON sign_ins TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON signing_keys TO fleet_system;
GRANT SELECT ON tenant_ceilings TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON tenant_ceilings TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON tenant_limits TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON tenant_limits TO fleet_system;
GRANT SELECT ON tenants TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON tenants TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON tool_grants TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON tool_grants TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON tool_owners TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON tool_owners TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON trace_exports TO fleet_system;
GRANT SELECT ON trace_spans TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON trace_spans TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON usage_batches TO fleet_system;
GRANT SELECT ON usage_by_key TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON usage_by_key TO fleet_system;
GRANT SELECT ON usage_days TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON usage_days TO fleet_system;
GRANT SELECT ON usage_hours TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON usage_hours TO fleet_system;
GRANT SELECT ON usage_sessions TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON usage_sessions TO fleet_system;
GRANT DELETE, INSERT, SELECT, UPDATE ON user_token_epochs TO fleet_app;
GRANT DELETE, INSERT, SELECT, UPDATE ON user_token_epochs TO fleet_system;
