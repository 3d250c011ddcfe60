-- Take: an agent with room gets the messages that have waited for it longest. Those that carry a human's answer go
-- first, then the oldest that fit. The calling node opens each dispatch: as `sent`, or as `open` where policies have to
-- decide about it.
--
-- While some transaction stays open no dead row is removed, and whoever looks for the oldest message of a queue reads
-- past all that were taken since. Where that was slow, the take behind the end of a dispatch begins where the take of
-- that dispatch found the oldest (`queue_from`): behind 80,000 dead rows it then takes 0.5 ms in place of 11. So for up
-- to five seconds (messages/dispatch/taker.ts) newer messages may go before one that joined a shared queue late, at the
-- age of its acceptance.
--
-- Locks: a take holds the room of its agent. It skips sessions that another transaction has locked, and waits for the
-- lock of a message (open_queued).

-- What a node asks for as it takes messages for an agent.
CREATE TYPE take_call AS (
  tenant_id text, instance_id text,
  mesh_id text, -- the node, which sends to the agent
  epoch bigint, -- of the agent's connection to it; NULL for a hosted agent
  dispatch_ids text[], event_ids text[], -- of the new dispatches: at most so many messages are taken
  as_open boolean, -- the dispatches are opened as `open`, for policies to decide about them; else as `sent`
  in_flight_limit integer, -- how many messages the agents of the tenant may have together
  is_retry boolean, -- this take is repeated after an error
  -- In queues that other agents serve too, of the messages without a human's answer only those are taken that were
  -- accepted from then on, unless nothing is found; NULL: all.
  queue_from timestamptz
);

-- Makes a take_call from named members. Postgres inlines it, so it costs nothing.
CREATE FUNCTION new_take_call(
  tenant_id text DEFAULT NULL, instance_id text DEFAULT NULL, mesh_id text DEFAULT NULL, epoch bigint DEFAULT NULL,
  dispatch_ids text[] DEFAULT NULL, event_ids text[] DEFAULT NULL, as_open boolean DEFAULT false,
  in_flight_limit integer DEFAULT NULL, is_retry boolean DEFAULT false, queue_from timestamptz DEFAULT NULL
) RETURNS take_call LANGUAGE sql IMMUTABLE AS $$
  SELECT (tenant_id, instance_id, mesh_id, epoch, dispatch_ids, event_ids, as_open, in_flight_limit, is_retry,
    queue_from)::take_call
$$;

-- How many more sessions an agent may have; NULL: it has no bound. A busy agent takes only messages of sessions that
-- count on it already.
CREATE FUNCTION room_left(a agents) RETURNS integer LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF a.status = 'busy' THEN
    RETURN 0;
  ELSIF a.max_concurrent_sessions = 0 THEN
    RETURN NULL;
  END IF;
  RETURN a.max_concurrent_sessions - (SELECT l.load FROM loads(a.tenant_id, a.instance_id, NULL) l);
END $$;

-- How many more messages an agent may have, whatever their sessions; NULL: it has no bound.
CREATE FUNCTION tasks_left(a agents) RETURNS integer LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF a.max_concurrent_tasks = 0 THEN
    RETURN NULL;
  END IF;
  RETURN a.max_concurrent_tasks - tasks_on(a.tenant_id, a.instance_id, a.max_concurrent_tasks);
END $$;

-- The messages that an agent could take next, in the order in which it takes them; without room only those of sessions
-- that count on it already. `is_new`: it carries no human's answer. `queue_from` as in take_call. It relies on the
-- planner settings of its callers: settings of its own would cost 50 µs a call.
CREATE FUNCTION next_queued(a agents, has_room boolean, at_most integer, queue_from timestamptz)
  RETURNS TABLE (message_id text, session_id text, is_new boolean, created_at timestamptz)
  LANGUAGE plpgsql STABLE AS $$
DECLARE
  own_queue text := queue_of(a.instance_id, NULL, NULL);
  served text[] := CASE WHEN is_held_back(a.tenant_id, a.instance_id, a.agent_type) THEN ARRAY[own_queue]
    ELSE nonempty_queues_of(a.tenant_id, a.instance_id, a.agent_type, NULL) END;
  first_at timestamptz := coalesce(queue_from, '-infinity'); -- as in queue_length
BEGIN
  IF has_room THEN
    RETURN QUERY SELECT w.* FROM unnest(served) AS one (queue) CROSS JOIN LATERAL (
        (SELECT x.message_id, x.session_id, false AS is_new, x.created_at FROM running_messages x
          WHERE x.tenant_id = a.tenant_id AND x.queue = one.queue
            AND (x.resolution IS NULL) IS FALSE
          ORDER BY (x.resolution IS NULL), x.created_at LIMIT at_most)
        UNION ALL
        (SELECT x.message_id, x.session_id, true, x.created_at FROM running_messages x
          WHERE x.tenant_id = a.tenant_id AND x.queue = one.queue
            AND x.resolution IS NULL
            AND x.created_at >= CASE WHEN one.queue = own_queue THEN '-infinity' ELSE first_at END
          ORDER BY (x.resolution IS NULL), x.created_at LIMIT at_most)) w
       ORDER BY w.is_new, w.created_at LIMIT at_most;
  ELSE
    RETURN QUERY SELECT x.message_id, x.session_id, x.resolution IS NULL, x.created_at FROM running_messages x
       WHERE x.tenant_id = a.tenant_id AND x.state IN ('submitted', 'working') AND x.queue = ANY (served)
         AND x.session_id = ANY (ARRAY(SELECT served_sessions(a.tenant_id, a.instance_id, NULL)))
       ORDER BY x.resolution IS NULL, x.created_at LIMIT at_most;
  END IF;
END $$;

-- Binds a locked session to the agent that gets one of its messages, unless it is bound to that agent already.
-- `counted`: the session held a slot on the agent before.
CREATE FUNCTION bind_session(s sessions, a agents, counted boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  is_own boolean := coalesce(s.agent_type, a.agent_type) = a.agent_type; -- agents of other types only join it
  own_agent text := CASE WHEN is_own THEN s.instance_id END;
BEGIN
  IF own_agent IS NULL AND (s.explicit OR s.instance_id IS NOT NULL) THEN -- else no agent has joined it yet
    SELECT j.instance_id INTO own_agent FROM session_agents j
     WHERE j.tenant_id = s.tenant_id AND j.session_id = s.session_id AND j.agent_type = a.agent_type
       ORDER BY j.joined_at DESC LIMIT 1;
  END IF;
  IF own_agent IS DISTINCT FROM a.instance_id OR s.explicit AND s.instance_id IS NULL THEN
    IF s.explicit OR s.instance_id IS NOT NULL THEN
      PERFORM join_session(s.tenant_id, s.session_id, a.agent_type, a.instance_id,
        CASE WHEN own_agent IS NULL THEN 'routed' ELSE 'failover' END);
    END IF;
    IF is_own THEN
      UPDATE sessions x SET instance_id = a.instance_id, agent_type = a.agent_type, suspended = false
       WHERE x.tenant_id = s.tenant_id AND x.session_id = s.session_id;
      IF s.reserves AND s.instance_id IS DISTINCT FROM a.instance_id THEN
        PERFORM record_capacity(s.tenant_id, instance) FROM unnest(ARRAY[s.instance_id, a.instance_id]) AS instance
          WHERE instance IS NOT NULL;
      END IF;
    END IF;
  ELSIF s.suspended AND s.instance_id = a.instance_id THEN
    UPDATE sessions x SET suspended = false WHERE x.tenant_id = s.tenant_id AND x.session_id = s.session_id;
    -- The trigger note_capacity_change writes no event: the message that was taken holds the slot already.
    IF s.reserves AND NOT counted THEN
      PERFORM record_capacity(s.tenant_id, a.instance_id);
    END IF;
  END IF;
END $$;

-- Opens a dispatch of a queued message. `place`: of its ids in the call. Gives what is needed to send it, as
-- dispatch_details does; NULL, and nothing written, when the message is no longer queued. The caller holds the
-- session's lock and the agent's room. The UPDATE locks the message (docs/internals.md#locks), and waits while another
-- transaction has it. In take_next the wait ends with the lock timeout of that call (limit_lock_wait); in take_messages
-- with the statement timeout, or after a second if Postgres finds a deadlock.
CREATE FUNCTION open_queued(c take_call, a agents, s sessions, of_message text, place integer) RETURNS jsonb
  LANGUAGE plpgsql AS $$
DECLARE
  r running_messages;
  m messages;
  -- Asked before the message holds its slot. A suspended session reserves nothing.
  counted boolean := s.suspended AND session_holds_slot(s.tenant_id, s.session_id, NULL, a.instance_id);
BEGIN
  -- coalesce keeps the planner from every index but the primary key: that of queues would be read whole
  UPDATE running_messages x SET state = CASE WHEN c.as_open THEN x.state ELSE 'working' END,
      current_dispatch_id = c.dispatch_ids[place], attempts = x.attempts + 1, instance_id = a.instance_id,
      agent_type = a.agent_type, holds_slot = true, queue = NULL, wait_ends_at = NULL, wake_requested_at = NULL,
      remote_task_id = CASE WHEN x.instance_id = a.instance_id THEN x.remote_task_id END,
      remote_context_id = CASE WHEN x.instance_id = a.instance_id THEN x.remote_context_id END
   WHERE x.tenant_id = a.tenant_id AND x.message_id = of_message AND coalesce(x.queue, '') <> ''
     AND x.current_dispatch_id IS NULL AND coalesce(x.state, '') IN ('submitted', 'working') RETURNING * INTO r;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  -- As few statements as can be: to begin one takes longer than to write its row.
  WITH message AS (
    UPDATE messages x SET state = r.state,
        started_at = CASE WHEN c.as_open THEN x.started_at ELSE coalesce(x.started_at, now()) END, updated_at = now(),
          instance_id = a.instance_id, agent_type = a.agent_type
     WHERE x.tenant_id = a.tenant_id AND x.message_id = of_message RETURNING x.*),
  opened AS (
    INSERT INTO dispatches (tenant_id, dispatch_id, message_id, instance_id, agent_type, deployment_mode, mesh_id,
        epoch, attempt, state, skill_id, sent_at, deadline_at)
      SELECT a.tenant_id, c.dispatch_ids[place], of_message, a.instance_id, a.agent_type, a.deployment_mode, c.mesh_id,
             a.connection_epoch, r.attempts,
             CASE WHEN c.as_open THEN 'open' ELSE 'sent' END, r.want_skill_id, CASE WHEN NOT c.as_open THEN now() END,
             CASE WHEN NOT c.as_open THEN deadline_from_now(x.deadline_ms, r.repeat_until) END FROM message x),
  recorded AS (
    INSERT INTO event_groups (tenant_id, group_id, session_uuid, session_name, message_id, dispatch_id, trace_id,
      types, instance_mark, events)
      SELECT uuid_of(a.tenant_id), group_of(c.event_ids[place]), x.session_uuid, session_name(x.session_id),
             uuid_of(of_message), uuid_of(c.dispatch_ids[place]), x.trace_id::uuid, event_bit('dispatch.sent'),
             instance_mark(a.instance_id), json_build_array(json_strip_nulls(json_build_object('instance_id',
             a.instance_id, 'skill_id', r.want_skill_id))) FROM message x WHERE NOT c.as_open)
  SELECT * INTO m FROM message;
  IF NOT c.as_open AND is_late(of_message) THEN
    PERFORM note_change(a.tenant_id, of_message);
  END IF;
  PERFORM bind_session(s, a, counted);
  RETURN jsonb_build_object('tenant_id', a.tenant_id, 'message_id', of_message, 'session_id', s.session_id,
      'dispatch_id', c.dispatch_ids[place], 'instance_id', a.instance_id, 'agent_type', a.agent_type,
      'deployment_mode', a.deployment_mode, 'mesh_id', c.mesh_id, 'epoch', a.connection_epoch, 'attempt', r.attempts,
      'skill_id', r.want_skill_id, 'watched', r.supervised_at IS NOT NULL, 'sent_at', now(),
      'deadline_at', deadline_from_now(m.deadline_ms, r.repeat_until), 'read_at', clock_timestamp())
    || jsonb_build_object('method', m.method, 'parts', m.parts, 'metadata', m.metadata,
      'client_message_id', m.client_message_id, 'trace_id', trace_of(m.trace_id, of_message),
      'propagation', m.propagation, 'deadline_ms', m.deadline_ms, 'artifacts', m.artifacts, 'usage', m.usage,
      'resolution', r.resolution,
      'resolutions', CASE WHEN r.resolution IS NOT NULL THEN answers_of(a.tenant_id, of_message) END,
      'remote_task_id', r.remote_task_id, 'remote_context_id', r.remote_context_id, 'user_id', m.user_id,
      'public_url', a.public_url, 'agent_card', CASE WHEN a.deployment_mode = 'hosted' THEN a.agent_card END,
      'dispatch_auth', encode(a.dispatch_auth, 'hex'));
END $$;

-- The agent of a take, or none: it is gone, takes nothing, or has another connection by now.
CREATE FUNCTION agent_of_take(c take_call) RETURNS agents LANGUAGE plpgsql STABLE AS $$
DECLARE
  a agents;
BEGIN
  SELECT * INTO a FROM routable_agent(c.tenant_id, c.instance_id) x
   WHERE x.deployment_mode = 'hosted' OR x.mesh_id = c.mesh_id AND x.connection_epoch = c.epoch;
  RETURN a;
END $$;

-- Moves a message to another queue if, since it was queued, its session was bound to another agent that can be reached.
-- Gives whether it did.
CREATE FUNCTION moves_elsewhere(a agents, s sessions, of_message text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF s.instance_id IS NULL OR s.instance_id = a.instance_id AND s.agent_type = a.agent_type THEN
    RETURN false;
  END IF;
  UPDATE running_messages x SET queue = q.moved
    FROM (SELECT r.message_id, queue_to_join(routing_of(r, s)) AS moved FROM running_messages r
      WHERE r.tenant_id = a.tenant_id AND r.message_id = of_message) AS q
   WHERE x.tenant_id = a.tenant_id AND x.message_id = q.message_id AND coalesce(x.queue, q.moved) <> q.moved
     AND q.moved <> ALL (queues_of(a.tenant_id, a.instance_id, a.agent_type));
  RETURN FOUND;
END $$;

-- As open_queued, for a take that is repeated after an error: a message that causes an error is set aside, so that
-- those behind it are taken. A sweeper puts it back into its queue after five seconds; the tenth time the message fails
-- (messages/supervise/next-step.ts).
CREATE FUNCTION open_or_set_aside(c take_call, a agents, s sessions, of_message text, place integer) RETURNS jsonb
  LANGUAGE plpgsql AS $$
BEGIN
  RETURN open_queued(c, a, s, of_message, place);
EXCEPTION WHEN OTHERS THEN
  IF left(SQLSTATE, 2) IN ('08', '25', '40', '53', '55', '57', '58') THEN
    RAISE; -- the database is in trouble, and not the message
  END IF;
  RAISE WARNING 'message % could not be taken and is set aside: %', of_message, SQLERRM;
  UPDATE running_messages r SET queue = NULL, wait_ends_at = NULL, wake_requested_at = sweep_soon(),
    failed_openings = r.failed_openings + 1
   WHERE r.tenant_id = a.tenant_id AND r.message_id = of_message;
  RETURN NULL;
END $$;

-- Takes messages for an agent whose room this transaction holds. `tenant_left`: how many more the agents of the tenant
-- may have; NULL: that is not asked. Gives what open_queued gives, with `queue_from` where
-- the next take need not begin with the oldest message.
CREATE FUNCTION take_for(c take_call, a agents, tenant_left integer) RETURNS jsonb[] LANGUAGE plpgsql AS $$
DECLARE
  places_left integer := room_left(a);
  most integer := least(cardinality(c.dispatch_ids), tenant_left, tasks_left(a)); -- least() ignores NULL
  w record;
  s sessions;
  needs_room boolean;
  has_room boolean := coalesce(places_left > 0, true);
  began_at timestamptz := clock_timestamp();
  queue_from timestamptz := c.queue_from;
  met_new boolean := false; -- a message without a human's answer, the oldest first
  taken jsonb;
  opened jsonb[] := '{}';
  next integer := 1;
BEGIN
  -- It reads eight more than it may take, because some are passed over: another transaction has their session, they
  -- move to another queue or need room that is used up.
  FOR w IN SELECT * FROM next_queued(a, has_room, most + 8, c.queue_from) LOOP
    -- Without room it sees only messages of some sessions, and does not know the oldest.
    IF has_room AND w.is_new AND NOT met_new
      AND (queue_from IS NOT NULL OR clock_timestamp() > began_at + interval '2 ms') THEN
      queue_from := w.created_at;
    END IF;
    met_new := met_new OR w.is_new;
    EXIT WHEN next > most OR next > 1 AND fails_beside_others(a.tenant_id, a.instance_id, a.agent_type);
    SELECT * INTO s FROM sessions x
      WHERE x.tenant_id = a.tenant_id AND x.session_id = w.session_id FOR NO KEY UPDATE SKIP LOCKED;
    CONTINUE WHEN NOT FOUND OR moves_elsewhere(a, s, w.message_id);
    needs_room := places_left IS NOT NULL
      AND NOT session_holds_slot(s.tenant_id, s.session_id, reserves_on(s), a.instance_id);
    CONTINUE WHEN needs_room AND places_left <= 0;
    IF c.is_retry THEN
      taken := open_or_set_aside(c, a, s, w.message_id, next);
    ELSE
      taken := open_queued(c, a, s, w.message_id, next);
    END IF;
    CONTINUE WHEN taken IS NULL;
    places_left := places_left - needs_room::integer;
    IF queue_from IS NOT NULL THEN
      taken := taken || jsonb_build_object('queue_from', queue_from);
    END IF;
    opened := opened || taken;
    next := next + 1;
  END LOOP;
  RETURN opened;
END $$;

-- Takes messages for an agent, and waits for the lock of its room. `call`: a take_call.
CREATE FUNCTION take_messages(call jsonb) RETURNS jsonb[] LANGUAGE plpgsql
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  c take_call := jsonb_populate_record(NULL::take_call, call);
  a agents;
  tenant_left integer;
BEGIN
  PERFORM act_for_tenant(c.tenant_id);
  IF NOT tenant_has_queued(c.tenant_id) THEN
    RETURN '{}';
  END IF;
  tenant_left := c.in_flight_limit - in_flight(c.tenant_id, c.in_flight_limit);
  IF tenant_left <= 0 THEN
    RETURN '{}';
  END IF;
  PERFORM lock_room(c.tenant_id, c.instance_id);
  a := agent_of_take(c);
  IF a.instance_id IS NULL THEN
    RETURN '{}';
  END IF;
  IF a.full_at IS NOT NULL THEN
    PERFORM set_full_at(c.tenant_id, c.instance_id, NULL);
  END IF;
  -- Only two agents, because every call does this, and each costs a count of its load and the lock of its row.
  PERFORM recheck_full(c.tenant_id, 2);
  RETURN take_for(c, a, tenant_left);
END $$;

-- Takes one message for an agent in the transaction that ends a dispatch of it. It does not wait for the room. An error
-- here does not undo the result, except the statement timeout (OTHERS leaves out query_canceled), after which the whole
-- call is made again. `taken` NULL: nothing was taken; `again`: a take is to be tried in a transaction of its own.
CREATE FUNCTION take_next(c take_call, OUT taken jsonb, OUT again boolean) LANGUAGE plpgsql AS $$
DECLARE
  a agents;
BEGIN
  again := NOT lock_room_at_once(c.tenant_id, c.instance_id);
  IF again THEN
    RETURN;
  END IF;
  a := agent_of_take(c);
  IF a.instance_id IS NOT NULL THEN
    IF a.full_at IS NOT NULL THEN
      PERFORM set_full_at(c.tenant_id, c.instance_id, NULL);
    END IF;
    taken := (take_for(c, a, NULL))[1];
    IF taken IS NULL AND c.queue_from IS NOT NULL THEN
      c.queue_from := NULL;
      taken := (take_for(c, a, NULL))[1];
    END IF;
  END IF;
EXCEPTION WHEN OTHERS THEN
  RAISE WARNING 'a message could not be taken right behind a result: %', SQLERRM;
  taken := NULL;
  again := true;
END $$;

-- Some agents that serve a queue and have room, and the node that each is connected to; NULL for a hosted one. For the
-- queue of one instance its room for sessions does not matter, because messages may be of sessions that count on it
-- already. Agents that stay full are noted (full_agents.sql), so that the next samples leave them out: this finds the
-- last free agent among hundreds. Each node calls it once a second for each queue, so it ends where samples bring
-- little, and may miss an agent until the next call (unlike choose_to_reserve).
CREATE FUNCTION agents_to_fill(of_tenant text, of_queue text)
  RETURNS TABLE (instance_id text, mesh_id text) LANGUAGE plpgsql
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
    SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  target record := queue_target(of_queue);
  wish routing := new_routing(tenant_id => of_tenant, want_skill_id => nullif(target.skill_id, ''));
  agents_limit CONSTANT integer := 4; -- the node asks again while messages are taken
  sample_size CONSTANT integer := 16; -- twice what a message compares, because each sample also notes full agents
  samples_limit CONSTANT integer := 32; -- so it compares at most 512 agents
  -- The first samples find the agents that stay full. From this one on, a sample that notes less than half of its
  -- agents ends the search: the others have just got work, and would only be met again.
  may_end_from CONSTANT integer := 6;
  noted_least CONSTANT integer := 8;
  recheck_limit CONSTANT integer := 256; -- each costs a count of its load and the lock of its row
  compared record;
  found integer := 0;
  seen integer;
  noted integer;
BEGIN
  IF target.instance_id <> '' THEN
    RETURN QUERY SELECT x.instance_id, x.mesh_id FROM routable_agent(of_tenant, target.instance_id) x
      WHERE coalesce(tasks_left(x) > 0, true);
    RETURN;
  END IF;
  FOR sample IN 1 .. samples_limit LOOP
    seen := 0;
    noted := 0;
    -- In random order among those with room: the node of the first may be gone, and would take nothing.
    FOR compared IN SELECT * FROM compared_agents(wish, NULL, nullif(target.agent_type, ''), sample_size) c
      ORDER BY c.is_full, random() LOOP
      seen := seen + 1;
      IF NOT compared.is_full THEN
        instance_id := (compared.agent).instance_id;
        mesh_id := (compared.agent).mesh_id;
        RETURN NEXT;
        found := found + 1;
        EXIT WHEN found = agents_limit;
      ELSIF stays_full(compared.last_dispatch_at) THEN
        PERFORM set_full_at(of_tenant, (compared.agent).instance_id, now());
        noted := noted + 1;
      END IF;
    END LOOP;
    EXIT WHEN found > 0;
    -- All agents were seen, or few could be noted: go on only if agents that were noted five seconds ago have room.
    EXIT WHEN (seen < sample_size OR sample >= may_end_from AND noted < noted_least)
      AND NOT recheck_full(of_tenant, recheck_limit);
  END LOOP;
END $$;
