-- Starts waiting deliveries in the free slots of a lane: there is one lane for approvals, and one for everything else.
-- Tenants take turns, those with the fewest slots first. A tenant gets another slot only while it has fewer slots than
-- are still free, so that other tenants find room, and at most `tenant_max`; a receiver has at most `receiver_max`.
-- Deliveries that have run for `slow_ms` use up at most half of the slots, so that receivers that hang leave slots to
-- others; but never more than twice `slots` deliveries run. A receiver whose circuit breaker is open gets nothing; once
-- `open_until` has passed, it gets one delivery, in one of the lanes, as a probe. Each call looks at `receivers_max`
-- receivers of a tenant; if more wait, the next call goes on after them (delivery_turns), so that a tenant with many
-- receivers slows only itself. One process claims at a time, so that no slot is given twice. `check_ms` after a
-- delivery was started it is looked at: if it has no workflow, `overdueQueued` (deliveries/queue.ts) starts that again.
CREATE FUNCTION claim_deliveries(
  of_approvals boolean, slots integer, tenant_max integer, receiver_max integer, receivers_max integer, slow_ms bigint,
    check_ms bigint)
RETURNS TABLE (tenant_id text, queue_id text, input jsonb, starts integer) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  -- The query below is planned at each call, for the queue as it is then. That takes longer than this check.
  IF NOT EXISTS (SELECT 1 FROM delivery_queue q WHERE q.started_at IS NULL AND q.is_approval = of_approvals)
      OR NOT pg_try_advisory_xact_lock(hashtextextended('claim_deliveries', 0)) THEN
    RETURN;
  END IF;
  RETURN QUERY
  WITH RECURSIVE
  -- The slots that are taken, and how many of them by slow deliveries.
  running AS MATERIALIZED (
    SELECT q.tenant_id, q.receiver, count(*) FILTER (WHERE q.is_approval = of_approvals)::integer AS slots,
           count(*) FILTER (WHERE q.is_approval = of_approvals
             AND q.started_at < now() - slow_ms * interval '1 ms') AS slow
      FROM delivery_queue q WHERE q.started_at IS NOT NULL GROUP BY q.tenant_id, q.receiver),
  free AS (
    SELECT least(slots - taken.prompt - least(taken.slow, slots / 2), 2 * slots - taken.prompt - taken.slow) AS slots
      FROM (SELECT coalesce(sum(r.slots - r.slow), 0) AS prompt, coalesce(sum(r.slow), 0) AS slow
        FROM running r) taken),
  waiting AS NOT MATERIALIZED (SELECT q.* FROM delivery_queue q
    WHERE q.started_at IS NULL AND q.is_approval = of_approvals),
  -- Steps through the index from tenant to tenant, and from receiver to receiver.
  tenants_waiting AS (
    (SELECT q.tenant_id FROM waiting q ORDER BY q.tenant_id LIMIT 1)
    UNION ALL
    SELECT (SELECT q.tenant_id FROM waiting q WHERE q.tenant_id > t.tenant_id ORDER BY q.tenant_id LIMIT 1)
      FROM tenants_waiting t WHERE t.tenant_id IS NOT NULL),
  receivers_waiting AS (
    SELECT t.tenant_id, 1 AS nth,
           (SELECT min(q.receiver) FROM waiting q
             WHERE q.tenant_id = t.tenant_id AND q.receiver >= coalesce(d.from_receiver, '')) AS receiver
      FROM tenants_waiting t LEFT JOIN delivery_turns d ON d.tenant_id = t.tenant_id AND d.is_approval = of_approvals
     WHERE t.tenant_id IS NOT NULL
    UNION ALL
    SELECT r.tenant_id, r.nth + 1,
      (SELECT min(q.receiver) FROM waiting q WHERE q.tenant_id = r.tenant_id AND q.receiver > r.receiver)
      FROM receivers_waiting r WHERE r.receiver IS NOT NULL AND r.nth <= receivers_max),
  -- The receiver from which the next call goes on.
  turns AS (
    INSERT INTO delivery_turns AS d (is_approval, tenant_id, from_receiver)
      SELECT of_approvals, w.tenant_id, w.receiver FROM receivers_waiting w
        WHERE w.nth > receivers_max AND w.receiver IS NOT NULL
      ON CONFLICT (tenant_id, is_approval) DO UPDATE SET from_receiver = excluded.from_receiver),
  turns_over AS (
    DELETE FROM delivery_turns d WHERE d.is_approval = of_approvals AND NOT EXISTS (SELECT 1 FROM receivers_waiting w
       WHERE w.tenant_id = d.tenant_id AND w.nth > receivers_max AND w.receiver IS NOT NULL)),
  -- How many deliveries each of these receivers may get now.
  room AS (
    SELECT w.tenant_id, w.receiver, b.open_until IS NOT NULL AS is_probe,
           CASE WHEN b.open_until IS NULL THEN receiver_max - coalesce(r.slots, 0)
                WHEN b.open_until <= now() AND r.slots IS NULL THEN 1 ELSE 0 END AS free
      FROM receivers_waiting w LEFT JOIN running r USING (tenant_id, receiver)
        LEFT JOIN receiver_breakers b USING (tenant_id, receiver)
     WHERE w.receiver IS NOT NULL AND w.nth <= receivers_max),
  -- The oldest deliveries of each, as many as it may get.
  candidates AS (
    SELECT room.tenant_id, room.receiver, room.is_probe, q.queue_id, q.queued_at, q.nth
      FROM room CROSS JOIN LATERAL (
        SELECT oldest.*, row_number() OVER (ORDER BY oldest.queued_at, oldest.queue_id) AS nth
          FROM (SELECT d.queue_id, d.queued_at FROM waiting d
            WHERE d.tenant_id = room.tenant_id AND d.receiver = room.receiver
                 ORDER BY d.queued_at, d.queue_id LIMIT greatest(0, room.free)) oldest) q),
  -- `turn`: how many slots the tenant has with this delivery.
  ranked AS (
    SELECT c.*, row_number() OVER (PARTITION BY c.tenant_id ORDER BY c.nth, c.queued_at)
                + coalesce((SELECT sum(r.slots) FROM running r WHERE r.tenant_id = c.tenant_id), 0) AS turn
      FROM candidates c),
  chosen AS MATERIALIZED (
    SELECT * FROM (
      SELECT r.*, row_number() OVER (ORDER BY r.turn, r.queued_at) AS place FROM ranked r
        WHERE r.turn <= tenant_max) placed
     -- Before this delivery the tenant has fewer slots (turn - 1) than are still free (slots - place + 1).
     WHERE placed.turn + placed.place - 1 <= (SELECT free.slots FROM free)),
  probing AS (
    UPDATE receiver_breakers b SET probe = c.queue_id, changed_at = now() FROM chosen c
     WHERE c.is_probe AND b.tenant_id = c.tenant_id AND b.receiver = c.receiver)
  UPDATE delivery_queue q SET started_at = now(), check_at = now() + check_ms * interval '1 ms', starts = q.starts + 1
    FROM chosen c
   WHERE q.tenant_id = c.tenant_id AND q.queue_id = c.queue_id
  RETURNING q.tenant_id, q.queue_id, q.input, q.starts;
END $$;
