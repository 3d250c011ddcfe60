-- Room on agents: routing reserves it for a message's session (choose_agent.sql).

-- Whether the session of a message is counted on an instance already, so that one more of its messages takes no further room.
CREATE FUNCTION session_holds_slot(r routing, of_instance text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN r.session_explicit AND r.session_instance_id = of_instance AND NOT r.session_suspended
    OR EXISTS (SELECT 1 FROM running_messages m WHERE m.tenant_id = r.tenant_id AND m.instance_id = of_instance
                  AND m.session_id = r.session_id AND m.holds_slot);
END $$;

-- How many messages this transaction has given an instance and not written (`routing.unwritten_ids`).
CREATE FUNCTION unwritten_on(of_instance text, unwritten_ids text[]) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(cardinality(array_positions(unwritten_ids, of_instance)), 0)
$$;

-- The load of an instance, with those.
CREATE FUNCTION load_for(r routing, of_instance text) RETURNS integer LANGUAGE sql STABLE AS $$
  SELECT agent_load(r.tenant_id, of_instance) + unwritten_on(of_instance, r.unwritten_ids)
$$;

-- Reserves room on an instance until the transaction ends. Whoever binds a session to it holds its lock, so that two at once cannot pass
-- the bound. Gives whether there is room; NULL on the fast path, which waits for nobody, while another transaction holds the lock.
CREATE FUNCTION claim_room(r routing, of_instance text, of_type text, status text, room integer) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF room = 0 AND status <> 'busy' THEN
    RETURN true;
  END IF;
  -- A full or busy agent is not worth the lock.
  IF (status = 'busy' OR load_for(r, of_instance) >= room)
      AND (r.session_id IS NULL OR NOT session_holds_slot(r, of_instance)) THEN
    RETURN false;
  END IF;
  IF room > 0 THEN
    IF r.only_mesh_id IS NULL THEN
      PERFORM lock_room(r.tenant_id, of_instance);
    ELSIF NOT lock_room_at_once(r.tenant_id, of_instance) THEN
      RETURN NULL;
    END IF;
  END IF;
  IF r.session_id IS NOT NULL AND session_holds_slot(r, of_instance) THEN
    RETURN true;
  END IF;
  -- A new message on the fast path goes behind those that wait for this agent.
  IF r.only_mesh_id IS NOT NULL AND EXISTS (SELECT 1 FROM running_messages m
       WHERE m.tenant_id = r.tenant_id AND m.unrouted_since IS NOT NULL AND NOT m.holds_slot
         AND coalesce(m.agent_type, m.want_agent_type, of_type) = of_type AND coalesce(m.want_instance_id, of_instance) = of_instance) THEN
    RETURN false;
  END IF;
  RETURN load_for(r, of_instance)
    + CASE WHEN r.has_decision THEN 0 ELSE waiting_decisions(r.tenant_id, of_instance) END < room;
END $$;
