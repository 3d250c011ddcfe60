-- The id of the message that a trace has its id from, where one began it (traceFrom in runtime/ids.ts); NULL for what
-- is no trace id.
CREATE FUNCTION message_of_trace(trace_id text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT CASE WHEN trace_id ~ '^[0-9a-f]{32}$' THEN 'msg_' || trace_id::uuid::text END $$;
