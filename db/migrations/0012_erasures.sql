-- What operators have erased (erasure/): messages, sessions or a whole tenant. A row is the order, the progress and the report. It refers to no
-- tenant, because the report outlives it.
CREATE TABLE erasures (
  erasure_id text COLLATE "C" PRIMARY KEY,
  tenant_id text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('messages', 'sessions', 'tenant')),
  -- What was asked for. Once it is erased a digest stands in for it, because it may name a person.
  selection jsonb NOT NULL,
  digest text NOT NULL, -- SHA-256 of the selection
  requested_by text NOT NULL, requested_at timestamptz NOT NULL DEFAULT now(),
  next_at timestamptz NOT NULL DEFAULT now(), -- no process works on it before; meanwhile the lease of the one that does
  done_until text COLLATE "C" NOT NULL DEFAULT '', -- the last session or table that is done
  removed jsonb NOT NULL DEFAULT '{}', -- rows by table, workflows, and keys in Redis
  -- What it removes outside of the database at this moment: noted before, so that a crash leaves none of it out of the report
  -- (erasure/external-removal.ts).
  removing_workflows text[] NOT NULL DEFAULT '{}', removing_keys text[] NOT NULL DEFAULT '{}',
  finished_at timestamptz
);
CREATE INDEX erasures_due ON erasures (next_at) WHERE finished_at IS NULL;
CREATE UNIQUE INDEX erasures_of_tenant ON erasures (tenant_id) WHERE kind = 'tenant';

ALTER TABLE erasures ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY whole_platform ON erasures TO fleet_system USING (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON erasures TO fleet_system;
