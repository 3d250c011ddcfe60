-- The position of the newest event that has one; 0 before the first.
CREATE FUNCTION event_head() RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT b.last_position FROM event_batches b ORDER BY b.last_position DESC LIMIT 1), 0)
$$;

-- An event with its position. `message_id`: of its message, for an event of a message or a dispatch.
CREATE TYPE positioned_event AS (
  position bigint, event_id text, event_type text, category text, source text, severity text, tenant_id text, session_id text, trace_id text,
  occurred_at timestamptz, payload jsonb, message_id text
);

-- The payload as its type defines it. The transactions that every message takes leave out of it what other columns of the event say.
CREATE FUNCTION payload_of(e events) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN e.event_type = 'session.created' THEN e.payload || jsonb_build_object('session_id', e.session_id, 'tenant_id', e.tenant_id)
              WHEN e.event_type IN ('message.received', 'message.completed', 'message.error', 'dispatch.sent')
                THEN e.payload || jsonb_build_object('session_id', e.session_id)
              ELSE e.payload END
$$;

-- The first `most` positions after this one, with their events: of these tenants, or of all for NULL. An event that was erased leaves a row of
-- its position only. STABLE, so that it reads with the snapshot of the statement that calls it, as event_head does.
CREATE FUNCTION read_events(after bigint, of_tenants text[], most integer) RETURNS SETOF positioned_event LANGUAGE plpgsql STABLE
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  found event_positions[];
BEGIN
  -- Each row has an event or more, the first of which may be at or before the position.
  IF of_tenants IS NULL THEN
    found := ARRAY(SELECT q FROM event_positions q WHERE q.position > after ORDER BY q.position LIMIT most);
  ELSE
    found := ARRAY(SELECT q.row FROM unnest(of_tenants) AS t (tenant_id) CROSS JOIN LATERAL (
        SELECT x AS row FROM event_positions x WHERE x.tenant_id = t.tenant_id AND x.position > after ORDER BY x.position LIMIT most) q
      ORDER BY (q.row).position LIMIT most);
  END IF;
  RETURN QUERY SELECT p.position, e.event_id, e.event_type, e.category, e.source, e.severity, e.tenant_id, e.session_id, e.trace_id,
      e.occurred_at, payload_of(e), coalesce(e.payload ->> 'message_id', (SELECT d.message_id FROM dispatches d
        WHERE e.category = 'dispatch' AND d.tenant_id = e.tenant_id AND d.dispatch_id = e.payload ->> 'dispatch_id'))
    FROM (SELECT g.position - cardinality(g.event_ids) + i.place AS position, g.tenant_id, 'evt_' || i.id AS event_id
            FROM unnest(found) g CROSS JOIN LATERAL unnest(g.event_ids) WITH ORDINALITY AS i (id, place)
           WHERE g.position - cardinality(g.event_ids) + i.place > after ORDER BY 1 LIMIT most) p
    LEFT JOIN events e ON e.tenant_id = p.tenant_id AND e.event_id = p.event_id ORDER BY p.position;
END $$;

-- Whether every event with an id below this bound has been read by all consumers: then the partitions of the events and of their positions may
-- be dropped. Only events of transactions that the sequencer has perhaps not seen are looked at one by one: all of a month would take minutes.
CREATE FUNCTION events_consumed(bound text) RETURNS boolean LANGUAGE sql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS $$
  SELECT NOT EXISTS (SELECT 1 FROM events e
           WHERE e.event_id < bound AND position_of(e.tenant_id, e.event_id, e.transaction_id) IS NULL
             AND e.transaction_id >= coalesce((SELECT CASE WHEN b.system_identifier = (SELECT system_identifier FROM pg_control_system())
                   THEN pg_snapshot_xmin(b.seen) END FROM event_batches b ORDER BY b.last_position DESC LIMIT 1), '0'::xid8))
     AND NOT EXISTS (SELECT 1 FROM event_positions p
           WHERE p.position > coalesce((SELECT min(c.position) FROM event_cursors c), event_head())
             AND ('evt_' || p.event_ids[1]) COLLATE "C" < bound)
$$;
