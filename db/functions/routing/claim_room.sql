-- Room on agents: routing reserves it for a message's session (choose_agent.sql).

-- Keeps others from taking room on a bounded instance until the transaction ends. Taking it twice is harmless.
CREATE FUNCTION lock_room(of_tenant text, of_instance text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('capacity:' || of_tenant || ':' || of_instance, 0));
END $$;

-- The same without waiting: gives whether the transaction has the lock.
CREATE FUNCTION lock_room_at_once(of_tenant text, of_instance text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  RETURN pg_try_advisory_xact_lock(hashtextextended('capacity:' || of_tenant || ':' || of_instance, 0));
END $$;

-- The instance on which a session reserves its place; NULL: none.
CREATE FUNCTION reserves_on(s sessions) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN s.reserves AND NOT s.suspended THEN s.instance_id END
$$;

-- Whether a session counts on an instance already, so that one more of its messages takes no further room. `reserved`:
-- the instance on which it reserves its place.
CREATE FUNCTION session_holds_slot(of_tenant text, of_session text, reserved text, of_instance text)
  RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN coalesce(reserved = of_instance, false)
    OR EXISTS (SELECT 1 FROM running_messages m WHERE m.tenant_id = of_tenant AND m.instance_id = of_instance
                  AND m.session_id = of_session AND m.holds_slot);
END $$;

-- How many messages this transaction has given an instance and not written (`routing.unwritten_ids`).
CREATE FUNCTION unwritten_on(of_instance text, unwritten_ids text[]) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(cardinality(array_positions(unwritten_ids, of_instance)), 0)
$$;

-- Whether an agent has no bound. `most_sessions`, `most_tasks`: the bounds on its sessions and its messages; 0: none.
CREATE FUNCTION is_unbounded(most_sessions integer, most_tasks integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT most_sessions = 0 AND most_tasks = 0
$$;

-- The load of an instance, with the messages of this transaction that are not written.
CREATE FUNCTION load_for(wish routing, of_instance text) RETURNS integer LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT l.load FROM loads(wish.tenant_id, of_instance, NULL) l)
    + unwritten_on(of_instance, wish.unwritten_ids);
END $$;

-- Whether an instance with a bound on its messages (`most_tasks` > 0) has as many as that, with those of this
-- transaction.
CREATE FUNCTION tasks_are_full(wish routing, of_instance text, most_tasks integer)
  RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN tasks_on(wish.tenant_id, of_instance, most_tasks)
    + unwritten_on(of_instance, wish.unwritten_ids) >= most_tasks;
END $$;

-- Whether an agent with a bound, or that is busy, may have room for a message. Messages that wait for this agent go
-- first. `most_sessions`, `most_tasks`: as in is_unbounded. For `most_tasks` each message counts, even if its session
-- holds a slot already.
CREATE FUNCTION may_have_room(wish routing, of_instance text, of_type text, status text, most_sessions integer,
  most_tasks integer) RETURNS boolean
  LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF most_tasks > 0
    AND (tasks_are_full(wish, of_instance, most_tasks) OR agent_has_queued(wish.tenant_id, of_instance, of_type)) THEN
    RETURN false;
  ELSIF wish.session_id IS NOT NULL
    AND session_holds_slot(wish.tenant_id, wish.session_id, wish.reserves_on, of_instance) THEN
    RETURN true;
  END IF;
  RETURN status <> 'busy' AND (most_sessions = 0 OR load_for(wish, of_instance) < most_sessions)
    AND NOT agent_has_queued(wish.tenant_id, of_instance, of_type);
END $$;

-- Reserves room on an agent until the transaction ends. Gives whether there is room. Whoever binds a session to an
-- agent with a bound holds the lock of its room, so that two at once cannot pass the bound. It waits for nobody: false
-- while another transaction holds the lock. With the lock it looks again, in a statement of its own, which sees what
-- was committed before the lock.
CREATE FUNCTION claim_room(wish routing, of_instance text, of_type text, status text, most_sessions integer,
  most_tasks integer) RETURNS boolean
  LANGUAGE plpgsql AS $$
BEGIN
  IF is_unbounded(most_sessions, most_tasks) THEN
    RETURN status <> 'busy' OR may_have_room(wish, of_instance, of_type, status, 0, 0);
  ELSIF NOT may_have_room(wish, of_instance, of_type, status, most_sessions, most_tasks) THEN
    RETURN false;
  ELSIF NOT lock_room_at_once(wish.tenant_id, of_instance) THEN
    RETURN false;
  END IF;
  RETURN may_have_room(wish, of_instance, of_type, status, most_sessions, most_tasks);
END $$;

-- Reserves room for a session, and waits for the lock. Without room the exception releases the lock, so that two
-- callers never wait for each other. A session takes no place among messages (`max_concurrent_tasks`).
CREATE FUNCTION reserve_for_session(wish routing, of_instance text, most_sessions integer)
  RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM lock_room(wish.tenant_id, of_instance);
  IF most_sessions > 0
    AND load_for(wish, of_instance) + queued_decisions(wish.tenant_id, of_instance) >= most_sessions THEN
    RAISE EXCEPTION USING ERRCODE = 'FL002';
  END IF;
  RETURN true;
EXCEPTION WHEN SQLSTATE 'FL002' THEN
  RETURN false;
END $$;
