-- By message, for its erasure. The first statement removes what a process that died has left.
DROP INDEX CONCURRENTLY IF EXISTS callback_tokens_by_message;
CREATE INDEX CONCURRENTLY callback_tokens_by_message ON callback_tokens (tenant_id, message_id);
