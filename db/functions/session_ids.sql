-- Where the rows of a session are: the first and the last of their ids; NULL for none. A list of a session that knows
-- them reads the partitions of these months. Else each of its statements would be planned for all months that are kept,
-- 60 µs for each; these plans are kept, and a month costs a look at its index, 3 to 5 µs. The rows themselves tell,
-- since nothing else does: events of a session come before it (those of a plan), after its end (those of policies), and
-- may be of an earlier session of the same name, which retention has removed.
CREATE FUNCTION message_ids_of_session(of_tenant text, of_session text, OUT first_id text, OUT last_id text)
  LANGUAGE plpgsql
  SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  wanted CONSTANT uuid := session_uuid(uuid_of(of_tenant), of_session);
BEGIN
  PERFORM act_for_tenant(of_tenant);
  SELECT m.message_id INTO first_id FROM messages m
   WHERE m.session_uuid = wanted AND m.tenant_id = of_tenant ORDER BY m.message_id LIMIT 1;
  IF FOUND THEN
    SELECT m.message_id INTO last_id FROM messages m
     WHERE m.session_uuid = wanted AND m.tenant_id = of_tenant ORDER BY m.message_id DESC LIMIT 1;
  END IF;
END $$;

-- The same of its groups of events. Their index has no more than the minute: these are of the first and of the last one
-- (group_minute).
CREATE FUNCTION group_ids_of_session(of_tenant text, of_session text, OUT first_id uuid, OUT last_id uuid)
  LANGUAGE plpgsql
  SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  wanted CONSTANT uuid := session_uuid(uuid_of(of_tenant), of_session);
BEGIN
  PERFORM act_for_tenant(of_tenant);
  SELECT e.group_id INTO first_id FROM event_groups e
   WHERE e.session_uuid = wanted AND e.tenant_id = uuid_of(of_tenant) ORDER BY group_minute(e.group_id) LIMIT 1;
  IF FOUND THEN
    SELECT e.group_id INTO last_id FROM event_groups e
     WHERE e.session_uuid = wanted AND e.tenant_id = uuid_of(of_tenant) ORDER BY group_minute(e.group_id) DESC LIMIT 1;
  END IF;
END $$;
