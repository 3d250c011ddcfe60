-- How long a message waits for an agent.

-- How long it waits while an agent of its target is online: as its sender asks, else its deadline.
CREATE FUNCTION asked_wait(metadata jsonb, deadline_ms integer) RETURNS interval LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce((metadata ->> 'queue_wait_ms')::integer, deadline_ms) * interval '1 ms'
$$;

-- Whether the sender gives a time (`queue_wait_ms`): the message then waits so long, whether an agent is online or not.
CREATE FUNCTION asks_wait(metadata jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT metadata ? 'queue_wait_ms'
$$;

-- Whether an agent that serves a queue is online: something can be sent to it, or could if it were not full. The order
-- is that of the indexes of samples, and sorts are disabled, so that the planner takes these.
CREATE FUNCTION is_online(of_tenant text, of_queue text) RETURNS boolean LANGUAGE plpgsql STABLE
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
    SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  target record := queue_target(of_queue);
BEGIN
  IF target.instance_id <> '' THEN
    RETURN EXISTS (SELECT 1 FROM routable_agent(of_tenant, target.instance_id));
  ELSIF target.skill_id <> '' THEN
    RETURN coalesce((SELECT true FROM agent_skills s
      WHERE s.tenant_id = of_tenant AND s.skill_id = target.skill_id AND s.agent_type = target.agent_type
      AND s.has_room IS NOT NULL ORDER BY s.has_room, s.shuffle LIMIT 1), false);
  END IF;
  RETURN coalesce((SELECT true FROM agents a
    WHERE a.tenant_id = of_tenant AND a.agent_type = target.agent_type AND a.has_room IS NOT NULL
    ORDER BY a.has_room, a.shuffle LIMIT 1), false);
END $$;

-- Notes whether agents of a queue are online. Gives since when none is; NULL while one is.
CREATE FUNCTION note_absence(of_tenant text, of_queue text) RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE
  absent_since timestamptz;
BEGIN
  IF is_online(of_tenant, of_queue) THEN
    DELETE FROM queue_absences a WHERE a.tenant_id = of_tenant AND a.queue = of_queue;
    RETURN NULL;
  END IF;
  INSERT INTO queue_absences (tenant_id, queue, since) VALUES (of_tenant, of_queue, now()) ON CONFLICT DO NOTHING;
  SELECT a.since INTO absent_since FROM queue_absences a WHERE a.tenant_id = of_tenant AND a.queue = of_queue;
  RETURN coalesce(absent_since, now());
END $$;

-- The wait of a queued message whose lock the caller holds: since when, and for how many milliseconds it may go on;
-- negative once it is over. `offline_ms`: how long it waits while no agent of its target is online; not used where its
-- sender gave a time, or where it carries a human's answer.
CREATE FUNCTION route_wait(of_tenant text, of_message text, at timestamptz, offline_ms integer, OUT since timestamptz,
  OUT left_ms bigint)
  LANGUAGE plpgsql AS $$
DECLARE
  r running_messages;
  absent_since timestamptz;
  ends timestamptz;
BEGIN
  SELECT * INTO r FROM running_messages x WHERE x.tenant_id = of_tenant AND x.message_id = of_message;
  since := r.unrouted_since;
  ends := r.wait_ends_at;
  IF r.resolution IS NULL AND NOT EXISTS (SELECT 1 FROM messages m
    WHERE m.tenant_id = of_tenant AND m.message_id = of_message AND asks_wait(m.metadata)) THEN
    absent_since := note_absence(of_tenant, r.queue);
    IF absent_since IS NOT NULL THEN
      ends := least(greatest(since, absent_since) + offline_ms * interval '1 ms', r.repeat_until);
    END IF;
  END IF;
  left_ms := (extract(epoch FROM ends - at) * 1000)::bigint;
END $$;

-- Messages of a queue that are to be looked at because none of its agents is online: those that have waited for
-- `offline_ms`, and those that wait for the agent of their session, which others of its type may replace.
CREATE FUNCTION messages_without_agent_online(of_tenant text, of_queue text, offline_ms integer, at_most integer)
  RETURNS TABLE (message_id text, session_id text)
  LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  until timestamptz := now() - offline_ms * interval '1 ms';
  absent_since timestamptz := note_absence(of_tenant, of_queue);
  instance text := (queue_target(of_queue)).instance_id;
BEGIN
  IF absent_since IS NOT NULL AND instance <> '' THEN
    RETURN QUERY SELECT r.message_id, r.session_id FROM running_messages r
       WHERE r.tenant_id = of_tenant AND r.queue = of_queue
         AND r.want_instance_id IS DISTINCT FROM instance
       ORDER BY (r.resolution IS NULL), r.created_at LIMIT at_most;
  END IF;
  IF absent_since <= until THEN
    RETURN QUERY SELECT o.message_id, o.session_id FROM (SELECT r.* FROM running_messages r
        WHERE r.tenant_id = of_tenant AND r.queue = of_queue
          ORDER BY (r.resolution IS NULL), r.created_at LIMIT 10 * at_most) o
       WHERE o.resolution IS NULL AND o.unrouted_since <= until
         AND NOT EXISTS (SELECT 1 FROM messages m
         WHERE m.tenant_id = o.tenant_id AND m.message_id = o.message_id AND asks_wait(m.metadata))
       LIMIT at_most;
  END IF;
END $$;
