-- The first half of the accept transaction: what becomes of each message.

-- Checks a call against the limits: gives the counts that were taken, and a `verdict` if a limit refuses it. Each state
-- is counted in a query of its own, in the order of the index running_in_flight. Otherwise the planner takes the
-- primary key and reads all messages, as it may if it plans while the table is small.
CREATE FUNCTION check_limits(c accept_call) RETURNS accept_result LANGUAGE plpgsql AS $$
DECLARE
  result accept_result;
BEGIN
  IF c.in_flight_limit > 0 THEN
    result.in_flight := in_flight(c.tenant_id, c.in_flight_limit);
  END IF;
  IF c.queued_limit > 0 THEN
    result.queued := (SELECT count(*) FROM (SELECT 1 FROM running_messages r
      WHERE r.tenant_id = c.tenant_id AND r.state = 'submitted'
        ORDER BY r.session_id LIMIT c.queued_limit) AS submitted);
  END IF;
  IF c.waiting_limit > 0 THEN
    result.waiting := (SELECT count(*) FROM (SELECT 1 FROM running_messages r
      WHERE r.tenant_id = c.tenant_id AND r.state = 'input-required'
        ORDER BY r.session_id LIMIT c.waiting_limit) AS waiting);
  END IF;
  result.verdict := CASE WHEN c.refused THEN 'refused' WHEN c.queued_full THEN 'queued_full'
    WHEN c.waiting_full THEN 'waiting_full' WHEN result.queued >= c.queued_limit THEN 'queued_full'
      WHEN result.waiting >= c.waiting_limit THEN 'waiting_full' END;
  RETURN result;
END $$;

-- The outcome of a call that writes nothing.
CREATE FUNCTION writes_nothing(c accept_call, result accept_result) RETURNS accept_outcome LANGUAGE sql IMMUTABLE AS $$
  SELECT new_accept_outcome(c => c, result => result)
$$;

-- The first state of a message that is written. NULL for a verdict that is forgotten here: messages.state refuses it.
CREATE FUNCTION first_state(verdict text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE verdict WHEN 'dispatched' THEN 'working' WHEN 'rests' THEN 'submitted' WHEN 'queued' THEN 'submitted'
    WHEN 'asked' THEN 'input-required' WHEN 'denied' THEN 'failed' WHEN 'unavailable' THEN 'failed' END
$$;

-- Whether the session of a message holds a slot already, on an agent that is reached from here. Then the message need
-- not queue, because messages that wait for room cannot use that slot.
CREATE FUNCTION holds_slot_here(wish routing) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
  own_agent text := session_agent(wish, wish.want_agent_type);
BEGIN
  RETURN own_agent IS NOT NULL AND session_holds_slot(wish.tenant_id, wish.session_id, wish.reserves_on, own_agent)
    AND EXISTS (SELECT 1 FROM routable_agent(wish.tenant_id, own_agent) a
      WHERE is_reached(wish, a.deployment_mode, a.mesh_id));
END $$;

-- The session that a message names. It is locked, so that it cannot end meanwhile. `refusal`: the verdict if the
-- message may not join it, else NULL. `has_turn`: in an ordered session no other message comes first; NULL in any
-- other. `tries`: an agent may be chosen now. `resumes`: the session is suspended, and goes on if one is chosen.
CREATE TYPE joined_session AS (
  status text, suspended boolean, reserves_on text, instance_id text, agent_type text, user_id text, ordered boolean,
  refusal text, has_turn boolean, tries boolean, resumes boolean
);

-- Lets a message join the session that it names. `work_user`: the user for whom its sender works; NULL for none.
-- `tries`: an agent may be chosen now. `may_wait` as in decide_message.
CREATE FUNCTION join_session_of(c accept_call, work_user text, tries boolean, may_wait boolean)
  RETURNS joined_session LANGUAGE plpgsql AS $$
DECLARE
  session joined_session;
BEGIN
  IF may_wait THEN
    PERFORM 1 FROM sessions s WHERE s.tenant_id = c.tenant_id AND s.session_id = c.requested_context FOR SHARE;
  END IF;
  SELECT s.status, s.suspended, reserves_on(s), s.instance_id, s.agent_type, s.user_id, s.ordered INTO session
    FROM sessions s
   WHERE s.tenant_id = c.tenant_id AND s.session_id = c.requested_context FOR SHARE SKIP LOCKED;
  IF NOT FOUND AND EXISTS (SELECT 1 FROM sessions s
    WHERE s.tenant_id = c.tenant_id AND s.session_id = c.requested_context) THEN
    session.refusal := 'locked';
  ELSIF session.status IS DISTINCT FROM 'active' THEN
    session.refusal := CASE WHEN session.status IS NULL THEN 'no_session' ELSE 'session_closed' END;
  ELSIF c.user_from = 'token' AND session.user_id IS DISTINCT FROM c.user_id THEN
    -- The session is not that user's: it was opened after the process had looked.
    session.refusal := 'no_session';
  ELSIF session.user_id <> c.user_id OR session.user_id <> work_user THEN
    session.refusal := 'other_user';
  END IF;
  IF session.refusal IS NOT NULL THEN
    RETURN session;
  END IF;
  -- With the session's lock this sees all messages before its own. If another transaction has the lock, the message
  -- rests, and its turn is looked up after the commit. next_in_order is a statement of its own, so it sees what was
  -- committed before the lock.
  IF session.ordered THEN
    session.has_turn := lock_session_at_once(c.tenant_id, c.requested_context);
    IF session.has_turn THEN
      session.has_turn := next_in_order(c.tenant_id, c.requested_context) IS NULL;
    END IF;
  END IF;
  session.tries := tries AND session.has_turn IS NOT FALSE;
  -- A question to a human suspended the session, so it has to claim room again. If its row cannot be locked now, the
  -- message joins a queue, and the take resumes the session.
  session.resumes := session.suspended AND session.tries;
  IF session.resumes THEN
    session.tries := lock_session_at_once(c.tenant_id, c.requested_context);
  END IF;
  RETURN session;
END $$;

-- The type of a message that asks for nothing. `of_session`: the one that it names, which no agent has joined yet: it
-- will be one of the type that the session's first message waits for. Else the tenant's default; NULL for none.
CREATE FUNCTION assumed_type(of_tenant text, of_session text) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
  first_type text;
BEGIN
  IF of_session IS NOT NULL THEN
    SELECT r.want_agent_type INTO first_type FROM running_messages r
     WHERE r.tenant_id = of_tenant AND r.session_id = of_session
       AND r.state IN ('submitted', 'working', 'input-required')
       AND r.want_agent_type IS NOT NULL ORDER BY r.created_at, r.message_id LIMIT 1;
  END IF;
  RETURN coalesce(first_type, default_target(of_tenant));
END $$;

-- Whether what a message asks for is registered: messages wait only for what is. The session's agent of the type goes
-- before a wanted instance or skill.
CREATE FUNCTION is_registered(wish routing) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
  has_own_agent boolean; -- the session has an agent of the type; NULL: there is no session yet
BEGIN
  IF wish.session_id IS NOT NULL THEN
    has_own_agent := wish.session_agent_type = wish.want_agent_type OR EXISTS (SELECT 1 FROM session_agents j
      WHERE j.tenant_id = wish.tenant_id AND j.session_id = wish.session_id AND j.agent_type = wish.want_agent_type);
  END IF;
  RETURN target_registered(wish.tenant_id, CASE WHEN has_own_agent IS NOT TRUE THEN wish.want_instance_id END,
    wish.want_agent_type, CASE WHEN has_own_agent IS NOT TRUE THEN wish.want_skill_id END);
END $$;

-- What becomes of a message. It takes the locks that this needs, and writes nothing of the message. A repeat is found
-- by its `key` on the record, at any step. So before the caller passes a key again, it writes what it has decided.
-- `may_wait`: it waits for the locks of session and key. Its transaction must then hold no lock yet.
-- `known`: the agent of an earlier message, the only one of its type and without a bound; NULL for none.
-- `unwritten_ids` as in `routing`.
--
-- plpgsql prepares each expression anew in every transaction, which takes a microsecond or more. Most messages open a
-- session and are dispatched at once, so that path has few expressions.
CREATE FUNCTION decide_message(c accept_call, key uuid, may_wait boolean, known chosen_agent, unwritten_ids text[])
  RETURNS accept_outcome LANGUAGE plpgsql AS $$
DECLARE
  result accept_result;
  session joined_session; -- of the one that it names
  in_session boolean := c.requested_context <> '';
  want_type text := c.want_agent_type;
  tries boolean := c.dispatch_id IS NOT NULL OR coalesce(c.reaches_nodes, false); -- an agent may be chosen now
  wish routing;
  agent chosen_agent;
  elsewhere chosen_agent; -- with room, and another node sends to it
  error_code text := c.decision #>> '{error,code}';
  error_text text;
  dispatched boolean;
  work agent_work; -- of the agent that sends it
  queue text; -- that it joins
  goes_behind boolean; -- it waits behind others of its queue; NULL: not looked up
BEGIN
  -- 1. Bounds, and how many agents the message came through.
  IF c.refused OR c.queued_full OR c.waiting_full OR c.in_flight_limit > 0 OR c.queued_limit > 0
    OR c.waiting_limit > 0 THEN
    result := check_limits(c);
    IF result.verdict IS NOT NULL THEN
      RETURN writes_nothing(c, not_accepted(c, result, result.verdict));
    END IF;
    tries := tries AND coalesce(result.in_flight < c.in_flight_limit, true);
  END IF;
  IF c.sender_agent_type IS NOT NULL THEN
    work := work_of(c);
    IF work.hops > 16 THEN -- LIMITS.messageHopsMax
      RETURN writes_nothing(c, not_accepted(c, result, 'too_many_hops'));
    END IF;
    -- An agent that may work for several users says for which it sends.
    result.user_id := CASE WHEN cardinality(work.users) = 1 THEN work.users[1]
      WHEN c.user_id = ANY (work.users) THEN c.user_id END;
  END IF;

  -- 2. User and session.
  IF in_session THEN
    session := join_session_of(c, result.user_id, tries, may_wait);
    IF session.refusal = 'locked' THEN
      RETURN writes_nothing(c, accept_locked(result, 'session ' || c.requested_context));
    ELSIF session.refusal IS NOT NULL THEN
      RETURN writes_nothing(c, not_accepted(c, result, session.refusal));
    END IF;
    result.user_id := coalesce(session.user_id, result.user_id);
    tries := session.tries;
    want_type := coalesce(want_type, session.agent_type);
  END IF;
  -- An agent may name no other user than that of its work or of the session.
  IF c.sender_agent_type IS NOT NULL AND c.user_from IS NULL AND c.user_id IS NOT NULL
    AND result.user_id IS DISTINCT FROM c.user_id THEN
    RETURN writes_nothing(c, not_accepted(c, result, 'other_user'));
  END IF;
  -- 3. Target.
  IF coalesce(want_type, c.want_instance_id, c.want_skill_id) IS NULL THEN
    want_type := assumed_type(c.tenant_id, CASE WHEN in_session THEN c.requested_context END);
    IF want_type IS NULL THEN
      RETURN writes_nothing(c, not_accepted(c, result, 'target_required'));
    END IF;
  END IF;

  wish := new_routing(tenant_id => c.tenant_id, session_id => CASE WHEN in_session THEN c.session_id END,
    reserves_on => session.reserves_on, session_instance_id => session.instance_id,
    session_agent_type => session.agent_type, want_instance_id => c.want_instance_id, want_agent_type => want_type,
    want_skill_id => c.want_skill_id, mesh_id => c.mesh_id, reaches_nodes => c.reaches_nodes,
    unwritten_ids => unwritten_ids);
  -- 4. Queue: it goes behind those that wait for the same, unless its session holds its slot.
  IF tries AND tenant_has_queued(c.tenant_id) THEN
    queue := queue_to_join(wish);
    goes_behind := queue_has_messages(c.tenant_id, queue);
    IF goes_behind AND in_session THEN
      goes_behind := NOT holds_slot_here(wish);
    END IF;
  END IF;
  -- 5. Agent.
  IF tries AND goes_behind IS NOT TRUE THEN
    IF known.agent_type = want_type AND coalesce(wish.session_id, c.want_instance_id, c.want_skill_id) IS NULL
        AND is_reached(wish, known.deployment_mode, known.mesh_id) THEN
      agent := known;
    ELSE
      agent := choose_agent(wish, c.idle_ids);
    END IF;
  END IF;
  IF agent.instance_id IS NOT NULL AND (c.dispatch_id IS NULL OR agent.mesh_id IS DISTINCT FROM c.mesh_id) THEN
    elsewhere := agent;
    agent := NULL;
  END IF;
  dispatched := agent.instance_id IS NOT NULL;
  -- 6. Whether anything is registered for it.
  IF NOT dispatched AND elsewhere.instance_id IS NULL AND error_code IS NULL AND NOT is_registered(wish) THEN
    IF c.unavailable_text IS NULL THEN
      result.agent_type := want_type;
      RETURN writes_nothing(c, not_accepted(c, result, 'target_unknown'));
    END IF;
    error_code := 'TARGET_UNAVAILABLE';
    error_text := c.unavailable_text;
  END IF;
  -- It joins a queue, unless an agent has it, it has failed, or something else comes first.
  IF dispatched OR session.has_turn IS FALSE OR error_code IS NOT NULL
    OR coalesce(c.decision ?| '{input_request,undecided}', false) THEN
    queue := NULL;
  ELSE
    queue := coalesce(queue, queue_to_join(wish));
  END IF;

  -- 7. messageId. A transaction that writes a key holds its lock. So with the lock this sees the key if it is there,
  -- and the INSERT meets none.
  IF may_wait THEN
    PERFORM pg_advisory_xact_lock(uuid_hash_extended(key, 0));
  ELSIF NOT pg_try_advisory_xact_lock(uuid_hash_extended(key, 0)) THEN
    RETURN writes_nothing(c, accept_locked(result, 'message ' || key));
  END IF;
  IF EXISTS (SELECT 1 FROM idempotency_keys k WHERE k.idempotency_key = key) THEN
    result := not_accepted(c, result, NULL);
    IF result.verdict IS NOT NULL THEN
      RETURN writes_nothing(c, result);
    END IF;
    -- The key has expired, or retention dropped its message first (after both times were shortened). The sweeper may be
    -- deleting it.
    IF NOT forget_key(key, may_wait) THEN
      RETURN writes_nothing(c, accept_locked(result, 'message ' || key));
    END IF;
  END IF;

  result.verdict := CASE WHEN c.decision ? 'error' THEN 'denied' WHEN error_code IS NOT NULL THEN 'unavailable'
    WHEN dispatched THEN 'dispatched' WHEN c.decision ? 'input_request' THEN 'asked'
    WHEN queue IS NOT NULL THEN 'queued' ELSE 'rests' END;
  RETURN new_accept_outcome(c => c, key => key, want_type => want_type, agent => agent, error_code => error_code,
    error_text => coalesce(error_text, c.decision #>> '{error,message}'), ordered => coalesce(session.ordered, false),
    resumes => coalesce(session.resumes AND dispatched, false),
    hops => coalesce(work.hops, (c.metadata ->> 'hops')::integer, 0),
    has_extra_rows => c.decision IS NOT NULL OR is_late(c.message_id), queue => queue,
    result => new_accept_result(verdict => result.verdict, state => first_state(result.verdict),
      message_id => c.message_id, session_id => c.session_id, accepted_at => now(),
      instance_id => coalesce(agent.instance_id, elsewhere.instance_id), agent_type => agent.agent_type,
      deployment_mode => agent.deployment_mode, connection_epoch => agent.connection_epoch,
      mesh_id => coalesce(agent.mesh_id, elsewhere.mesh_id), public_url => agent.public_url,
      agent_card => agent.agent_card, dispatch_auth => encode(agent.dispatch_auth, 'hex'),
      user_id => coalesce(result.user_id, c.user_id), in_flight => result.in_flight, queued => result.queued,
      waiting => result.waiting, new_queue => CASE WHEN goes_behind IS NOT TRUE THEN queue END));
END $$;
