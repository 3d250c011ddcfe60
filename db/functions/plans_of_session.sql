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
