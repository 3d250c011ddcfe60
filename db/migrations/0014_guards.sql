-- What tenants have changed of their guards. A guard without a row is as the platform has it (GUARD_DEFAULTS in contracts/api/policies/guards.ts). Each
-- change raises the tenant's revision in `policy_revisions`.

CREATE TABLE guards (
  tenant_id text NOT NULL REFERENCES tenants,
  guard text NOT NULL CHECK (guard IN ('path', 'egress', 'secrets', 'prompt_injection', 'limits')),
  enabled boolean NOT NULL,
  decision text NOT NULL CHECK (decision IN ('allow', 'require_approval', 'deny')),
  config jsonb NOT NULL, -- the members that differ from the defaults of today or before
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, guard)
);

SELECT isolate_tenants('{guards}');
