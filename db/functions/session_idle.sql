-- When sessions that have not ended idle out: each its timeout after the last change of its messages; while a message
-- or a plan of it is not over, a whole timeout from now. A time to come may be too early, never too late: whoever ends
-- sessions asks again then. However many messages a session has, only its newest one is read (in the order of the
-- index: a sort would read all), and those of the five seconds before its last change once it idles: the last changes
-- of all others are late (late_changes.sql). The caller holds the locks of the sessions.
CREATE FUNCTION idle_times(of_tenants text[], of_sessions text[])
  RETURNS TABLE (tenant_id text, session_id text, idles_at timestamptz)
  LANGUAGE plpgsql STABLE SET enable_sort = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY SELECT s.tenant_id, s.session_id, t.timeout + CASE
      WHEN EXISTS (SELECT 1 FROM running_messages r WHERE r.tenant_id = s.tenant_id AND r.session_id = s.session_id
                      AND r.state IN ('submitted', 'working', 'input-required'))
                      OR has_open_plan(s.tenant_id, s.session_id) THEN now()
      WHEN x.changed_at + t.timeout > now() THEN x.changed_at
      ELSE greatest(x.changed_at,
        (SELECT max(m.updated_at) FROM messages m
        WHERE m.session_uuid = session_uuid(uuid_of(s.tenant_id), s.session_id) AND m.tenant_id = s.tenant_id
                                      AND m.message_id >= late_bound(x.changed_at))) END
    FROM unnest(of_tenants, of_sessions) AS given (tenant_id, session_id) JOIN sessions s USING (tenant_id, session_id)
    CROSS JOIN LATERAL (SELECT s.idle_timeout_seconds * interval '1 s' AS timeout OFFSET 0) t
    CROSS JOIN LATERAL (SELECT greatest(s.created_at,
      (SELECT m.updated_at FROM messages m
        WHERE m.session_uuid = session_uuid(uuid_of(s.tenant_id), s.session_id) AND m.tenant_id = s.tenant_id
          AND m.message_id >= id_bound('msg', (s.created_at - interval '1 day')::date)
          ORDER BY m.message_id DESC LIMIT 1),
      (SELECT max(l.changed_at) FROM late_changes l
        WHERE l.tenant_id = s.tenant_id AND l.session_id = s.session_id)) AS changed_at OFFSET 0) x;
END $$;
