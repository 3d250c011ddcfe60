-- Operators of the platform: credentials without a tenant, which create tenants and bound what these may use.

-- What a tenant may set as its limits at most; NULL: no ceiling. Only the platform's role writes it.
CREATE TABLE tenant_ceilings (
  tenant_id text PRIMARY KEY REFERENCES tenants,
  messages_per_day bigint, tokens_per_day bigint, cost_usd_per_month numeric,
  updated_at timestamptz NOT NULL DEFAULT now(), updated_by text
);

-- A token is for the operator itself or for one tenant; row-level security shows a credential without a tenant to no tenant.
ALTER TABLE credentials ALTER COLUMN tenant_id DROP NOT NULL;
ALTER TABLE credentials ADD CONSTRAINT credentials_of_operators CHECK ((tenant_id IS NULL) = (credential_id LIKE 'op\_%'));

SELECT isolate_tenants('{tenant_ceilings}', 'SELECT');
