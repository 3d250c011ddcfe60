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

SELECT isolate_tenants('{agent_types,agents,agent_reports,dispatch_totals}');
GRANT SELECT ON mesh_nodes TO fleet_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON mesh_nodes TO fleet_system;
