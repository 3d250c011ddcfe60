-- Gives positions to groups of events that were committed since the last batch: `most` of them, and the rest of the
-- last one's transaction. Returns how many; NULL while another process does this. All is one transaction, so a process
-- that dies leaves nothing half done.
--
-- Every group has the id of the transaction that wrote it. A snapshot sees a transaction once it is committed, so the
-- new groups are those of transactions that `present` sees and the snapshot of the last batch did not: those that began
-- since, and those that were under way. An old open transaction is one more id in the list and delays no other. Within
-- a batch groups follow their transactions' ids, which are given with the first write: a transaction whose first write
-- followed the commit of another one comes after it. Transactions that overlap come in any order: one that already had
-- its id and then waited for a lock of the other may come first, although it saw what the other committed.
CREATE FUNCTION position_events(most integer) RETURNS integer LANGUAGE plpgsql
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  last event_batches;
  present pg_snapshot;
  cluster bigint := (SELECT system_identifier FROM pg_control_system());
  low xid8;
  high xid8;
  late xid8[];
  reached boolean;
  positioned integer;
  newest bigint;
BEGIN
  PERFORM act_as_system();
  -- Each statement below sees what was committed before it: also the batch of the process that held this lock before.
  IF NOT pg_try_advisory_xact_lock(hashtextextended('position_events', 0)) THEN
    RETURN NULL;
  END IF;
  SELECT * INTO last FROM event_batches b ORDER BY b.last_position DESC LIMIT 1;
  IF last.system_identifier IS DISTINCT FROM cluster THEN
    RETURN position_events_in_new_cluster(last, cluster, most);
  END IF;
  present := pg_current_snapshot();
  low := pg_snapshot_xmax(last.seen);
  high := pg_snapshot_xmax(present);
  -- Beyond `most` the batch ends with a transaction, and the next one goes on from there.
  high := coalesce((SELECT (e.transaction_id::text::bigint + 1)::text::xid8 FROM event_groups e
    WHERE e.transaction_id >= low AND e.transaction_id < high ORDER BY e.transaction_id OFFSET most - 1 LIMIT 1), high);
  late := ARRAY(SELECT x FROM pg_snapshot_xip(last.seen) x WHERE pg_visible_in_snapshot(x, present));
  -- Rows of a restored dump may have ids of the old cluster that this one reaches later: they have positions already,
  -- and keep them.
  reached := EXISTS (SELECT 1 FROM event_positions p WHERE p.transaction_id >= low AND p.transaction_id < high)
    OR EXISTS (SELECT 1 FROM event_positions p WHERE p.transaction_id = ANY (late));
  WITH given AS (
    INSERT INTO event_positions (position, tenant_id, transaction_id, earlier_group_ids, last_group_id)
      SELECT coalesce(last.last_position, 0) + sum(g.groups) OVER (ORDER BY g.transaction_id,
             g.tenant_id ROWS UNBOUNDED PRECEDING), g.tenant_id, g.transaction_id,
               CASE WHEN g.groups > 1 THEN g.group_ids[:g.groups - 1] END, g.group_ids[g.groups]
        FROM (SELECT e.transaction_id, e.tenant_id, count(*) AS groups,
          array_agg(e.group_id ORDER BY e.group_id) AS group_ids
                FROM (SELECT n.transaction_id, n.tenant_id, n.group_id FROM event_groups n
                       WHERE n.transaction_id >= low AND n.transaction_id < high
                         AND pg_visible_in_snapshot(n.transaction_id, present)
                      UNION ALL
                      SELECT n.transaction_id, n.tenant_id, n.group_id FROM event_groups n
                        WHERE n.transaction_id = ANY (late)) e
               WHERE NOT reached OR position_of(e.tenant_id, e.group_id, e.transaction_id) IS NULL
               GROUP BY e.transaction_id, e.tenant_id) g
      RETURNING position, 1 + coalesce(cardinality(earlier_group_ids), 0) AS groups)
  SELECT coalesce(sum(g.groups), 0), max(g.position) INTO positioned, newest FROM given g;
  IF positioned > 0 OR high < pg_snapshot_xmax(present) THEN
    PERFORM note_event_batch(coalesce(newest, last.last_position), snapshot_below(present, high), cluster);
  END IF;
  RETURN positioned;
END $$;

-- The first batches in a cluster: of a new database, or after a restore. Transaction ids of another cluster mean
-- nothing here, so this looks for groups without a position, from an hour before the newest batch on: no transaction of
-- the platform lasts that long, and clocks differ by less. Afterwards the snapshot of this cluster counts.
CREATE FUNCTION position_events_in_new_cluster(last event_batches, cluster bigint, most integer)
  RETURNS integer LANGUAGE plpgsql
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  present pg_snapshot := pg_current_snapshot();
  earliest uuid := id_bound(NULL, coalesce(last.positioned_at - interval '1 hour', to_timestamp(0)))::uuid;
  positioned integer;
BEGIN
  WITH given AS (
    INSERT INTO event_positions (position, tenant_id, transaction_id, earlier_group_ids, last_group_id)
      SELECT coalesce(last.last_position, 0) + sum(g.groups) OVER (ORDER BY g.group_ids[1] ROWS UNBOUNDED PRECEDING),
             g.tenant_id, g.transaction_id, CASE WHEN g.groups > 1 THEN g.group_ids[:g.groups - 1] END,
               g.group_ids[g.groups]
        FROM (SELECT e.transaction_id, e.tenant_id, count(*) AS groups,
          array_agg(e.group_id ORDER BY e.group_id) AS group_ids
                FROM (SELECT n.transaction_id, n.tenant_id, n.group_id FROM tenants t CROSS JOIN LATERAL (
                        SELECT v.transaction_id, v.tenant_id, v.group_id FROM event_groups v
                          WHERE v.tenant_id = uuid_of(t.tenant_id) AND v.group_id >= earliest
                           AND position_of(v.tenant_id, v.group_id, v.transaction_id) IS NULL) n
                       ORDER BY n.group_id LIMIT most) e
               GROUP BY e.transaction_id, e.tenant_id) g
      RETURNING 1 + coalesce(cardinality(earlier_group_ids), 0) AS groups)
  SELECT coalesce(sum(g.groups), 0) INTO positioned FROM given g;
  IF positioned < most THEN
    PERFORM note_event_batch(coalesce(last.last_position, 0) + positioned, present, cluster);
  ELSE
    PERFORM note_event_batch(coalesce(last.last_position, 0) + positioned, coalesce(last.seen, '1:1:'),
      coalesce(last.system_identifier, 0), coalesce(last.positioned_at, to_timestamp(0)));
  END IF;
  RETURN positioned;
END $$;

-- A batch without groups has the last position of the batch before, and replaces it.
CREATE FUNCTION note_event_batch(new_last bigint, snapshot pg_snapshot, cluster bigint,
  at timestamptz DEFAULT clock_timestamp())
RETURNS void LANGUAGE sql AS $$
  INSERT INTO event_batches (last_position, seen, system_identifier, positioned_at)
    VALUES (new_last, snapshot, cluster, at)
    ON CONFLICT (last_position) DO UPDATE SET seen = excluded.seen, system_identifier = excluded.system_identifier,
      positioned_at = excluded.positioned_at
$$;

-- The snapshot, as if no transaction from this id on had begun.
CREATE FUNCTION snapshot_below(snapshot pg_snapshot, bound xid8) RETURNS pg_snapshot LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN bound >= pg_snapshot_xmax(snapshot) THEN snapshot ELSE
    format('%s:%s:%s', least(pg_snapshot_xmin(snapshot), bound), bound,
      (SELECT string_agg(x::text, ',' ORDER BY x) FROM pg_snapshot_xip(snapshot) x WHERE x < bound))::pg_snapshot END
$$;

-- All groups of a row, in their order.
CREATE FUNCTION groups_of(p event_positions) RETURNS uuid[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT p.earlier_group_ids || p.last_group_id $$;

-- The position of a group; NULL while it has none.
CREATE FUNCTION position_of(of_tenant uuid, of_group uuid, of_transaction xid8) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT p.position - cardinality(groups_of(p)) + array_position(groups_of(p), of_group) FROM event_positions p
   WHERE p.transaction_id = of_transaction AND p.tenant_id = of_tenant AND of_group = ANY (groups_of(p))
$$;
