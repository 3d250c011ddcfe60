-- Counts a call that a policy with a bound would allow. False: the policy has already allowed its `max_calls`, or has
-- no bound any more. The row of the count is locked meanwhile, so concurrent calls have their turns. The last call
-- raises the revision of the tenant's policies, so that every process reads that the policy is not in force any more.
CREATE FUNCTION count_allowed_call(of_tenant text, of_policy text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  is_last boolean;
BEGIN
  PERFORM act_for_tenant(of_tenant);
  UPDATE policy_calls c SET calls_allowed = c.calls_allowed + 1
    FROM policies p
   WHERE c.tenant_id = of_tenant AND c.policy_id = of_policy
     AND p.tenant_id = c.tenant_id AND p.policy_id = c.policy_id AND c.calls_allowed < p.max_calls
  RETURNING c.calls_allowed = p.max_calls INTO is_last;
  IF is_last THEN
    UPDATE policy_revisions SET revision = revision + 1, changed_by = pg_current_xact_id()
     WHERE tenant_id = of_tenant;
  END IF;
  RETURN is_last IS NOT NULL;
END $$;
