-- From here on the transaction acts as the application and sees one tenant. The first statement of every function that
-- a node calls.
CREATE FUNCTION act_for_tenant(of_tenant text) RETURNS text LANGUAGE sql
  AS $$ SELECT CASE WHEN set_config('role', 'fleet_app', true) <> ''
    THEN set_config('app.tenant_id', of_tenant, true) END $$;

-- From here on the transaction acts as the platform and sees every tenant: for statements that are a whole transaction
-- (`systemCall` in db/pool.ts).
CREATE FUNCTION act_as_system() RETURNS text LANGUAGE sql AS $$ SELECT set_config('role', 'fleet_system', true) $$;

-- How long the statement of a batch waits for a lock. Without `wait_for_locks` it only tries the locks that requests
-- hold; the 100 ms are for changes of the tables. With it, the one call that waits gives up after 2 s, so that others
-- have their turn.
CREATE FUNCTION limit_lock_wait(wait_for_locks boolean) RETURNS text LANGUAGE sql
  AS $$ SELECT set_config('lock_timeout', CASE WHEN wait_for_locks THEN '2s' ELSE '100ms' END, true) $$;

-- Locks a session for a change, if no other transaction holds it. The caller may hold it FOR SHARE: two such callers
-- that waited would wait for each other.
CREATE FUNCTION lock_session_at_once(of_tenant text, of_session text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM sessions s WHERE s.tenant_id = of_tenant AND s.session_id = of_session FOR NO KEY UPDATE NOWAIT;
  RETURN true;
EXCEPTION WHEN lock_not_available THEN
  RETURN false;
END $$;

CREATE FUNCTION milliseconds_between(earlier timestamptz, later timestamptz)
  RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT greatest(0, (extract(epoch FROM later - earlier) * 1000)::bigint) $$;

-- Writes the events of a transaction about a message as one group: as `event_of` makes them, sorted in the order of
-- `event_types`, without NULLs.
CREATE FUNCTION record_group(of_tenant text, event_id text, of_session text, of_message text, of_dispatch text,
  trace_id text, given jsonb[])
  RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  said jsonb[] := array_remove(given, NULL);
BEGIN
  IF cardinality(said) > 0 THEN
    INSERT INTO event_groups (tenant_id, group_id, session_uuid, session_name, message_id, dispatch_id, trace_id,
      types, instance_mark, events)
      SELECT uuid_of(of_tenant), group_of(event_id), session_uuid(uuid_of(of_tenant), of_session),
             session_name(of_session), uuid_of(of_message), uuid_of(of_dispatch), trace_id::uuid,
             bit_or(event_bit(e.event ->> 0)),
             instance_mark(max(coalesce(e.event #>> '{1,instance_id}', e.event #>> '{1,0,instance_id}'))),
             jsonb_agg(e.event -> 1 ORDER BY event_bit(e.event ->> 0))
        FROM unnest(said) AS e (event);
  END IF;
END $$;

-- dispatch.success or dispatch.failed of a dispatch that has just ended, for a group; NULL for one that was never sent.
CREATE FUNCTION dispatch_end_event(d dispatches) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  failed boolean := d.error_code IS NOT NULL;
BEGIN
  RETURN CASE WHEN d.sent_at IS NOT NULL THEN
    event_of(CASE WHEN failed THEN 'dispatch.failed' ELSE 'dispatch.success' END, jsonb_strip_nulls(jsonb_build_object(
      'instance_id', d.instance_id, 'error', d.error_code, 'duration_ms', milliseconds_between(d.sent_at, d.ended_at))),
      CASE WHEN failed THEN 'warning' ELSE 'info' END) END;
END $$;

-- Writes the event of dispatch_end_event alone.
CREATE FUNCTION record_dispatch_end(event_id text, d dispatches, session_id text, trace_id text)
  RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM record_group(d.tenant_id, event_id, session_id, d.message_id, d.dispatch_id, trace_id,
    ARRAY[dispatch_end_event(d)]);
END $$;
