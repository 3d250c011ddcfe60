-- How long a message waits for an agent (decisions.md, "Waiting").

-- Whether an agent that serves a queue is online: something can be sent to it, or could if it were not full. In the order of the index of samples and
-- without sorts, as is_queued: no other index fits.
CREATE FUNCTION is_online(of_tenant text, of_queue text) RETURNS boolean LANGUAGE plpgsql STABLE
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  instance text := split_part(of_queue, '/', 1);
  type text := split_part(of_queue, '/', 2);
  skill text := substr(of_queue, length(instance) + length(type) + 3);
BEGIN
  IF instance <> '' THEN
    RETURN EXISTS (SELECT 1 FROM routable_agent(of_tenant, instance));
  ELSIF skill <> '' THEN
    RETURN coalesce((SELECT true FROM agent_skills s WHERE s.tenant_id = of_tenant AND s.skill_id = skill AND s.agent_type = type
      AND s.has_room IS NOT NULL ORDER BY s.has_room, s.shuffle LIMIT 1), false);
  END IF;
  RETURN coalesce((SELECT true FROM agents a WHERE a.tenant_id = of_tenant AND a.agent_type = type AND a.has_room IS NOT NULL
    ORDER BY a.has_room, a.shuffle LIMIT 1), false);
END $$;

-- The wait of a message whose lock the caller holds: since when, for how long so far, and for how long it may still; negative once it is over.
-- `offline_ms`: while no agent of its target is online. A human's answer waits as long as its request was open at least.
CREATE FUNCTION route_wait(of_tenant text, of_message text, at timestamptz, offline_ms integer,
  OUT since timestamptz, OUT waited_ms bigint, OUT left_ms bigint) LANGUAGE plpgsql
  SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  r running_messages;
  s sessions;
  message record;
  online boolean;
  ends timestamptz;
BEGIN
  SELECT * INTO r FROM running_messages x WHERE x.tenant_id = of_tenant AND x.message_id = of_message;
  SELECT * INTO s FROM sessions x WHERE x.tenant_id = of_tenant AND x.session_id = r.session_id;
  SELECT m.deadline_ms, (m.metadata ->> 'queue_wait_ms')::integer AS given INTO message
    FROM messages m WHERE m.tenant_id = of_tenant AND m.message_id = of_message;
  online := is_online(of_tenant, queue_for((of_tenant, r.session_id, s.explicit, s.reserves, s.suspended, s.instance_id, s.agent_type, r.instance_id, r.agent_type,
    r.want_instance_id, r.want_agent_type, r.want_skill_id, r.unreachable_ids, r.resolution IS NOT NULL, NULL, false, false, NULL)::routing));
  since := coalesce(r.unrouted_since, at);
  UPDATE running_messages x SET unattended_since = CASE WHEN NOT online THEN at END
   WHERE x.tenant_id = of_tenant AND x.message_id = of_message AND (x.unattended_since IS NULL) <> online;
  ends := CASE WHEN message.given IS NOT NULL THEN since + message.given * interval '1 ms'
    WHEN online THEN since + message.deadline_ms * interval '1 ms'
    ELSE greatest(since, coalesce(r.unattended_since, at)) + offline_ms * interval '1 ms' END;
  IF r.resolution IS NOT NULL THEN
    ends := greatest(ends, since + (SELECT q.expires_at - q.requested_at FROM input_requests q
      WHERE q.tenant_id = of_tenant AND q.request_id = r.resolution ->> 'request_id'));
  END IF;
  waited_ms := (extract(epoch FROM at - since) * 1000)::bigint;
  left_ms := (extract(epoch FROM ends - at) * 1000)::bigint;
END $$;
