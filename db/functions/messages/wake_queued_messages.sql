-- Marks messages that wait for a free agent, because one has room: those whose decision waits for this instance first, then the oldest that
-- could use it. Their workflows look again at once instead of at their next, slower look. Gives [{tenant_id, message_id, session_id}] to
-- wake after the commit; NULL for none.
CREATE FUNCTION wake_queued_messages(of_tenant text, free_type text, free_instance text, at_most integer) RETURNS jsonb
  LANGUAGE plpgsql AS $$
DECLARE
  woken jsonb;
BEGIN
  IF NOT EXISTS (SELECT 1 FROM running_messages r WHERE r.tenant_id = of_tenant AND r.unrouted_since IS NOT NULL) THEN
    RETURN NULL;
  END IF;
  -- The node that ends its saturation wakes them.
  IF EXISTS (SELECT 1 FROM agents a WHERE a.tenant_id = of_tenant AND a.instance_id = free_instance AND is_saturated(a)) THEN
    RETURN NULL;
  END IF;
  WITH decided AS MATERIALIZED (
    SELECT r.tenant_id, r.message_id FROM running_messages r
     WHERE r.tenant_id = of_tenant AND r.instance_id = free_instance AND r.unrouted_since IS NOT NULL AND r.resolution IS NOT NULL
       AND NOT r.holds_slot AND r.wake_requested_at IS NULL
     ORDER BY r.unrouted_since LIMIT at_most FOR UPDATE SKIP LOCKED),
  others AS MATERIALIZED (
    SELECT r.tenant_id, r.message_id FROM running_messages r
     WHERE r.tenant_id = of_tenant AND r.unrouted_since IS NOT NULL AND NOT r.holds_slot AND r.wake_requested_at IS NULL
       AND coalesce(r.agent_type, r.want_agent_type, free_type) = free_type
       AND coalesce(r.want_instance_id, free_instance) = free_instance
       AND r.message_id NOT IN (SELECT d.message_id FROM decided d)
       AND (r.resolution IS NULL OR NOT EXISTS (SELECT 1 FROM agents a WHERE a.tenant_id = r.tenant_id
             AND a.instance_id = r.instance_id AND a.deregistered_at IS NULL AND a.status IN ('available', 'unknown', 'busy')))
     ORDER BY r.created_at LIMIT at_most - (SELECT count(*) FROM decided) FOR UPDATE SKIP LOCKED),
  marked AS (
    UPDATE running_messages r SET wake_requested_at = now() FROM (TABLE decided UNION ALL TABLE others) picked
     WHERE r.tenant_id = picked.tenant_id AND r.message_id = picked.message_id
    RETURNING r.tenant_id, r.message_id, r.session_id)
  SELECT jsonb_agg(to_jsonb(marked)) INTO woken FROM marked;
  RETURN woken;
END $$;
