-- Retention (db/retention.ts): which monthly partitions there are, and which of them hold nothing that is still needed.

-- The partitions of a table, the oldest first. `lower_bound` '': whatever is older. `ends_at`: the end of its month.
CREATE FUNCTION partitions_of(of_table text)
  RETURNS TABLE (name text, lower_bound text, upper_bound text, ends_at timestamptz)
  LANGUAGE sql STABLE AS $$
    SELECT c.relname::text, coalesce(substring(b.bound FROM 'FROM \(''([^'']*)''\)'), ''),
           substring(b.bound FROM 'TO \(''([^'']*)''\)'),
           (to_date(right(c.relname, 7), 'YYYY_MM') + interval '1 month') AT TIME ZONE 'UTC'
      FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        CROSS JOIN LATERAL (SELECT pg_get_expr(c.relpartbound, c.oid) AS bound) b
     WHERE i.inhparent = ('public.' || quote_ident(of_table))::regclass AND NOT i.inhdetachpending ORDER BY c.relname
  $$;

-- Whether a partition may be dropped: everything in it is over, was delivered and is counted elsewhere. Whatever else
-- must be kept until it was used is one more condition here; usage is added up before a partition is dropped
-- (db/retention.ts). A message that has ended stays so, and new rows go to newer partitions: what this says once stays
-- true.
CREATE FUNCTION partition_is_disposable(of_table text, partition text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
  p record;
BEGIN
  SELECT * INTO p FROM partitions_of(of_table) AS found WHERE found.name = partition;
  RETURN CASE of_table
    WHEN 'messages' THEN
      NOT EXISTS (SELECT 1 FROM running_messages r WHERE r.message_id >= p.lower_bound AND r.message_id < p.upper_bound)
      AND NOT EXISTS (SELECT 1 FROM push_changes c WHERE c.message_id >= p.lower_bound AND c.message_id < p.upper_bound)
      AND NOT EXISTS (SELECT 1 FROM deliveries d
                       WHERE d.status = 'pending' AND d.message_id >= p.lower_bound AND d.message_id < p.upper_bound)
    WHEN 'dispatches' THEN
      -- A message has dispatches from its beginning on.
      NOT EXISTS (SELECT 1 FROM running_messages r WHERE r.message_id < replace(p.upper_bound, 'dsp_', 'msg_'))
      AND NOT EXISTS (SELECT 1 FROM uncounted_agents('infinity') u WHERE EXISTS (SELECT 1 FROM dispatches d
             WHERE d.tenant_id = u.tenant_id AND d.instance_id = u.instance_id AND d.created_at >= u.since
               AND d.dispatch_id >= p.lower_bound AND d.dispatch_id < p.upper_bound))
    ELSE events_consumed(p.upper_bound::uuid)
  END;
END $$;

-- Agents whose dispatches before this time are not all in their totals, and since when they are not.
CREATE FUNCTION uncounted_agents(before timestamptz)
  RETURNS TABLE (tenant_id text, instance_id text, since timestamptz) LANGUAGE sql STABLE AS $$
  SELECT a.tenant_id, a.instance_id, coalesce(t.until, '-infinity') FROM agents a
    LEFT JOIN dispatch_totals t USING (tenant_id, instance_id)
   WHERE coalesce(t.until, '-infinity') < before
$$;

-- Deletes what belongs to the next messages of a detached partition, in the order of the key. Decisions about them keep
-- who, when and the digest. Gives the last of these messages; no row where there are no more.
CREATE FUNCTION purge_messages(partition regclass, after_tenant text, after_message text, batch integer)
RETURNS TABLE (last_tenant text, last_message text) LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY EXECUTE format($sql$
    WITH gone AS MATERIALIZED (
      SELECT tenant_id, message_id, session_id FROM %s WHERE (tenant_id, message_id) > ($1, $2)
        ORDER BY tenant_id, message_id LIMIT $3),
    -- The rest is counted anew.
    totals AS (DELETE FROM session_totals t USING (SELECT DISTINCT tenant_id, session_id FROM gone) g
                WHERE t.tenant_id = g.tenant_id AND t.session_id = g.session_id),
    erased AS (
      UPDATE input_decisions d SET comment = NULL, ip = NULL, title = NULL, arguments = NULL FROM gone g
       WHERE d.tenant_id = g.tenant_id AND d.message_id = g.message_id
         AND num_nonnulls(d.comment, d.ip, d.title, d.arguments) > 0),
    spans AS (DELETE FROM trace_spans s USING gone g WHERE s.tenant_id = g.tenant_id AND s.message_id = g.message_id),
    grants AS (DELETE FROM tool_grants t USING gone g WHERE t.tenant_id = g.tenant_id AND t.message_id = g.message_id),
    requests AS (DELETE FROM input_requests r USING gone g
    WHERE r.tenant_id = g.tenant_id AND r.message_id = g.message_id),
      notifications AS (DELETE FROM deliveries d USING gone g
                       WHERE d.tenant_id = g.tenant_id AND d.message_id = g.message_id AND d.config_id IS NOT NULL),
    late AS (DELETE FROM late_changes l USING gone g WHERE l.tenant_id = g.tenant_id AND l.message_id = g.message_id),
    configs AS (DELETE FROM push_configs c USING gone g WHERE c.tenant_id = g.tenant_id AND c.message_id = g.message_id)
    SELECT tenant_id, message_id FROM gone ORDER BY tenant_id DESC, message_id DESC LIMIT 1$sql$, partition)
    USING after_tenant, after_message, batch;
END $$;

-- Looks at the next deliveries in the order of the key, and deletes those that have ended and tell of an event of a
-- month ('2026_01') or earlier. Gives the last delivery that it looked at; no row at the end.
CREATE FUNCTION purge_deliveries(month text, after_tenant text, after_delivery text, batch integer)
RETURNS TABLE (last_tenant text, last_delivery text) LANGUAGE sql AS $$
  WITH looked_at AS MATERIALIZED (
    SELECT d.tenant_id, d.delivery_id, d.event_id, d.ended_at FROM deliveries d
     WHERE (d.tenant_id, d.delivery_id) > (after_tenant, after_delivery)
       ORDER BY d.tenant_id, d.delivery_id LIMIT batch),
  deleted AS (
    DELETE FROM deliveries d USING looked_at l
     WHERE d.tenant_id = l.tenant_id AND d.delivery_id = l.delivery_id AND l.ended_at IS NOT NULL
       AND l.event_id < id_bound('evt', (to_date(month, 'YYYY_MM') + interval '1 month')::date))
  SELECT tenant_id, delivery_id FROM looked_at ORDER BY tenant_id DESC, delivery_id DESC LIMIT 1
$$;

-- Looks at the next sessions in the order of the key, and deletes those that ended before a time and have no message
-- left, with the list of their agents. Gives the last session that it looked at; no row at the end.
CREATE FUNCTION purge_sessions(ended_before timestamptz, after_tenant text, after_session text, batch integer)
RETURNS TABLE (last_tenant text, last_session text) LANGUAGE sql AS $$
  WITH looked_at AS MATERIALIZED (
    SELECT s.tenant_id, s.session_id, s.status, s.ended_at FROM sessions s
     WHERE (s.tenant_id, s.session_id) > (after_tenant, after_session) ORDER BY s.tenant_id, s.session_id LIMIT batch),
  gone AS MATERIALIZED (
    SELECT l.tenant_id, l.session_id FROM looked_at l
     WHERE l.status <> 'active' AND l.ended_at < ended_before
       AND NOT EXISTS (SELECT 1 FROM messages m
       WHERE m.session_uuid = session_uuid(uuid_of(l.tenant_id), l.session_id) AND m.tenant_id = l.tenant_id)),
  agents AS (DELETE FROM session_agents j USING gone g WHERE j.tenant_id = g.tenant_id AND j.session_id = g.session_id),
  totals AS (DELETE FROM session_totals t USING gone g WHERE t.tenant_id = g.tenant_id AND t.session_id = g.session_id),
  deleted AS (DELETE FROM sessions s USING gone g WHERE s.tenant_id = g.tenant_id AND s.session_id = g.session_id)
  SELECT tenant_id, session_id FROM looked_at ORDER BY tenant_id DESC, session_id DESC LIMIT 1
$$;
