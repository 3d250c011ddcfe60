-- Which agent types may join a tenant's fleet. A type's own row decides; without one it may join unless other types are allowed: then only
-- those may.
CREATE TABLE agent_types (
  tenant_id  text NOT NULL REFERENCES tenants,
  agent_type text NOT NULL,
  allowed    boolean NOT NULL,
  decided_by text NOT NULL,
  decided_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, agent_type)
);

CREATE FUNCTION type_may_join(of_tenant text, of_type text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN coalesce(
    (SELECT t.allowed FROM agent_types t WHERE t.tenant_id = of_tenant AND t.agent_type = of_type),
    NOT EXISTS (SELECT 1 FROM agent_types t WHERE t.tenant_id = of_tenant AND t.allowed));
END $$;

-- What became of an instance's dispatches that began before `until`, all of which are over. Whoever asks for the totals brings them
-- forward, so that they cost messages nothing, and who asks again reads only what is newer.
CREATE TABLE dispatch_totals (
  tenant_id      text NOT NULL,
  instance_id    text NOT NULL,
  until          timestamptz NOT NULL DEFAULT '-infinity',
  succeeded      bigint NOT NULL DEFAULT 0,
  failed         bigint NOT NULL DEFAULT 0,
  last_error     text,
  last_failed_at timestamptz NOT NULL DEFAULT '-infinity',
  PRIMARY KEY (tenant_id, instance_id)
);

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['agent_types', 'dispatch_totals'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY one_tenant ON %I TO fleet_app USING (tenant_id = current_tenant())', name);
    EXECUTE format('CREATE POLICY whole_platform ON %I TO fleet_system USING (true)', name);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO fleet_app, fleet_system', name);
  END LOOP;
END $$;
