-- Events, and their positions: the order in which readers see them, given after the commit (db/functions/events/position_events.sql). Ids of
-- events and of transactions commit out of order, so neither can be a reader's cursor.

-- Ids rise with time within a process, so the key gives a tenant's newest events first.
CREATE TABLE events (
  tenant_id text NOT NULL, event_id text COLLATE "C" NOT NULL,
  event_type text NOT NULL, category text NOT NULL,
  source text NOT NULL, severity text NOT NULL,
  session_id text NOT NULL DEFAULT '', trace_id text,
  occurred_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  payload jsonb NOT NULL,
  -- The transaction that wrote it: tells the sequencer which events have been committed since it looked.
  transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
  PRIMARY KEY (tenant_id, event_id)
) PARTITION BY RANGE (event_id);
-- By the minute (the first 32 of an id's 48 bits of milliseconds), so that the events of a session share an entry: whole ids would take five
-- times the room. Pages are read in the order (left(event_id, 12), event_id), which sorts a minute at a time.
-- The session first, as in messages_by_session: a plan made while the month is new would look for an event's key here.
CREATE INDEX events_by_session ON events (session_id, tenant_id, "left"(event_id, 12));
-- Rising values, so every insert goes to the last page: the cheapest index there is, and the only exact way to find what was committed.
CREATE INDEX events_by_transaction ON events (transaction_id);

-- One row for the events that a transaction wrote for one tenant, apart from the events, which are written once and never changed. They share
-- a row because many messages share a transaction under load. Partitioned by the same bounds as events, so that retention drops both.
CREATE TABLE event_positions (
  -- Of the last of these events; the others have the ones before.
  position bigint NOT NULL,
  tenant_id text NOT NULL,
  transaction_id xid8 NOT NULL,
  -- Without their prefix, in their order.
  event_ids uuid[] NOT NULL,
  last_event_id text COLLATE "C" NOT NULL
) PARTITION BY RANGE (last_event_id);
CREATE INDEX event_positions_in_order ON event_positions (position);
CREATE INDEX event_positions_of_tenant ON event_positions (tenant_id, position);
-- Where an event is looked for. After a restore two transactions may have one id.
CREATE INDEX event_positions_by_transaction ON event_positions (transaction_id);

-- What the sequencer has done: the newest row counts. Appended, not updated: while an old transaction is open no dead version can be
-- removed, and all versions of one row would be read each time.
CREATE TABLE event_batches (
  last_position bigint PRIMARY KEY,
  -- Every event whose transaction this snapshot sees has a position.
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

SELECT isolate_tenants('{events}', 'SELECT, INSERT');
SELECT isolate_tenants('{event_positions}', 'SELECT');
GRANT SELECT, INSERT, UPDATE, DELETE ON event_batches, event_cursors TO fleet_system;
