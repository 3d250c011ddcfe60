-- Marks messages that wait for an agent like this one, because it has room: those whose decision waits for it first, then the oldest that it could
-- take. Their workflows look again at once instead of at their next, slower look. Gives [{tenant_id, message_id, session_id}] to wake after
-- the commit; NULL for none.
CREATE FUNCTION wake_queued_messages(of_tenant text, free_type text, free_instance text, at_most integer) RETURNS jsonb
  LANGUAGE plpgsql AS $$
DECLARE
  own_queue text := queue_of(free_instance, NULL, NULL); -- of messages that wait for this agent alone
  woken jsonb;
BEGIN
  PERFORM set_full_at(of_tenant, free_instance, NULL);
  PERFORM recheck_full(of_tenant, 2);
  IF NOT any_queued(of_tenant) THEN
    RETURN NULL;
  END IF;
  -- The node that ends its saturation wakes them.
  IF EXISTS (SELECT 1 FROM agents a WHERE a.tenant_id = of_tenant AND a.instance_id = free_instance AND is_saturated(a)) THEN
    RETURN NULL;
  END IF;
  -- The oldest of each queue. Those that another transaction has are being routed.
  WITH oldest AS MATERIALIZED (
    SELECT r.message_id FROM unnest(queues_of(of_tenant, free_instance, free_type)) AS served (queue) CROSS JOIN LATERAL (
      SELECT x.message_id FROM running_messages x
       WHERE x.tenant_id = of_tenant AND x.queue = served.queue AND x.wake_requested_at IS NULL ORDER BY (x.resolution IS NULL), x.created_at LIMIT at_most + 8) r
     UNION ALL
    SELECT r.message_id FROM (SELECT x.message_id FROM running_messages x
       WHERE x.tenant_id = of_tenant AND x.queue = own_queue AND x.resolution IS NOT NULL AND x.wake_requested_at IS NULL
       ORDER BY x.unrouted_since LIMIT at_most + 8) r),
  picked AS MATERIALIZED (
    SELECT r.message_id FROM running_messages r WHERE r.tenant_id = of_tenant AND r.message_id = ANY (ARRAY(SELECT o.message_id FROM oldest o))
     ORDER BY CASE WHEN r.queue = own_queue AND r.resolution IS NOT NULL THEN r.unrouted_since END, r.created_at
     LIMIT at_most FOR UPDATE SKIP LOCKED),
  marked AS (
    UPDATE running_messages r SET wake_requested_at = now() FROM picked p
     WHERE r.tenant_id = of_tenant AND r.message_id = p.message_id
    RETURNING r.tenant_id, r.message_id, r.session_id)
  SELECT jsonb_agg(to_jsonb(marked)) INTO woken FROM marked;
  RETURN woken;
END $$;
