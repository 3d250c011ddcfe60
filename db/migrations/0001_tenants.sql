-- Roles, tenants and credentials. In all migrations columns that belong together share a line; db/schema.sql lists them one by one.
--
-- Row-level security (isolate_tenants): fleet_app sees the tenant that the transaction names, fleet_system sees every tenant. No role sees a
-- partition.

DO $$
DECLARE
  name text;
  -- Up to Postgres 15 every member of a role may take it.
  set_role CONSTANT text := CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'MEMBER' ELSE 'SET' END;
BEGIN
  FOREACH name IN ARRAY ARRAY['fleet_app', 'fleet_system'] LOOP
    BEGIN
      EXECUTE format('CREATE ROLE %I NOLOGIN NOINHERIT', name);
    EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
    END;
    IF NOT pg_has_role(current_user, name, set_role) THEN EXECUTE format('GRANT %I TO %I', name, current_user); END IF;
  END LOOP;
END $$;

-- The tenant of the running transaction; NULL outside one (after a commit the setting is '', not NULL).
CREATE FUNCTION current_tenant() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
  AS $$ SELECT nullif(current_setting('app.tenant_id', true), '') $$;
-- The same without its prefix, for tables that hold so many rows that ids are UUIDs there.
CREATE FUNCTION current_tenant_uuid() RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE
  AS $$ SELECT right(nullif(current_setting('app.tenant_id', true), ''), 36)::uuid $$;

-- Gives tables of tenants their row-level security: fleet_app sees the rows of the tenant that the transaction names, fleet_system all.
-- `app_privileges`: what fleet_app may do with them. fleet_system may read and write all. `own_tenant`: what `tenant_id` is compared with.
CREATE FUNCTION isolate_tenants(tables text[], app_privileges text DEFAULT 'SELECT, INSERT, UPDATE, DELETE',
  own_tenant text DEFAULT 'current_tenant()') RETURNS void LANGUAGE plpgsql AS $$
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
END $$;

CREATE TABLE platform_facts (name text PRIMARY KEY, value text NOT NULL);

CREATE TABLE tenants (
  tenant_id text PRIMARY KEY, name text NOT NULL,
  default_agent_type text, -- of messages that name no target
  created_at timestamptz NOT NULL DEFAULT now(), updated_by text, deleted_at timestamptz, deleted_by text
);

CREATE TABLE signing_keys (
  kid text PRIMARY KEY,
  -- Keys of receipts verify for ever: they sign no token, and no rotation deletes them.
  kind text NOT NULL DEFAULT 'token' CHECK (kind IN ('token', 'receipt')),
  public_jwk jsonb NOT NULL,
  private_jwk_encrypted bytea, -- NULL: the key that sealed it was lost, and this one only verifies
  created_at timestamptz NOT NULL DEFAULT now(), retired_at timestamptz
);

CREATE TABLE credentials (
  tenant_id text NOT NULL REFERENCES tenants, credential_id text PRIMARY KEY,
  name text NOT NULL,
  scopes text[] NOT NULL, agent_types text[] NOT NULL DEFAULT '{}',
  secret_hash bytea, -- NULL: of a person, or an operator, who signs in by OpenID Connect and has no secret
  previous_secret_hash bytea, previous_expires_at timestamptz,
  secret_key_id text, previous_secret_key_id text, -- which secret key hashed it; NULL: that of before the first rotation
  created_at timestamptz NOT NULL DEFAULT now(), expires_at timestamptz, revoked_at timestamptz,
  updated_by text -- the principal of the last change, here and in other tables: its id in audit_entries
);
CREATE INDEX credentials_by_tenant ON credentials (tenant_id, created_at DESC);

-- Of users whose tokens were revoked: tokens of earlier epochs have ended.
CREATE TABLE user_token_epochs (
  tenant_id text NOT NULL REFERENCES tenants, user_id text NOT NULL, token_epoch integer NOT NULL,
  PRIMARY KEY (tenant_id, user_id)
);

-- People who signed in by OpenID Connect, with the rights that they had then: `grants` is a list of {tenant_id, scopes, approvers}. Of the platform,
-- since nobody may have chosen a tenant yet.
CREATE TABLE sign_ins (
  sign_in_id text PRIMARY KEY,
  issuer text NOT NULL, subject text NOT NULL, name text NOT NULL,
  is_operator boolean NOT NULL, grants jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(), expires_at timestamptz NOT NULL
);
CREATE INDEX sign_ins_by_person ON sign_ins (issuer, subject);
CREATE INDEX sign_ins_by_end ON sign_ins (expires_at);

-- Sessions of the console. One that is deleted has ended, and the access token in its cookie with it.
CREATE TABLE console_sessions (
  tenant_id text NOT NULL REFERENCES tenants, console_session text NOT NULL,
  credential_id text NOT NULL REFERENCES credentials ON DELETE CASCADE,
  sign_in_id text REFERENCES sign_ins ON DELETE CASCADE,
  created_at timestamptz NOT NULL DEFAULT now(), expires_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, console_session)
);
CREATE INDEX console_sessions_by_sign_in ON console_sessions (sign_in_id) WHERE sign_in_id IS NOT NULL;
-- Links that sign in to the console, once.
CREATE TABLE sign_in_links (
  tenant_id text NOT NULL REFERENCES tenants, link_digest bytea NOT NULL UNIQUE,
  credential_id text NOT NULL REFERENCES credentials ON DELETE CASCADE, expires_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, link_digest)
);

SELECT isolate_tenants('{tenants}', 'SELECT');
SELECT isolate_tenants('{credentials, user_token_epochs, console_sessions, sign_in_links}');
GRANT UPDATE (default_agent_type, updated_by) ON tenants TO fleet_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON platform_facts, signing_keys, sign_ins TO fleet_system;
-- Transactions of tenants look which secret key is in use before they seal a value (hold_secret_key). The facts tell its check value, never
-- the key.
GRANT SELECT ON platform_facts TO fleet_app;
