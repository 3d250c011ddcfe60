-- Whether a session has a plan that has not ended: then it does not expire.
CREATE FUNCTION has_open_plan(of_tenant text, of_session text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (SELECT 1 FROM plans p
    WHERE p.tenant_id = of_tenant AND p.session_id = of_session AND p.state IN ('proposed', 'running'));
END $$;

-- Has the workflows of a session's plans look at them; in the transaction that ends the session, which cancels them.
CREATE FUNCTION wake_plans_of_session(of_tenant text, of_session text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO plan_wakes (tenant_id, plan_id)
    SELECT p.tenant_id, p.plan_id FROM plans p
     WHERE p.tenant_id = of_tenant AND p.session_id = of_session AND p.state IN ('proposed', 'running');
END $$;

-- Looks at the next plans in the order of the key, and deletes those that ended before a time, with all that belongs to
-- them. Decisions about them keep who, when and the digest. Gives the last plan that it looked at; no row at the end.
CREATE FUNCTION purge_plans(ended_before timestamptz, after_tenant text, after_plan text, batch integer)
RETURNS TABLE (last_tenant text, last_plan text) LANGUAGE sql AS $$
  WITH looked_at AS MATERIALIZED (
    SELECT p.tenant_id, p.plan_id, p.ended_at FROM plans p
     WHERE (p.tenant_id, p.plan_id) > (after_tenant, after_plan) ORDER BY p.tenant_id, p.plan_id LIMIT batch),
  deleted AS (
    DELETE FROM plans p USING looked_at l
      WHERE p.tenant_id = l.tenant_id AND p.plan_id = l.plan_id AND l.ended_at < ended_before
    RETURNING p.tenant_id, p.plan_id),
  erased AS (
    UPDATE input_decisions i SET comment = NULL, ip = NULL, title = NULL, arguments = NULL FROM deleted d
     WHERE i.tenant_id = d.tenant_id AND i.plan_id = d.plan_id
       AND num_nonnulls(i.comment, i.ip, i.title, i.arguments) > 0)
  SELECT tenant_id, plan_id FROM looked_at ORDER BY tenant_id DESC, plan_id DESC LIMIT 1
$$;
