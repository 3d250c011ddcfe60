-- Alert rules, their channels, what is delivered to them, and the tokens that travel in deliveries.

-- Raised by every change of a tenant's rules: processes compile rules once for each revision. A tenant without a row never had a rule.
CREATE TABLE alert_revisions (
  tenant_id text PRIMARY KEY REFERENCES tenants, revision bigint NOT NULL
);

CREATE TABLE alert_rules (
  tenant_id text NOT NULL REFERENCES tenants, rule_id text NOT NULL,
  name text NOT NULL, description text NOT NULL,
  event text NOT NULL, -- a type of event, or a glob of types
  filters jsonb NOT NULL DEFAULT '{}',
  severity text NOT NULL CHECK (severity IN ('info', 'warning', 'critical')),
  threshold integer NOT NULL, window_seconds integer NOT NULL, cooldown_seconds integer NOT NULL,
  approvers text[] NOT NULL DEFAULT '{}',
  writers text[] NOT NULL DEFAULT '{}', -- the credentials that made the rule or changed what it sends to whom
  enabled boolean NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(), updated_by text,
  PRIMARY KEY (tenant_id, rule_id)
);

CREATE TABLE alert_channels (
  tenant_id text NOT NULL, rule_id text NOT NULL, channel_id text NOT NULL,
  place integer NOT NULL,
  type text NOT NULL CHECK (type IN ('webhook', 'slack', 'email')),
  enabled boolean NOT NULL,
  config jsonb NOT NULL, -- what may be shown
  secrets bytea, -- the rest of the config, encrypted; NULL where there is none
  PRIMARY KEY (tenant_id, channel_id),
  FOREIGN KEY (tenant_id, rule_id) REFERENCES alert_rules ON DELETE CASCADE
);
CREATE INDEX alert_channels_by_rule ON alert_channels (tenant_id, rule_id, place);

-- Of rules with a threshold or a cooldown. Only the alert relay writes it, in the transaction that moves its cursor. No foreign key: the
-- relay must not wait for a tenant's transaction.
CREATE TABLE alert_states (
  tenant_id text NOT NULL, rule_id text NOT NULL,
  -- When the events that count happened, in milliseconds since 1970, the oldest first.
  counted_ms jsonb NOT NULL DEFAULT '[]',
  fired_ms bigint,
  PRIMARY KEY (tenant_id, rule_id)
);

-- What is sent, and afterwards the log of it: one row for each event, rule and channel (of email for each recipient), and for each change of a
-- task's state of which a push-notification config is notified.
CREATE TABLE deliveries (
  tenant_id text NOT NULL, delivery_id text COLLATE "C" NOT NULL,
  event_type text NOT NULL, -- of a push notification `task.` and the state
  session_id text NOT NULL,
  event_id text COLLATE "C", rule_id text, channel_id text, -- of an alert rule
  mail_to text NOT NULL DEFAULT '', -- the recipient of an email; '' of anything else
  message_id text COLLATE "C", config_id text, -- of a push notification
  sequence bigint, changed_at timestamptz, -- of the change that it is about: those of a config are sent in this order
  url text NOT NULL, receiver text NOT NULL,
  body bytea, -- the bytes to send, encrypted: they may hold a callback token; of a push notification NULL until its first attempt
  status text NOT NULL CHECK (status IN ('pending', 'delivered', 'failed', 'dropped')),
  traceparent text, -- of the trace that the event belongs to
  max_attempts integer NOT NULL,
  attempts jsonb NOT NULL DEFAULT '[]', -- [{at, status_code, response_time_ms, success, error}], the oldest first
  attempts_before integer NOT NULL DEFAULT 0, -- those of before the last redelivery
  created_at timestamptz NOT NULL DEFAULT now(), ended_at timestamptz,
  PRIMARY KEY (tenant_id, delivery_id),
  UNIQUE (tenant_id, event_id, rule_id, channel_id, mail_to),
  CHECK ((rule_id IS NULL) <> (config_id IS NULL))
);
CREATE INDEX deliveries_by_rule ON deliveries (tenant_id, rule_id, delivery_id) WHERE rule_id IS NOT NULL;
CREATE INDEX deliveries_by_config ON deliveries (tenant_id, message_id, config_id, sequence) WHERE config_id IS NOT NULL;
CREATE INDEX deliveries_pending ON deliveries (tenant_id, receiver) WHERE status = 'pending';
-- Few among many that arrived.
CREATE INDEX deliveries_failed ON deliveries (tenant_id, delivery_id) WHERE status = 'failed';
CREATE INDEX deliveries_ended ON deliveries (ended_at) WHERE ended_at IS NOT NULL;

-- What waits to be sent or is being sent: a delivery of a rule, or the push notifications of a config, one after the other. A row with `started_at` holds one of
-- the slots that tenants and receivers share; its workflow deletes it.
CREATE TABLE delivery_queue (
  tenant_id text NOT NULL, queue_id text NOT NULL,
  is_approval boolean NOT NULL, -- it asks a human: these have slots of their own
  receiver text NOT NULL, -- of a channel and its address, or of the address of a push notification
  input jsonb NOT NULL, -- of the workflow
  queued_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  starts integer NOT NULL DEFAULT 0,
  started_at timestamptz,
  check_at timestamptz, -- when to look whether the workflow was started at all
  PRIMARY KEY (tenant_id, queue_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX delivery_queue_waiting ON delivery_queue (is_approval, tenant_id, receiver, queued_at, queue_id) WHERE started_at IS NULL;
CREATE INDEX delivery_queue_old ON delivery_queue (queued_at) WHERE started_at IS NULL;
CREATE INDEX delivery_queue_started ON delivery_queue (check_at) WHERE started_at IS NOT NULL;

-- The circuit breakers of receivers, each for one tenant. A receiver without a row answers. `open_until` is NULL while the breaker is still
-- closed; once it has passed, one delivery probes.
CREATE TABLE receiver_breakers (
  tenant_id text NOT NULL, receiver text NOT NULL,
  failures integer NOT NULL,
  open_until timestamptz,
  opened_at timestamptz, -- since when it is open
  probe text, -- the queue_id that may send
  changed_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, receiver)
);
CREATE INDEX receiver_breakers_old ON receiver_breakers (changed_at);
CREATE INDEX receiver_breakers_open ON receiver_breakers (tenant_id) WHERE open_until IS NOT NULL;

-- Where a claim of slots goes on among the receivers of a tenant for which too many wait to look at all of them at once.
CREATE TABLE delivery_turns (
  is_approval boolean NOT NULL, tenant_id text NOT NULL, from_receiver text NOT NULL,
  PRIMARY KEY (tenant_id, is_approval)
);

-- Tokens that answer one request once, each for one delivery of a rule. Only the hash is stored.
CREATE TABLE callback_tokens (
  token_hash bytea PRIMARY KEY,
  tenant_id text NOT NULL, message_id text COLLATE "C", plan_id text COLLATE "C", request_id text NOT NULL,
  digest text NOT NULL, -- of what was asked when the token was issued
  rule_id text NOT NULL, writers text[] NOT NULL, -- the rule's at that time
  destination text, -- digest of where the delivery goes: the token is sent nowhere else; null for a Slack user's
  slack_user text, -- to whom alone it was given; null for the token of a delivery, which its receivers have
  expires_at timestamptz NOT NULL, used_at timestamptz,
  CHECK (num_nonnulls(message_id, plan_id) = 1)
);
CREATE INDEX callback_tokens_expiry ON callback_tokens (expires_at);

-- The alert relay reads every event from the first one on: a rule may be there before the first relay is.
INSERT INTO event_cursors (consumer, position) VALUES ('alerts', 0);

SELECT isolate_tenants('{alert_revisions,alert_rules,alert_channels,alert_states,deliveries,delivery_queue,receiver_breakers,
  delivery_turns,callback_tokens}');
