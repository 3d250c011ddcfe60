-- Queues: a message that finds no agent joins the queue of what it waits for. So an agent with room finds the messages
-- that it can take, and no message waits behind one that waits for something else. A message is in one queue; an agent
-- serves several. The parts of a name are separated by '/': instances and types have no slash in their names, and the
-- skill comes last.

-- A message that names an instance, or whose session has one, waits for that instance alone; any other for its type and
-- skill, where '' stands for any. What waits for its session's instance is moved once nothing can be sent to that one
-- (requeue_messages).
CREATE FUNCTION queue_of(instance text, type text, skill text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN instance IS NOT NULL THEN instance || '//'
    ELSE '/' || coalesce(type, '') || '/' || coalesce(skill, '') END
$$;

-- Whom the messages of a queue wait for; '' where any will do.
CREATE FUNCTION queue_target(of_queue text, OUT instance_id text, OUT agent_type text, OUT skill_id text)
  LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  instance_id := split_part(of_queue, '/', 1);
  agent_type := split_part(of_queue, '/', 2);
  skill_id := substr(of_queue, length(instance_id) + length(agent_type) + 3);
END $$;

-- The queues whose messages an agent could take: its own, that of its type, and two for each of its skills (of any
-- type, and of its type).
CREATE FUNCTION queues_of(of_tenant text, of_instance text, of_type text) RETURNS text[] LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN ARRAY[queue_of(of_instance, NULL, NULL), queue_of(NULL, of_type, NULL)] || ARRAY(
    SELECT queue_of(NULL, type, s.skill_id) FROM agent_skills s CROSS JOIN unnest(ARRAY['', of_type]) AS type
     WHERE s.tenant_id = of_tenant AND s.instance_id = of_instance AND s.agent_type = '');
END $$;

-- The queue that a message joins for which no agent is free.
CREATE FUNCTION queue_to_join(wish routing) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
  of_type text := coalesce(wish.served_agent_type, wish.want_agent_type, wish.session_agent_type);
  own_agent text := wish.served_instance_id;
  has_room boolean;
BEGIN
  IF own_agent IS NULL AND wish.session_id IS NOT NULL THEN
    own_agent := session_agent(wish, of_type);
  END IF;
  IF own_agent IS NULL THEN
    RETURN queue_of(wish.want_instance_id, of_type, wish.want_skill_id);
  ELSIF own_agent = wish.want_instance_id THEN
    RETURN queue_of(own_agent, NULL, NULL);
  END IF;
  SELECT a.has_room INTO has_room FROM agents a
    WHERE a.tenant_id = wish.tenant_id AND a.instance_id = own_agent AND a.agent_type = of_type;
  RETURN queue_of(
    CASE WHEN has_room IS NOT NULL AND own_agent <> ALL (coalesce(wish.unreachable_ids, '{}')) THEN own_agent END,
    of_type, wish.want_skill_id);
END $$;

-- Each query on queues asks for the order of the index running_queued, so that the planner takes it (as in
-- served_sessions); EXISTS would drop the order. To see whether any message waits, the newest is read: in front of the
-- oldest there are entries of deleted rows, as long as any older transaction is open.

-- Whether any message of a tenant waits in a queue.
CREATE FUNCTION tenant_has_queued(of_tenant text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN coalesce((SELECT true FROM running_messages r WHERE r.tenant_id = of_tenant AND r.queue >= ''
    ORDER BY r.queue DESC LIMIT 1), false);
END $$;

-- Whether a queue has messages.
CREATE FUNCTION queue_has_messages(of_tenant text, in_queue text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN coalesce((SELECT true FROM running_messages r WHERE r.tenant_id = of_tenant AND r.queue = in_queue
    ORDER BY r.queue DESC, (r.resolution IS NULL) DESC, r.created_at DESC LIMIT 1), false);
END $$;

-- The queues whose messages an agent could take and that are not empty, at most so many; NULL: all. It goes from the
-- last to the first: an index look-up gives the next non-empty queue of the tenant, and the agent's queues after that
-- one are skipped. So there are few look-ups, even with many skills or many queues.
CREATE FUNCTION nonempty_queues_of(of_tenant text, of_instance text, of_type text, at_most integer)
  RETURNS text[] LANGUAGE plpgsql STABLE AS $$
DECLARE
  served text;
  next text; -- the last queue of anybody that is not empty, up to the one that was looked for
  found text[] := '{}';
BEGIN
  FOR served IN SELECT DISTINCT q FROM unnest(queues_of(of_tenant, of_instance, of_type)) AS q ORDER BY q DESC LOOP
    CONTINUE WHEN served > next;
    SELECT r.queue INTO next FROM running_messages r WHERE r.tenant_id = of_tenant AND r.queue <= served
      ORDER BY r.queue DESC LIMIT 1;
    EXIT WHEN next IS NULL;
    IF served = next THEN
      found := served || found;
      EXIT WHEN cardinality(found) = at_most;
    END IF;
  END LOOP;
  RETURN found;
END $$;

-- Whether messages wait that an agent could take.
CREATE FUNCTION agent_has_queued(of_tenant text, of_instance text, of_type text)
  RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN tenant_has_queued(of_tenant) AND nonempty_queues_of(of_tenant, of_instance, of_type, 1) <> '{}';
END $$;

-- How many messages wait for an instance alone.
CREATE FUNCTION queue_length(of_tenant text, of_instance text) RETURNS integer LANGUAGE plpgsql STABLE AS $$
DECLARE
  -- within the query it would be no condition of the index, because of its COALESCE
  own_queue text := queue_of(of_instance, NULL, NULL);
BEGIN
  RETURN (SELECT count(*)::integer FROM (SELECT r.queue FROM running_messages r
    WHERE r.tenant_id = of_tenant AND r.queue = own_queue ORDER BY r.queue) AS queued);
END $$;

-- How many sessions have a decision that waits for room on an instance. Sessions that come to reserve a place leave
-- that room to them (reserve_for_session).
CREATE FUNCTION queued_decisions(of_tenant text, of_instance text) RETURNS integer LANGUAGE plpgsql STABLE AS $$
DECLARE
  own_queue text := queue_of(of_instance, NULL, NULL); -- as in queue_length
BEGIN
  RETURN (SELECT count(DISTINCT queued.session_id)::integer FROM (SELECT r.session_id FROM running_messages r
    WHERE r.tenant_id = of_tenant AND r.queue = own_queue AND r.resolution IS NOT NULL
      ORDER BY r.created_at) AS queued);
END $$;

-- What routing knows of a message on the record.
CREATE FUNCTION routing_of(r running_messages, s sessions) RETURNS routing LANGUAGE sql IMMUTABLE AS $$
  SELECT new_routing(tenant_id => r.tenant_id, session_id => r.session_id, reserves_on => reserves_on(s),
    session_instance_id => s.instance_id, session_agent_type => s.agent_type, served_instance_id => r.instance_id,
    served_agent_type => r.agent_type, want_instance_id => r.want_instance_id, want_agent_type => r.want_agent_type,
    want_skill_id => r.want_skill_id, unreachable_ids => r.unreachable_ids)
$$;

-- Until when a message waits for an agent while one of its target is online: a message with a human's answer waits at
-- least as long as its request could be open.
CREATE FUNCTION wait_end(r running_messages, since timestamptz) RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT least(greatest(since + asked_wait(m.metadata, m.deadline_ms),
      since + (SELECT q.expires_at - q.requested_at FROM input_requests q
        WHERE q.tenant_id = r.tenant_id AND q.request_id = r.resolution ->> 'request_id')), r.repeat_until)
    FROM messages m WHERE m.tenant_id = r.tenant_id AND m.message_id = r.message_id);
END $$;

-- Puts a message that is at rest into its queue, or into another one where what it waits for has changed. The caller
-- holds its lock. Gives the queue.
CREATE FUNCTION queue_message(of_tenant text, of_message text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  r running_messages;
  s sessions;
  joins text;
  since_when timestamptz;
BEGIN
  SELECT * INTO r FROM running_messages x WHERE x.tenant_id = of_tenant AND x.message_id = of_message;
  SELECT * INTO s FROM sessions x WHERE x.tenant_id = of_tenant AND x.session_id = r.session_id;
  joins := queue_to_join(routing_of(r, s));
  since_when := coalesce(r.unrouted_since, now());
  UPDATE running_messages x SET queue = joins, unrouted_since = since_when, wait_ends_at = wait_end(r, since_when),
    wake_requested_at = NULL
   WHERE x.tenant_id = of_tenant AND x.message_id = of_message;
  RETURN joins;
END $$;

-- The tenants that have queued messages. It steps through the index from tenant to tenant, so that the number of
-- messages does not matter. The transaction must act as the system.
CREATE FUNCTION tenants_with_queues() RETURNS SETOF text LANGUAGE sql STABLE SET enable_seqscan = off AS $$
  WITH RECURSIVE found (tenant_id) AS (
    (SELECT r.tenant_id FROM running_messages r WHERE r.queue IS NOT NULL ORDER BY r.tenant_id, r.queue LIMIT 1)
    UNION ALL
    SELECT n.tenant_id FROM found f CROSS JOIN LATERAL (SELECT r.tenant_id FROM running_messages r
      WHERE r.queue IS NOT NULL AND r.tenant_id > f.tenant_id ORDER BY r.tenant_id, r.queue LIMIT 1) n)
  SELECT tenant_id FROM found
$$;

-- The queues of a tenant that are not empty and come after `after`. It steps through the index from queue to queue.
CREATE FUNCTION queues_not_empty(of_tenant text, after text, at_most integer)
  RETURNS SETOF text LANGUAGE sql STABLE SET enable_seqscan = off AS $$
  WITH RECURSIVE found (queue) AS (
    (SELECT r.queue FROM running_messages r WHERE r.tenant_id = of_tenant AND r.queue > after ORDER BY r.queue LIMIT 1)
    UNION ALL
    SELECT n.queue FROM found f CROSS JOIN LATERAL (SELECT r.queue FROM running_messages r
      WHERE r.tenant_id = of_tenant AND r.queue > f.queue ORDER BY r.queue LIMIT 1) n)
  SELECT queue FROM found LIMIT at_most
$$;
