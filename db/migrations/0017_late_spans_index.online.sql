-- Few spans are late. The first statement removes what a process that died has left.
DROP INDEX CONCURRENTLY IF EXISTS late_spans;
CREATE INDEX CONCURRENTLY late_spans ON trace_spans (late_at) WHERE late_at IS NOT NULL;
