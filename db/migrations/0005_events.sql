-- Events, and their positions: the order in which readers see them, given after the commit (db/functions/events/position_events.sql). Ids of
-- events and of transactions commit out of order, so neither can be a reader's cursor.

-- The minute of an id, or nearly so: the first 32 of its 48 bits of milliseconds.
CREATE FUNCTION group_minute(group_id uuid) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT ('x' || left(group_id::text, 8))::bit(32)::integer $$;

-- One row for the events that an accept, complete or cancel transaction wrote about one message, or for another event: an index entry for each
-- event would cost a short message more than all its other rows. Read by the view `events` (db/functions/events/events.sql).
CREATE TABLE event_groups (
  occurred_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- The transaction that wrote it: tells the sequencer which groups have been committed since it looked.
  transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
  -- Of `events`. Not generated: every statement would parse the expression anew.
  event_count smallint NOT NULL DEFAULT 1,
  -- A UUID of version 7 that ends with 00; the id of each event has its place instead. Ids rise with time within a process, so the key gives a
  -- tenant's newest events first.
  group_id uuid NOT NULL,
  tenant_id text NOT NULL, session_id text NOT NULL DEFAULT '',
  -- Without their prefixes. The dispatch is that of all events about a dispatch. No trace: the message starts its own, which has the message's UUID.
  message_id uuid, dispatch_id uuid, trace_id uuid,
  -- [[event_type, payload, severity], …], without 'info'. What the columns say is not repeated in the payloads of every message's events.
  -- Text: half as long as jsonb where members are so short.
  events json NOT NULL,
  -- With the count a tenant's list is counted and skipped through by the key alone.
  PRIMARY KEY (tenant_id, group_id) INCLUDE (event_count)
) PARTITION BY RANGE (group_id);
-- By the minute, so that the groups of a session share an entry. Pages are read in the order (group_minute(group_id), group_id), which sorts a
-- minute at a time.
-- The session first, as in messages_by_session: a plan made while the month is new would look for a group's key here.
CREATE INDEX event_groups_by_session ON event_groups (session_id, group_minute(group_id));
-- Rising values, so every insert goes to the last page: the cheapest index there is, and the only exact way to find what was committed.
CREATE INDEX event_groups_by_transaction ON event_groups (transaction_id);

-- One row for the groups that a transaction wrote for one tenant, apart from the groups, which are written once and never changed. They share
-- a row because many messages share a transaction under load. Partitioned by the same bounds as the groups, so that retention drops both.
CREATE TABLE event_positions (
  -- Of the last of these groups; the others have the ones before.
  position bigint NOT NULL,
  tenant_id text NOT NULL,
  transaction_id xid8 NOT NULL,
  -- In their order.
  group_ids uuid[] NOT NULL,
  last_group_id uuid NOT NULL
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

SELECT isolate_tenants('{event_groups}', 'SELECT, INSERT');
SELECT isolate_tenants('{event_positions}', 'SELECT');
GRANT SELECT, INSERT, UPDATE, DELETE ON event_batches, event_cursors TO fleet_system;
