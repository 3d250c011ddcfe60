-- Totals of sessions with many messages: those up to `counted_until`. Reports and the usage roll-up bring them forward
-- (db/functions/session_totals.sql), so they cost messages nothing, and short sessions have no row.
CREATE TABLE session_totals (
  turns bigint NOT NULL,
  tenant_id text NOT NULL, session_id text NOT NULL,
  counted_until text COLLATE "C" NOT NULL, -- a message's id
  tokens numeric NOT NULL,
  open_ids text[] COLLATE "C" NOT NULL, -- of these messages those that were not over, whose tokens are not counted
  PRIMARY KEY (tenant_id, session_id)
);
SELECT isolate_tenants('{session_totals}');
