-- The position of the newest event that has one; 0 before the first.
CREATE FUNCTION event_head() RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT b.last_position FROM event_batches b ORDER BY b.last_position DESC LIMIT 1), 0)
$$;

-- An event with its position. `message_id`: of its message, for an event of a message or a dispatch.
CREATE TYPE positioned_event AS (
  position bigint, event_id text, event_type text, category text, source text, severity text, tenant_id text, session_id text, trace_id text,
  occurred_at timestamptz, payload jsonb, message_id text
);

-- The first `most` events after a position, in their order: of these tenants, or of all for NULL. STABLE, so that it reads with the snapshot
-- of the statement that calls it, as event_head does.
CREATE FUNCTION read_events(after bigint, of_tenants text[], most integer) RETURNS SETOF positioned_event LANGUAGE plpgsql STABLE
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  positions bigint[];
  tenant_ids text[];
  ids text[];
BEGIN
  IF of_tenants IS NULL THEN
    SELECT array_agg(p.position), array_agg(p.tenant_id), array_agg(p.event_id) INTO positions, tenant_ids, ids
      FROM (SELECT * FROM event_positions q WHERE q.position > after ORDER BY q.position LIMIT most) p;
  ELSE
    SELECT array_agg(p.position), array_agg(p.tenant_id), array_agg(p.event_id) INTO positions, tenant_ids, ids
      FROM (SELECT q.* FROM unnest(of_tenants) AS t (tenant_id) CROSS JOIN LATERAL (
              SELECT x.* FROM event_positions x WHERE x.tenant_id = t.tenant_id AND x.position > after ORDER BY x.position LIMIT most) q
            ORDER BY q.position LIMIT most) p;
  END IF;
  RETURN QUERY SELECT p.position, e.event_id, e.event_type, e.category, e.source, e.severity, e.tenant_id, e.session_id, e.trace_id,
      e.occurred_at, e.payload, coalesce(e.payload ->> 'message_id', (SELECT d.message_id FROM dispatches d
        WHERE e.category = 'dispatch' AND d.tenant_id = e.tenant_id AND d.dispatch_id = e.payload ->> 'dispatch_id'))
    FROM unnest(positions, tenant_ids, ids) AS p (position, tenant_id, event_id)
    JOIN events e ON e.tenant_id = p.tenant_id AND e.event_id = p.event_id ORDER BY p.position;
END $$;

-- Whether every event with an id below this bound has been read by all consumers: then the partitions of the events and of their positions may
-- be dropped.
CREATE FUNCTION events_consumed(bound text) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT NOT EXISTS (SELECT 1 FROM events e WHERE e.event_id < bound
             AND NOT EXISTS (SELECT 1 FROM event_positions p WHERE p.event_id = e.event_id))
     AND coalesce((SELECT max(p.position) FROM event_positions p WHERE p.event_id < bound), 0)
         <= coalesce((SELECT min(c.position) FROM event_cursors c), event_head())
$$;
