-- Where the rows of a session are: the first and the last of their ids; NULL for none. With them a list of a session
-- reads only the partitions of their months. Without them each of its statements would be planned for all months that
-- are kept, at 60 µs a month; the plans of these functions are cached, and a month costs an index look-up of 3 to 5 µs.
-- Only the rows themselves tell the months: events of a session come before it (those of a plan), after its end (those
-- of policies), and may be of an earlier session of the same name, which retention has removed.
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

-- The same of its groups of events. Their index has only the minute of an id (group_minute), so these ids are any two
-- of the first and of the last minute.
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
