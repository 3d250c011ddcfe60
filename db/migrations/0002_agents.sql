-- Mesh nodes and agents.

-- One row per running process with the mesh role. A node that stops renewing is dead.
CREATE TABLE mesh_nodes (
  mesh_id text PRIMARY KEY,
  started_at timestamptz NOT NULL DEFAULT now(), renewed_at timestamptz NOT NULL DEFAULT now(),
  resumed_at timestamptz, -- when it renewed again after it could not; NULL: it always could
  draining boolean NOT NULL DEFAULT false -- it is stopping, and takes no agents
);

-- Which agent types may join a tenant's fleet. A type's own row decides. Without one it may join unless other types are allowed.
CREATE TABLE agent_types (
  tenant_id text NOT NULL REFERENCES tenants, agent_type text NOT NULL,
  allowed boolean NOT NULL,
  decided_by text NOT NULL, decided_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, agent_type)
);

-- The agent types that alone may offer a tool. A tool without a row may be offered by every type.
CREATE TABLE tool_owners (
  tenant_id text NOT NULL REFERENCES tenants, tool text NOT NULL,
  agent_types text[] NOT NULL,
  decided_by text NOT NULL, decided_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, tool)
);

CREATE TABLE agents (
  tenant_id text NOT NULL REFERENCES tenants, instance_id text NOT NULL,
  agent_type text NOT NULL,
  deployment_mode text NOT NULL CHECK (deployment_mode IN ('hosted', 'connected')),
  public_url text,
  -- The credential that a hosted agent wants of the platform, sealed (agents/dispatch-auth.ts); NULL: the platform's own token.
  dispatch_auth bytea,
  -- 'busy' is what the agent reported last. An agent that is full by the count is only shown as busy.
  status text NOT NULL CHECK (status IN ('available', 'busy', 'draining', 'unhealthy', 'offline', 'unknown')),
  mesh_id text, connection_epoch bigint NOT NULL DEFAULT 0, connected_at timestamptz,
  max_concurrent_sessions integer NOT NULL,
  max_concurrent_tasks integer NOT NULL DEFAULT 0, -- messages at once, over all its sessions; 0: as many as there are
  -- By /agents/drain: nothing new is sent to it until /agents/undrain, whatever its status says.
  drained boolean NOT NULL DEFAULT false,
  -- Until then routing skips it: its node, or for a hosted agent every living node, has no room for further dispatches to it. The node
  -- renews the time, and clears it when there is room again; a node that dies lets it pass.
  saturated_until timestamptz,
  saturated_on jsonb NOT NULL DEFAULT '{}', -- of a hosted agent: the nodes without room, each with the time until then
  -- When routing found no room for a session on it; whoever frees some clears this. A guess, which a race may leave behind: after a few seconds
  -- routing looks again (db/functions/routing/full_agents.sql).
  full_at timestamptz,
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
  updated_by text,
  -- Its place in an order by chance, from which routing takes samples.
  shuffle double precision NOT NULL DEFAULT random(),
  -- Whether it may have room: false where it is busy or was found full, NULL where nothing can be sent to it.
  has_room boolean GENERATED ALWAYS AS (CASE WHEN deregistered_at IS NULL AND NOT drained AND status IN ('available', 'unknown', 'busy')
    AND (deployment_mode = 'hosted' OR mesh_id IS NOT NULL) THEN status <> 'busy' AND full_at IS NULL END) STORED,
  -- Of the media types in its card: agents of the same digest declare the same.
  modes_digest text NOT NULL GENERATED ALWAYS AS (md5(
    jsonb_path_query_array(agent_card, '$.defaultInputModes[*]')::text || jsonb_path_query_array(agent_card, '$.skills[*].inputModes[*]')::text
    || jsonb_path_query_array(agent_card, '$.defaultOutputModes[*]')::text
    || jsonb_path_query_array(agent_card, '$.skills[*].outputModes[*]')::text)) STORED,
  PRIMARY KEY (tenant_id, instance_id)
);
-- Plans are made while the table is small and kept, so each query must find one index that fits it, and no other. The first is only for queries that
-- name a type, and the key for those that name an instance. With the second, whose predicate the functions repeat word for word, deregistered
-- agents are never read; with the third, which alone has the order of the samples, neither are those that nothing can be sent to.
CREATE INDEX agents_of_type ON agents (agent_type, tenant_id) WHERE agent_type IS NOT NULL;
CREATE INDEX agents_registered ON agents (tenant_id, agent_type, modes_digest) WHERE coalesce(deregistered_at, 'infinity') = 'infinity';
CREATE INDEX agents_sampled ON agents (tenant_id, agent_type, has_room, shuffle) WHERE has_room IS NOT NULL;
CREATE INDEX agents_full ON agents (tenant_id, full_at) WHERE full_at IS NOT NULL;
CREATE INDEX agents_saturated ON agents (tenant_id) WHERE saturated_until IS NOT NULL;
CREATE INDEX agents_by_mesh ON agents (mesh_id) WHERE mesh_id IS NOT NULL;
CREATE INDEX agents_by_sign ON agents (last_seen) WHERE deregistered_at IS NULL;

-- The skills of registered agents, those of their registration and of their card, so that the agents of a skill are found without a look at
-- others. Each skill twice: for messages that name the type too, and, with the type '', for those that do not. `has_room`, `shuffle`: of the agent.
CREATE TABLE agent_skills (
  tenant_id text NOT NULL, instance_id text NOT NULL,
  skill_id text NOT NULL, agent_type text NOT NULL,
  shuffle double precision NOT NULL, has_room boolean,
  PRIMARY KEY (tenant_id, instance_id, skill_id, agent_type),
  FOREIGN KEY (tenant_id, instance_id) REFERENCES agents ON DELETE CASCADE
);
-- Only for queries that name a skill, as agents_of_type.
CREATE INDEX agent_skills_sampled ON agent_skills (skill_id, tenant_id, agent_type, has_room, shuffle) WHERE skill_id IS NOT NULL;

-- A card comes from the agent, with anything in it: ids that no message can ask for are left out.
CREATE FUNCTION note_skills() RETURNS trigger LANGUAGE plpgsql AS $$
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
END $$;
CREATE TRIGGER skills_of_new_agent AFTER INSERT ON agents FOR EACH ROW EXECUTE FUNCTION note_skills();
CREATE TRIGGER skills_of_agent AFTER UPDATE OF skills, agent_card, agent_type, deregistered_at ON agents FOR EACH ROW
  WHEN (OLD.skills <> NEW.skills OR OLD.agent_card <> NEW.agent_card OR OLD.agent_type <> NEW.agent_type
    OR (OLD.deregistered_at IS NULL) <> (NEW.deregistered_at IS NULL))
  EXECUTE FUNCTION note_skills();

CREATE FUNCTION note_room() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE agent_skills s SET has_room = NEW.has_room WHERE s.tenant_id = NEW.tenant_id AND s.instance_id = NEW.instance_id;
  RETURN NULL;
END $$;
CREATE TRIGGER room_of_agent AFTER UPDATE ON agents FOR EACH ROW WHEN (OLD.has_room IS DISTINCT FROM NEW.has_room) EXECUTE FUNCTION note_room();

-- Sessions that an agent last reported where they were more than the platform counts. A table of its own: every accept transaction reads
-- it, by the only index there is.
CREATE TABLE agent_reports (
  tenant_id text NOT NULL REFERENCES tenants, instance_id text NOT NULL,
  sessions integer NOT NULL,
  PRIMARY KEY (tenant_id, instance_id)
);

-- How the last messages of an agent ended, at most ten: an agent that none of them failed on has no row. Its node writes it
-- (db/functions/routing/outcomes.sql).
CREATE TABLE agent_outcomes (
  tenant_id text NOT NULL REFERENCES tenants, instance_id text NOT NULL,
  failures smallint NOT NULL, -- a bit for each, 1 where it failed, the newest the lowest
  failing_since timestamptz, -- since when five or more of them failed
  -- Of a failing one: it takes nothing that others could take until then; how often that was said in a row.
  paused_until timestamptz, pauses smallint NOT NULL DEFAULT 0,
  last_error text NOT NULL,
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

SELECT isolate_tenants('{agent_types,tool_owners,agents,agent_skills,agent_reports,agent_outcomes,dispatch_totals}');
GRANT SELECT ON mesh_nodes TO fleet_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON mesh_nodes TO fleet_system;
