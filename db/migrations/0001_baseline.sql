-- The record: tenants, credentials, agents, sessions, messages, dispatches, questions to humans, events. Columns that belong together share
-- a line; db/schema.sql lists them one by one.
--
-- Row-level security: fleet_app sees the tenant that the transaction names, fleet_system sees every tenant. No role sees a partition.
-- Every statement parses the CHECKs of a table that it writes, and foreign keys look up and lock rows that the same statement has just
-- written, so the tables that every message writes have neither; the tests look for what they would have refused.
-- Message, dispatch and event ids compare bytewise (COLLATE "C"), as the bounds of their partitions do.

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['fleet_app', 'fleet_system'] LOOP
    BEGIN
      EXECUTE format('CREATE ROLE %I NOLOGIN NOINHERIT', name);
    EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
    END;
    IF NOT pg_has_role(current_user, name, 'SET') THEN EXECUTE format('GRANT %I TO %I', name, current_user); END IF;
  END LOOP;
END $$;

-- The tenant of the running transaction; NULL outside one (after a commit the setting is '', not NULL).
CREATE FUNCTION current_tenant() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
  AS $$ SELECT nullif(current_setting('app.tenant_id', true), '') $$;

CREATE TABLE platform_facts (name text PRIMARY KEY, value text NOT NULL);

CREATE TABLE tenants (
  tenant_id text PRIMARY KEY, name text NOT NULL,
  default_agent_type text, -- of messages that name no target
  created_at timestamptz NOT NULL DEFAULT now(), deleted_at timestamptz
);

CREATE TABLE signing_keys (
  kid text PRIMARY KEY,
  public_jwk jsonb NOT NULL, private_jwk_encrypted bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(), retired_at timestamptz
);

CREATE TABLE credentials (
  tenant_id text NOT NULL REFERENCES tenants, credential_id text PRIMARY KEY,
  name text NOT NULL,
  scopes text[] NOT NULL, agent_types text[] NOT NULL DEFAULT '{}',
  secret_hash bytea NOT NULL,
  previous_secret_hash bytea, previous_expires_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(), expires_at timestamptz, revoked_at timestamptz
);
CREATE INDEX credentials_by_tenant ON credentials (tenant_id, created_at DESC);

-- One row per running process with the mesh role. A node that stops renewing is dead.
CREATE TABLE mesh_nodes (
  mesh_id text PRIMARY KEY,
  started_at timestamptz NOT NULL DEFAULT now(), renewed_at timestamptz NOT NULL DEFAULT now(),
  draining boolean NOT NULL DEFAULT false -- it is stopping, and takes no agents
);

-- Which agent types may join a tenant's fleet. A type's own row decides. Without one it may join unless other types are allowed.
CREATE TABLE agent_types (
  tenant_id text NOT NULL REFERENCES tenants, agent_type text NOT NULL,
  allowed boolean NOT NULL,
  decided_by text NOT NULL, decided_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, agent_type)
);

CREATE TABLE agents (
  tenant_id text NOT NULL REFERENCES tenants, instance_id text NOT NULL,
  agent_type text NOT NULL,
  deployment_mode text NOT NULL CHECK (deployment_mode IN ('hosted', 'connected')),
  public_url text,
  -- 'busy' is what the agent reported last. An agent that is full by the count is only shown as busy.
  status text NOT NULL CHECK (status IN ('available', 'busy', 'draining', 'unhealthy', 'offline', 'unknown')),
  mesh_id text, connection_epoch bigint NOT NULL DEFAULT 0, connected_at timestamptz,
  max_concurrent_sessions integer NOT NULL,
  -- Until then routing skips it: its node, or for a hosted agent every living node, has no room for further dispatches to it. The node
  -- renews the time, and clears it when there is room again; a node that dies lets it pass.
  saturated_until timestamptz,
  saturated_on jsonb NOT NULL DEFAULT '{}', -- of a hosted agent: the nodes without room, each with the time until then
  consecutive_failures integer NOT NULL DEFAULT 0, last_seen timestamptz,
  registered_at timestamptz NOT NULL DEFAULT now(), deregistered_at timestamptz,
  -- 'explicit': it stays away until it is started again. 'inactivity': it may register again by itself.
  deregistration_cause text CHECK (deregistration_cause IN ('explicit', 'inactivity')),
  agent_version text,
  provider_organization text, provider_url text,
  agent_card jsonb NOT NULL DEFAULT '{}',
  skills jsonb NOT NULL DEFAULT '[]', tools jsonb NOT NULL DEFAULT '[]',
  context jsonb NOT NULL DEFAULT '{}',
  -- The credential that registered it may not answer its questions.
  credential_id text,
  -- Its place in an order by chance, from which routing takes samples.
  shuffle double precision NOT NULL DEFAULT random(),
  PRIMARY KEY (tenant_id, instance_id)
);
-- Two indexes by type: routing plans are made while the table is small and kept. With this one there is always an index whose rows are
-- those of one type, and with the next one, whose predicate the functions repeat word for word, deregistered agents are never read.
CREATE INDEX agents_routable ON agents (tenant_id, agent_type);
CREATE INDEX agents_registered ON agents (tenant_id, agent_type) WHERE coalesce(deregistered_at, 'infinity') = 'infinity';
CREATE INDEX agents_shuffled ON agents (tenant_id, agent_type, shuffle)
  WHERE coalesce(deregistered_at, 'infinity') = 'infinity' AND status IN ('available', 'unknown', 'busy');
CREATE INDEX agents_by_mesh ON agents (mesh_id) WHERE mesh_id IS NOT NULL;
CREATE INDEX agents_by_sign ON agents (last_seen) WHERE deregistered_at IS NULL;
CREATE INDEX agents_by_instance ON agents (instance_id);

-- Sessions that an agent last reported where they were more than the platform counts. A table of its own: every accept transaction reads
-- it, by the only index there is.
CREATE TABLE agent_reports (
  tenant_id text NOT NULL REFERENCES tenants, instance_id text NOT NULL,
  sessions integer NOT NULL,
  PRIMARY KEY (tenant_id, instance_id)
);

-- Totals of an instance's dispatches that began before `until`, all of which have ended. Reading the totals brings them forward, so they
-- cost messages nothing.
CREATE TABLE dispatch_totals (
  tenant_id text NOT NULL, instance_id text NOT NULL,
  until timestamptz NOT NULL DEFAULT '-infinity',
  succeeded bigint NOT NULL DEFAULT 0, failed bigint NOT NULL DEFAULT 0,
  last_error text, last_failed_at timestamptz NOT NULL DEFAULT '-infinity',
  PRIMARY KEY (tenant_id, instance_id)
);

CREATE TABLE sessions (
  tenant_id text NOT NULL, session_id text NOT NULL,
  user_id text,
  -- From /sessions/init: counts on its instance until it ends, except while suspended. Other sessions count while a message runs.
  explicit boolean NOT NULL,
  agent_type text, instance_id text,
  -- 'active', 'completed' or 'expired'. 'paused' is derived from messages that wait for a human and never stored.
  status text NOT NULL,
  -- Of a session from /sessions/init, from a question to a human until its next dispatch, which claims room again.
  suspended boolean NOT NULL DEFAULT false,
  metadata jsonb NOT NULL DEFAULT '{}',
  idle_timeout_seconds integer NOT NULL,
  created_by text NOT NULL,
  -- The agent type that named this context; it sees the session from then on.
  sender_agent_type text,
  created_at timestamptz NOT NULL DEFAULT now(),
  ended_at timestamptz, ended_reason text,
  -- Of a session from /sessions/init: set when its workflow must look at the row again. The workflow clears it.
  wake_requested_at timestamptz,
  supervised_at timestamptz,
  -- When sessions/session-expiry.ts looks at it. Of a session that has no workflow: when it may have idled out. Of any that has ended: when
  -- the messages that were in flight are to have been canceled; then it is NULL.
  idle_check_at timestamptz,
  PRIMARY KEY (tenant_id, session_id)
);
CREATE INDEX sessions_slots ON sessions (tenant_id, instance_id, session_id) WHERE status = 'active' AND explicit;
CREATE INDEX sessions_to_wake ON sessions (wake_requested_at) WHERE wake_requested_at IS NOT NULL;
CREATE INDEX sessions_to_check ON sessions (idle_check_at) WHERE idle_check_at IS NOT NULL;
CREATE INDEX sessions_supervised ON sessions (supervised_at) WHERE supervised_at IS NOT NULL AND status = 'active';

-- Without the first agent of a session that a message opened: that one is in the session's row alone until another joins (session_members).
CREATE TABLE session_agents (
  tenant_id text NOT NULL, session_id text NOT NULL,
  agent_type text NOT NULL, instance_id text NOT NULL,
  joined_at timestamptz NOT NULL DEFAULT now(), join_reason text NOT NULL,
  PRIMARY KEY (tenant_id, session_id, instance_id)
);

-- One row per messageId that a credential has sent in a context, until it expires: then the messageId is new. `idempotency_key` is a hash of
-- these three and the tenant, by the function of that name.
CREATE TABLE idempotency_keys (
  idempotency_key uuid PRIMARY KEY, expires_at timestamptz NOT NULL,
  tenant_id text NOT NULL, message_id text COLLATE "C" NOT NULL,
  content_hash bytea NOT NULL
);
CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);

-- A message: what was sent, and below what became of it. What changes from moment to moment is in running_messages.
CREATE TABLE messages (
  tenant_id text NOT NULL, message_id text COLLATE "C" NOT NULL, session_id text NOT NULL,
  credential_id text NOT NULL,
  sender_agent_type text, -- of the agent that sent it; NULL for a credential that stands for no agent
  client_message_id text NOT NULL, method text NOT NULL,
  parts jsonb NOT NULL, metadata jsonb NOT NULL DEFAULT '{}',
  want_agent_type text,
  trace_id text NOT NULL, parent_span_id text, baggage text,
  deadline_ms integer NOT NULL, created_at timestamptz NOT NULL DEFAULT now(),
  state text NOT NULL, -- submitted, working, input-required, completed, failed or canceled
  instance_id text, agent_type text,
  turns jsonb NOT NULL DEFAULT '[]', -- after the first: questions and answers, as A2A messages
  artifacts jsonb NOT NULL DEFAULT '[]', status_message jsonb, usage jsonb,
  error_code text, error_message text,
  notifies boolean NOT NULL DEFAULT false, -- its state changes write push notifications, or wake its plan
  updated_at timestamptz NOT NULL DEFAULT now(), started_at timestamptz, completed_at timestamptz,
  PRIMARY KEY (tenant_id, message_id)
) PARTITION BY RANGE (message_id);
-- The session first: with the tenant first a plan that was made while the month is new looks for a message's key in this index too, and reads
-- all of the tenant's entries.
CREATE INDEX messages_by_session ON messages (session_id, tenant_id, message_id);
CREATE INDEX messages_by_error ON messages (tenant_id, error_code, message_id) WHERE error_code IS NOT NULL;

-- A message that is not over, or that was canceled or rejected and whose agent or workflow is still to hear of it: what finds, routes, leases
-- and wakes messages. The row is the message's lock, and is deleted with the message's end (later when it was canceled or rejected), so no
-- search for messages at work reads the past. `state`, `instance_id` and `agent_type` are those of `messages`.
CREATE TABLE running_messages (
  tenant_id text NOT NULL, message_id text COLLATE "C" NOT NULL, session_id text NOT NULL,
  state text NOT NULL, created_at timestamptz NOT NULL DEFAULT now(),
  want_instance_id text, want_agent_type text, want_skill_id text,
  instance_id text, agent_type text,
  attempts integer NOT NULL DEFAULT 0, current_dispatch_id text COLLATE "C",
  -- The session's slot on the instance, held from the opening of a dispatch to its end.
  holds_slot boolean NOT NULL DEFAULT false,
  -- The human's answer that the next dispatch carries: {request_id, resolution, data?, comment?}.
  resolution jsonb,
  -- The agent's own ids, of an A2A server that was asked before.
  remote_task_id text, remote_context_id text,
  unrouted_since timestamptz,
  -- Agents to which no connection opened for this message: routing takes them last.
  unreachable_ids text[] NOT NULL DEFAULT '{}',
  -- Set when the message's workflow must look at the row; it clears it. On the fast path the lease of the process that has the message.
  wake_requested_at timestamptz,
  supervised_at timestamptz,
  -- Raised by whoever takes the message over; the fast path renews its lease only while it is unchanged.
  lease_epoch integer NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant_id, message_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
-- By state, so that messages at work are counted without a look at those that wait for input, and the reverse. Partial, so that no plan
-- made on an empty table takes it instead of the key.
CREATE INDEX running_in_flight ON running_messages (tenant_id, state, session_id)
  WHERE state IN ('submitted', 'working', 'input-required');
-- With the key at the end no two entries are equal: many equal dead ones make every insert search among them.
CREATE INDEX running_slots ON running_messages (tenant_id, instance_id, session_id, message_id) WHERE holds_slot;
CREATE INDEX running_unrouted ON running_messages (tenant_id, created_at) WHERE unrouted_since IS NOT NULL;
CREATE INDEX running_decided ON running_messages (tenant_id, instance_id) WHERE unrouted_since IS NOT NULL AND resolution IS NOT NULL;
CREATE INDEX running_to_wake ON running_messages (wake_requested_at) WHERE wake_requested_at IS NOT NULL;
CREATE INDEX running_supervised ON running_messages (supervised_at)
  WHERE supervised_at IS NOT NULL AND state IN ('submitted', 'working');
CREATE INDEX running_canceled ON running_messages (supervised_at) WHERE state = 'canceled';

-- One attempt to have one agent do a message. States: messages/dispatch/dispatch-states.ts. No index has a column that changes, so that the
-- end of a dispatch writes none; open ones are found by running_messages.
CREATE TABLE dispatches (
  tenant_id text NOT NULL, dispatch_id text COLLATE "C" NOT NULL,
  message_id text COLLATE "C" NOT NULL, session_id text NOT NULL,
  instance_id text NOT NULL, agent_type text NOT NULL,
  deployment_mode text NOT NULL, mesh_id text, epoch bigint NOT NULL,
  attempt integer NOT NULL, state text NOT NULL, skill_id text,
  created_at timestamptz NOT NULL DEFAULT now(),
  sent_at timestamptz, -- written before the first byte goes out: from here on the agent may have it
  deadline_at timestamptz, ended_at timestamptz, error_code text,
  PRIMARY KEY (tenant_id, dispatch_id)
) PARTITION BY RANGE (dispatch_id);
CREATE INDEX dispatches_newest ON dispatches (instance_id, tenant_id, created_at DESC);

-- A question to a human about a message. One is open at a time; those that are over keep their answers.
CREATE TABLE input_requests (
  tenant_id text NOT NULL, request_id text NOT NULL,
  message_id text COLLATE "C" NOT NULL, session_id text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('approval', 'form', 'confirmation')),
  source text NOT NULL CHECK (source IN ('policy', 'guard', 'agent', 'plan')),
  -- Where the message stood when it was asked, which decides how it goes on.
  stage text NOT NULL CHECK (stage IN ('admission', 'dispatch', 'tool', 'plan', 'agent')),
  title text NOT NULL, prompt text NOT NULL,
  schema jsonb, fields jsonb,
  -- What is asked about: of a tool call its arguments, which an approver may edit. `path`: what a guard objects to.
  action text, tool text, arguments jsonb, path text,
  policy_id text, policy_name text, guard text, policy_request jsonb,
  digest text NOT NULL, -- of what is asked about (messages/input/digest.ts)
  approvers text[] NOT NULL DEFAULT '{}', quorum integer NOT NULL DEFAULT 1, allow_self boolean NOT NULL DEFAULT true,
  on_reject text NOT NULL DEFAULT 'fail' CHECK (on_reject IN ('fail', 'tell_agent')),
  escalate_to text[] NOT NULL DEFAULT '{}', -- become approvers with the first reminder
  reminder_seconds integer, reminders integer NOT NULL DEFAULT 0, remind_at timestamptz,
  state text NOT NULL CHECK (state IN ('pending', 'resolved', 'expired', 'withdrawn')),
  answer jsonb, -- {request_id, resolution, data?, comment?, arguments?}, as agents get it
  requested_at timestamptz NOT NULL DEFAULT now(), expires_at timestamptz NOT NULL, ended_at timestamptz,
  PRIMARY KEY (tenant_id, request_id)
);
CREATE UNIQUE INDEX input_requests_one_open ON input_requests (tenant_id, message_id) WHERE state = 'pending';
CREATE INDEX input_requests_by_message ON input_requests (tenant_id, message_id, requested_at DESC);
CREATE INDEX input_requests_pending ON input_requests (tenant_id, requested_at) WHERE state = 'pending';
CREATE INDEX input_requests_due ON input_requests (least(expires_at, remind_at)) WHERE state = 'pending';

-- The audit of who decided what. Rows are only added: no role may change or delete them. The erasure of a message empties `comment` and
-- `ip`. No foreign keys, because they outlive their messages. `voter`: who counts once towards a quorum.
CREATE TABLE input_decisions (
  tenant_id text NOT NULL, approval_id text COLLATE "C" NOT NULL,
  request_id text NOT NULL, message_id text COLLATE "C" NOT NULL,
  kind text NOT NULL, source text NOT NULL,
  resolution text NOT NULL,
  principal_type text NOT NULL CHECK (principal_type IN ('credential', 'callback', 'page', 'slack', 'system')), principal_id text NOT NULL,
  voter text NOT NULL,
  digest text NOT NULL, arguments_changed boolean NOT NULL DEFAULT false,
  comment text, ip text,
  decided_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, approval_id),
  UNIQUE (tenant_id, request_id, voter, digest)
);
CREATE INDEX input_decisions_by_message ON input_decisions (tenant_id, message_id, approval_id);

-- Ids rise with time within a process, so the key gives a tenant's newest events first.
CREATE TABLE events (
  tenant_id text NOT NULL, event_id text COLLATE "C" NOT NULL,
  event_type text NOT NULL, category text NOT NULL,
  source text NOT NULL, severity text NOT NULL,
  session_id text NOT NULL DEFAULT '', trace_id text,
  occurred_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  payload jsonb NOT NULL,
  -- The transaction that wrote it: tells the sequencer which events have been committed since it looked (0002_events.sql).
  transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
  PRIMARY KEY (tenant_id, event_id)
) PARTITION BY RANGE (event_id);
-- By the minute (the first 32 of an id's 48 bits of milliseconds), so that the events of a session share an entry: whole ids would take five
-- times the room. Pages are read in the order (left(event_id, 12), event_id), which sorts a minute at a time.
CREATE INDEX events_by_session ON events (tenant_id, session_id, "left"(event_id, 12));
-- Rising values, so every insert goes to the last page: the cheapest index there is, and the only exact way to find what was committed.
CREATE INDEX events_by_transaction ON events (transaction_id);

CREATE TABLE push_configs (
  tenant_id text NOT NULL, message_id text COLLATE "C" NOT NULL, config_id text NOT NULL,
  url text NOT NULL, schemes text[] NOT NULL,
  secrets bytea, -- {token?, credentials?}, encrypted; NULL where there is neither
  protocol_version text NOT NULL CHECK (protocol_version IN ('0.3', '1.0')),
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, message_id, config_id)
);

-- One row for each state that a config is to be notified of, in their order; afterwards the log of it.
CREATE TABLE push_deliveries (
  tenant_id text NOT NULL, message_id text COLLATE "C" NOT NULL, config_id text NOT NULL,
  sequence bigint GENERATED ALWAYS AS IDENTITY,
  state text NOT NULL,
  changed_at timestamptz NOT NULL DEFAULT now(), -- updated_at of the message as it was then
  wake_at timestamptz DEFAULT now(), -- when the relay starts or wakes its workflow (again); NULL once it has ended
  attempts jsonb NOT NULL DEFAULT '[]', -- [{at, status_code, error, duration_ms, success}], the oldest first
  outcome text CHECK (outcome IN ('delivered', 'failed', 'dropped')), ended_at timestamptz,
  PRIMARY KEY (tenant_id, message_id, config_id, sequence)
);
CREATE INDEX push_deliveries_due ON push_deliveries (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX push_deliveries_ended ON push_deliveries (ended_at) WHERE ended_at IS NOT NULL;

-- Runs in the transaction that changes the state, which holds the message's row: configs change before it or after it, and sequences rise
-- with the changes. The plan of a message that does one of its steps is woken (0006_plans.sql).
CREATE FUNCTION note_state_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.state <> OLD.state AND NEW.state <> 'submitted' THEN
    INSERT INTO push_deliveries (tenant_id, message_id, config_id, state)
      SELECT c.tenant_id, c.message_id, c.config_id, NEW.state FROM push_configs c
       WHERE c.tenant_id = NEW.tenant_id AND c.message_id = NEW.message_id;
    INSERT INTO plan_wakes (tenant_id, plan_id)
      SELECT p.tenant_id, p.plan_id FROM plan_messages p WHERE p.tenant_id = NEW.tenant_id AND p.message_id = NEW.message_id;
  END IF;
  RETURN NULL;
END $$;
-- The condition is parsed for every statement that ends a message: it is as short as can be.
CREATE TRIGGER state_change_of_message AFTER UPDATE OF state ON messages FOR EACH ROW
  WHEN (NEW.notifies) EXECUTE FUNCTION note_state_change();

-- A session that pauses or resumes changes the load of its instance (agent_load), unless a message of it holds the slot there: whichever
-- function does it, the event is written here.
CREATE FUNCTION note_capacity_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  at text := lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0');
  chance text := replace(gen_random_uuid()::text, '-', '');
BEGIN
  IF EXISTS (SELECT 1 FROM running_messages r WHERE r.tenant_id = NEW.tenant_id AND r.instance_id = NEW.instance_id
               AND r.session_id = NEW.session_id AND r.holds_slot) THEN
    RETURN NULL;
  END IF;
  INSERT INTO events (tenant_id, event_id, event_type, category, source, severity, session_id, payload)
    SELECT a.tenant_id, format('evt_%s-%s-7%s-8%s-%s', left(at, 8), right(at, 4), left(chance, 3), substr(chance, 4, 3), right(chance, 12)),
           'agent.capacity_changed', 'agent', 'platform', 'info', '', jsonb_build_object('agent_type', a.agent_type,
             'instance_id', a.instance_id, 'current_sessions', agent_load(a.tenant_id, a.instance_id),
             'max_concurrent_sessions', a.max_concurrent_sessions)
      FROM agents a WHERE a.tenant_id = NEW.tenant_id AND a.instance_id = NEW.instance_id;
  RETURN NULL;
END $$;
-- One that moves to another instance is counted by who moves it.
CREATE TRIGGER capacity_of_session AFTER UPDATE OF suspended ON sessions FOR EACH ROW
  WHEN (NEW.suspended <> OLD.suspended AND NEW.explicit AND NEW.instance_id = OLD.instance_id AND NEW.status = 'active')
  EXECUTE FUNCTION note_capacity_change();

-- Every table of tenants.
DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['tenants', 'credentials', 'agent_types', 'agents', 'agent_reports', 'dispatch_totals', 'sessions',
      'session_agents', 'idempotency_keys', 'messages', 'running_messages', 'dispatches', 'input_requests', 'input_decisions', 'events',
      'push_configs', 'push_deliveries'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY one_tenant ON %I TO fleet_app USING (tenant_id = current_tenant())', name);
    EXECUTE format('CREATE POLICY whole_platform ON %I TO fleet_system USING (true)', name);
  END LOOP;
END $$;

GRANT SELECT, INSERT, UPDATE, DELETE ON credentials, agent_types, agents, agent_reports, dispatch_totals, sessions, session_agents,
  idempotency_keys, messages, running_messages, dispatches, input_requests, push_configs, push_deliveries TO fleet_app;
GRANT SELECT, INSERT ON events, input_decisions TO fleet_app;
GRANT SELECT ON tenants, mesh_nodes TO fleet_app;
GRANT UPDATE (default_agent_type) ON tenants TO fleet_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO fleet_system;
REVOKE UPDATE, DELETE ON input_decisions FROM fleet_system;
GRANT UPDATE (comment, ip) ON input_decisions TO fleet_system;
