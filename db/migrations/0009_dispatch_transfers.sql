-- The dispatches that a stopping mesh node offers to the next nodes of their agents (docs/durability.md), with what it knew of them. A dispatch is
-- offered while it has the epoch of its row. The node that claims it raises the epoch, and deletes the row once the agent is connected.

CREATE TABLE dispatch_transfers (
  tenant_id text NOT NULL, instance_id text NOT NULL, dispatch_id text COLLATE "C" NOT NULL,
  mesh_id text NOT NULL, -- the node that offers it
  epoch bigint NOT NULL, -- of the dispatch
  resume_token_hashes bytea[] NOT NULL, -- SHA-256; an agent with one of these tokens may continue
  -- JSON of the output so far. Not jsonb: a chunk may end inside a surrogate pair, which jsonb refuses.
  progress text NOT NULL,
  expires_at timestamptz NOT NULL, -- then no node may accept it any more, and the dispatch is lost
  PRIMARY KEY (tenant_id, instance_id, dispatch_id)
);

SELECT isolate_tenants('{dispatch_transfers}');
