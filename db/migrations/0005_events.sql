-- Events, and their positions: the order in which readers see them, given after the commit (db/functions/events/position_events.sql). Ids of
-- events and of transactions commit out of order, so neither can be a reader's cursor.

-- The minute of an id, or nearly so: the first 32 of its 48 bits of milliseconds.
CREATE FUNCTION group_minute(group_id uuid) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT ('x' || left(group_id::text, 8))::bit(32)::integer $$;

-- Every type of event, in the order in which a group has them: contracts/events.ts. `types` of a group has a bit for each, the first one the
-- lowest, so new types go to the end. There is room for 64.
CREATE FUNCTION event_types() RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT ARRAY[
  'session.created', 'message.received', 'policy.denied', 'guard.denied', 'message.resolved', 'dispatch.sent', 'dispatch.success',
  'dispatch.failed', 'message.input_required', 'policy.approval_required', 'guard.approval_required', 'message.completed',
  'message.canceled', 'message.error', 'session.closed', 'policy.audited', 'guard.allowed', 'agent.registered', 'agent.deregistered',
  'agent.health_changed', 'agent.capacity_changed', 'plan.created', 'plan.approval_required', 'plan.approved', 'plan.completed',
  'plan.failed', 'plan.canceled', 'plan.rejected', 'system.alert_triggered', 'tenant.created', 'tenant.deleted',
  'message.decision_effect'] $$;
CREATE FUNCTION event_bit(event_type text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT 1::bigint << (array_position(event_types(), event_type) - 1) $$;

-- Half a hash of an instance's id: almost all groups of events about other instances are passed over by the key alone.
CREATE FUNCTION instance_mark(instance_id text) RETURNS smallint LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT (coalesce(hashtext(instance_id), 0) & 32767)::smallint $$;

-- One row for the events that an accept, complete or cancel transaction wrote about one message, or for another event: an index entry for each
-- event would cost a short message more than all its other rows. Read by the view `events` (db/functions/events/events.sql).
CREATE TABLE event_groups (
  occurred_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- The transaction that wrote it: tells the sequencer which groups have been committed since it looked.
  transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
  -- The types of its events, a bit for each (event_types below); no type is there twice.
  types bigint NOT NULL,
  -- instance_mark of the instance that its events name; 0 for none.
  instance_mark smallint NOT NULL DEFAULT 0,
  -- A UUID of version 7 that ends with 00; the id of each event has its place instead. Ids rise with time within a process, so the key gives a
  -- tenant's newest events first.
  group_id uuid NOT NULL,
  -- Without their prefixes; the session as session_uuid and session_name make it. The dispatch is that of all events about a dispatch. No trace: the message starts its own, which has the message's UUID.
  tenant_id uuid NOT NULL, message_id uuid, dispatch_id uuid, trace_id uuid,
  session_uuid uuid, session_name text,
  -- The payloads, in the order of `event_types`: [payload | [payload, severity], …], without 'info'. What the columns say is not repeated in the
  -- payloads of every message's events. Text: half as long as jsonb where members are so short.
  events json NOT NULL,
  -- With the types a tenant's events are counted, filtered and skipped through by the key alone. Almost all entries come in order, so pages
  -- that are left behind are nearly full.
  PRIMARY KEY (tenant_id, group_id) INCLUDE (types, instance_mark) WITH (fillfactor = 97)
) PARTITION BY RANGE (group_id);
-- By the minute, so that the groups of a session share an entry. Pages are read in the order (group_minute(group_id), group_id), which sorts a
-- minute at a time.
-- Without the tenant, which the session's UUID has in it: a plan made while the month is new would look for a group's key in an index that begins
-- with the tenant.
-- Pages keep room for the groups that a session gets later: without it the end of each session would split its page in two.
CREATE INDEX event_groups_by_session ON event_groups (session_uuid, group_minute(group_id)) WITH (fillfactor = 60);
-- Rising values, so every insert goes to the last page: the cheapest index there is, and the only exact way to find what was committed.
CREATE INDEX event_groups_by_transaction ON event_groups (transaction_id);

-- One row for the groups that a transaction wrote for one tenant, apart from the groups, which are written once and never changed. They share
-- a row because many messages share a transaction under load. Partitioned by the same bounds as the groups, so that retention drops both.
CREATE TABLE event_positions (
  -- Of the last of these groups; the others have the ones before.
  position bigint NOT NULL,
  transaction_id xid8 NOT NULL,
  tenant_id uuid NOT NULL,
  last_group_id uuid NOT NULL,
  -- In their order; NULL where the last is the only one.
  earlier_group_ids uuid[]
) PARTITION BY RANGE (last_group_id);
CREATE INDEX event_positions_in_order ON event_positions (position);
CREATE INDEX event_positions_of_tenant ON event_positions (tenant_id, position);
-- Where a group is looked for. After a restore two transactions may have one id.
CREATE INDEX event_positions_by_transaction ON event_positions (transaction_id);

-- What the sequencer has done: the newest row counts. Appended, not updated: while an old transaction is open no dead version can be
-- removed, and all versions of one row would be read each time.
CREATE TABLE event_batches (
  last_position bigint PRIMARY KEY,
  -- Every group whose transaction this snapshot sees has a position.
  seen pg_snapshot NOT NULL,
  -- The cluster whose transactions the snapshot means; another one after a restore.
  system_identifier bigint NOT NULL,
  positioned_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- How far each consumer of all events has read. Retention keeps what a consumer has not read.
CREATE TABLE event_cursors (
  consumer text PRIMARY KEY,
  position bigint NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now()
);

SELECT isolate_tenants('{event_groups}', 'SELECT, INSERT', 'current_tenant_uuid()');
SELECT isolate_tenants('{event_positions}', 'SELECT', 'current_tenant_uuid()');
GRANT SELECT, INSERT, UPDATE, DELETE ON event_batches, event_cursors TO fleet_system;
