-- Usage: what agents did, added up from events after the fact (db/functions/events/usage.sql), and what a tenant has set about it.

-- Tokens and cost are numeric: agents may claim as much as they like. '' where there is none: a message is of no agent until it has ended, and a tool call of no model.
CREATE TABLE usage_hours (
  tenant_id text NOT NULL, hour timestamptz NOT NULL,
  agent_type text NOT NULL, instance_id text NOT NULL, model text NOT NULL,
  messages bigint NOT NULL, dispatches bigint NOT NULL, tool_calls bigint NOT NULL,
  input_tokens numeric NOT NULL, output_tokens numeric NOT NULL,
  duration_ms bigint NOT NULL, -- of the dispatches
  cost_usd numeric NOT NULL,
  PRIMARY KEY (tenant_id, hour, agent_type, instance_id, model)
);

-- The same by session; '' for tool calls outside of one. A message that opens a session of its own writes a row here, so they are short.
CREATE TABLE usage_sessions (
  hour timestamptz NOT NULL, duration_ms bigint NOT NULL,
  messages integer NOT NULL, dispatches integer NOT NULL, tool_calls integer NOT NULL,
  tenant_id uuid NOT NULL, -- without its prefix
  session_uuid uuid NOT NULL, session_name text, -- as in event_groups; zeros for none
  input_tokens numeric NOT NULL, output_tokens numeric NOT NULL, cost_usd numeric NOT NULL,
  PRIMARY KEY (tenant_id, hour, session_uuid)
);

-- The same by what has quotas of its own: `kind` is 'user', 'credential' or 'agent_type', `key` its id; '' for none. A message is of the type that it
-- asks for from its acceptance on.
CREATE TABLE usage_by_key (
  tenant_id text NOT NULL, hour timestamptz NOT NULL,
  kind text NOT NULL, key text NOT NULL,
  messages bigint NOT NULL, dispatches bigint NOT NULL, tool_calls bigint NOT NULL,
  input_tokens numeric NOT NULL, output_tokens numeric NOT NULL,
  duration_ms bigint NOT NULL, cost_usd numeric NOT NULL,
  PRIMARY KEY (tenant_id, kind, key, hour)
);
CREATE INDEX usage_by_key_hours ON usage_by_key (tenant_id, hour);

-- What quotas are measured by: one row for each tenant and day (UTC).
CREATE TABLE usage_days (
  tenant_id text NOT NULL, day date NOT NULL,
  messages bigint NOT NULL, tokens numeric NOT NULL, cost_usd numeric NOT NULL,
  PRIMARY KEY (tenant_id, day)
);

-- What has been added up of a message that is not over: it used tokens and then asked a human. Deleted with the message's end. What has been
-- counted keeps its model and price; `reported_cost_usd` is what the agent said that it costs.
CREATE TABLE counted_usage (
  tenant_id text NOT NULL, message_id text COLLATE "C" NOT NULL, model text NOT NULL,
  input_tokens numeric NOT NULL, output_tokens numeric NOT NULL, reported_cost_usd numeric NOT NULL,
  PRIMARY KEY (tenant_id, message_id, model)
);

-- The last batch of tool calls that each process has added: a batch that is sent again is known by its number.
CREATE TABLE usage_batches (
  source text PRIMARY KEY, sequence bigint NOT NULL,
  added_at timestamptz NOT NULL DEFAULT now()
);

-- Quotas; NULL: no limit.
CREATE TABLE tenant_limits (
  tenant_id text PRIMARY KEY REFERENCES tenants,
  messages_per_day bigint, tokens_per_day bigint, cost_usd_per_month numeric,
  -- For each of a kind: {per_user?, per_credential?, per_agent_type?}, each with these three members.
  per_key jsonb NOT NULL DEFAULT '{}',
  updated_at timestamptz NOT NULL DEFAULT now(), updated_by text
);

-- US dollars for a million tokens of a model, in force for what is added up from then on.
CREATE TABLE model_prices (
  tenant_id text NOT NULL REFERENCES tenants, model text NOT NULL,
  input_per_million numeric NOT NULL, output_per_million numeric NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now(), updated_by text,
  PRIMARY KEY (tenant_id, model)
);

SELECT isolate_tenants('{usage_hours, usage_by_key, usage_days, counted_usage}', 'SELECT');
SELECT isolate_tenants('{usage_sessions}', 'SELECT', 'current_tenant_uuid()');
SELECT isolate_tenants('{tenant_limits, model_prices}');
GRANT SELECT, INSERT, UPDATE, DELETE ON usage_batches TO fleet_system;
