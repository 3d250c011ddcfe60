-- A cursor is the position of a group with the place of an event in it, as one number: readers go on after that event.
CREATE FUNCTION cursor_at(group_position bigint, place bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT group_position * 256 + place $$;
-- The position of the group that a cursor stands in.
CREATE FUNCTION group_position_at(cursor bigint)
  RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT cursor >> 8 $$;

-- The cursor after every event whose group has a position; 0 before the first.
CREATE FUNCTION event_head() RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT cursor_at(b.last_position, 255) FROM event_batches b ORDER BY b.last_position DESC LIMIT 1),
    0)
$$;

-- An event with its cursor. `message_id`: of its message, for an event of a message or a dispatch.
CREATE TYPE positioned_event AS (
  position bigint, event_id text, event_type text, category text, source text, severity text, tenant_id text,
  session_id text, trace_id text, occurred_at timestamptz, payload jsonb, message_id text
);

-- The first `most` events after this cursor: of these tenants, or of all for NULL. A group that was erased gives one
-- row, with its position only. STABLE, so that it reads with the snapshot of the statement that calls it, as event_head
-- does.
CREATE FUNCTION read_events(after bigint, of_tenants text[], most integer)
  RETURNS SETOF positioned_event LANGUAGE plpgsql STABLE
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  found event_positions[];
BEGIN
  -- One row more than `most`: each row has at least one event, but those of the first row may all be before the cursor.
  IF of_tenants IS NULL THEN
    found := ARRAY(SELECT q FROM event_positions q WHERE q.position >= group_position_at(after)
      ORDER BY q.position LIMIT most + 1);
  ELSE
    found := ARRAY(SELECT q.row FROM unnest(of_tenants) AS t (tenant_id) CROSS JOIN LATERAL (
        SELECT x AS row FROM event_positions x
          WHERE x.tenant_id = uuid_of(t.tenant_id) AND x.position >= group_position_at(after)
         ORDER BY x.position LIMIT most + 1) q
      ORDER BY (q.row).position LIMIT most + 1);
  END IF;
  -- OFFSET 0: the ids of a row are put together once, and not for each of its groups; and each group is looked up by
  -- its id. A plan made while the tables are small would join by the tenant alone.
  RETURN QUERY SELECT cursor_at(p.position, coalesce(place_of(e.event_id), 0)), e.event_id, e.event_type, e.category,
      e.source, e.severity, e.tenant_id, e.session_id, e.trace_id, e.occurred_at, e.payload, e.message_id
    FROM (SELECT g.position - g.groups + i.place AS position, g.tenant_id, i.group_id
            FROM (SELECT f.position, f.tenant_id, groups_of(f) AS group_ids, cardinality(groups_of(f)) AS groups
              FROM unnest(found) f OFFSET 0) g
            CROSS JOIN LATERAL unnest(g.group_ids) WITH ORDINALITY AS i (group_id, place)
           WHERE g.position - g.groups + i.place >= group_position_at(after) ORDER BY 1 LIMIT most + 1) p
    LEFT JOIN LATERAL (SELECT * FROM events v WHERE v.tenant_uuid = p.tenant_id AND v.group_id = p.group_id OFFSET 0) e
      ON true
   WHERE cursor_at(p.position, coalesce(place_of(e.event_id), 0)) > after ORDER BY 1 LIMIT most;
END $$;

-- The tenants whose events the relay of alerts reads together: tenants that have, or had, rules. One that fell behind
-- has a cursor of its own and is read by it, so it is left out.
CREATE FUNCTION tenants_with_alerts() RETURNS SETOF text LANGUAGE sql STABLE AS $$
  SELECT t.tenant_id FROM alert_revisions t
   WHERE NOT EXISTS (SELECT 1 FROM event_cursors own WHERE own.consumer = 'alerts/' || t.tenant_id)
$$;

-- Whether the relay of alerts has events to read. Without tenants_with_alerts it has none, and its cursor moves to the
-- newest event. Check and move are one statement with one snapshot, so that no event is skipped that was committed
-- after a rule.
CREATE FUNCTION alerts_have_events() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM act_as_system();
  UPDATE event_cursors c SET position = event_head(), updated_at = clock_timestamp()
   WHERE c.consumer = 'alerts' AND c.position < event_head() AND NOT EXISTS (SELECT 1 FROM tenants_with_alerts());
  RETURN NOT FOUND AND coalesce((SELECT c.position < event_head() FROM event_cursors c WHERE c.consumer = 'alerts'),
    true);
END $$;

-- Whether every event of a group below this bound has been read by all consumers: then the partitions of the groups and
-- of their positions may be dropped. Only groups of transactions that the sequencer has perhaps not seen are looked at
-- one by one: all of a month would take minutes.
CREATE FUNCTION events_consumed(bound uuid)
  RETURNS boolean LANGUAGE sql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS $$
  SELECT NOT EXISTS (SELECT 1 FROM event_groups g
           WHERE g.group_id < bound AND position_of(g.tenant_id, g.group_id, g.transaction_id) IS NULL
             AND g.transaction_id >= coalesce((SELECT CASE WHEN b.system_identifier = (SELECT system_identifier
             FROM pg_control_system())
                   THEN pg_snapshot_xmin(b.seen) END FROM event_batches b ORDER BY b.last_position DESC LIMIT 1),
                     '0'::xid8))
     AND NOT EXISTS (SELECT 1 FROM event_positions p
           WHERE p.position >= group_position_at(r.cursor) AND cursor_at(p.position, 255) > r.cursor
             AND coalesce(p.earlier_group_ids[1], p.last_group_id) < bound)
    FROM (SELECT coalesce((SELECT min(c.position) FROM event_cursors c), event_head()) AS cursor) r
$$;
