-- Spans of traces that nothing else on the record tells of: tool calls and streamed output of messages (docs/traces.md). Everything else of a
-- trace is derived from messages, dispatches, events, requests to humans and plans when it is read, so that a short message writes nothing.

-- A span belongs to the trace of its message. `error_type` NULL: it did not fail.
CREATE TABLE trace_spans (
  tenant_id text NOT NULL, message_id text COLLATE "C" NOT NULL, span_id text NOT NULL,
  parent_span_id text NOT NULL,
  name text NOT NULL, kind text NOT NULL,
  started_at timestamptz NOT NULL, ended_at timestamptz NOT NULL,
  error_type text,
  attributes jsonb NOT NULL,
  -- Since when it waits to be exported by itself, because it was written after its message (docs/traces.md#export). NULL: it does not.
  late_at timestamptz,
  PRIMARY KEY (tenant_id, message_id, span_id)
);

-- Few spans are late.
CREATE INDEX late_spans ON trace_spans (late_at) WHERE late_at IS NOT NULL;

-- How far traces have been exported. `tried_at`: after a pause of a day the exporter begins with what is new. One process exports at a time,
-- until its lease ends.
CREATE TABLE trace_exports (
  exporter text PRIMARY KEY,
  position bigint NOT NULL,
  tried_at timestamptz NOT NULL DEFAULT now(),
  leased_by uuid, leased_until timestamptz
);

SELECT isolate_tenants('{trace_spans}', 'SELECT');
GRANT SELECT, INSERT, UPDATE, DELETE ON trace_exports TO fleet_system;
