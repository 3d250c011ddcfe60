-- Since when a span waits to be exported by itself, because it was written after its message (docs/traces.md#export). NULL: it does not.
ALTER TABLE trace_spans ADD COLUMN late_at timestamptz;
