-- One message in one round trip. Planned once: the partition that an id names is found when the plan runs.
CREATE FUNCTION find_message(of_tenant text, of_message text) RETURNS SETOF messages LANGUAGE plpgsql
  SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  PERFORM act_for_tenant(of_tenant);
  RETURN QUERY SELECT m.* FROM messages m WHERE m.tenant_id = of_tenant AND m.message_id = of_message;
END $$;
