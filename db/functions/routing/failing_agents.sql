-- Instances whose messages fail. While others of their type succeed, they get fewer of the messages that those could
-- take. Messages that only they can take, because these name them or their sessions, are not held back.

-- Counts how a message ended on an agent. An agent that fails pauses for a quarter of a second, then for twice as long
-- each time, up to ten seconds. Gives whether the record still has failures of it.
CREATE FUNCTION count_outcome(of_tenant text, of_instance text, error text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  failed integer := (error IS NOT NULL)::integer;
  o agent_outcomes;
BEGIN
  IF failed = 1 THEN
    INSERT INTO agent_outcomes (tenant_id, instance_id, failures, last_error)
      VALUES (of_tenant, of_instance, 0, error) ON CONFLICT DO NOTHING;
  END IF;
  UPDATE agent_outcomes x SET failures = (x.failures << 1 | failed) & 1023, last_error = coalesce(error, x.last_error)
   WHERE x.tenant_id = of_tenant AND x.instance_id = of_instance RETURNING * INTO o;
  IF NOT FOUND THEN
    RETURN false;
  ELSIF o.failures = 0 THEN
    DELETE FROM agent_outcomes x WHERE x.tenant_id = of_tenant AND x.instance_id = of_instance;
    RETURN false;
  END IF;
  IF bit_count(o.failures::integer::bit(10)) < 5 THEN
    UPDATE agent_outcomes x SET failing_since = NULL, paused_until = NULL, pauses = 0
     WHERE x.tenant_id = of_tenant AND x.instance_id = of_instance AND x.failing_since IS NOT NULL;
  ELSE
    UPDATE agent_outcomes x SET failing_since = coalesce(x.failing_since, now()),
        pauses = CASE failed WHEN 1 THEN least(x.pauses + 1, 16) ELSE 0 END,
          paused_until = CASE failed WHEN 1 THEN now() + least(10, 0.25 * 2 ^ x.pauses) * interval '1 s' END
     WHERE x.tenant_id = of_tenant AND x.instance_id = of_instance;
  END IF;
  RETURN true;
END $$;

-- Whether an agent fails while others of its type that something can be sent to do not.
CREATE FUNCTION fails_beside_others(of_tenant text, of_instance text, of_type text)
  RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM agent_outcomes o
    WHERE o.tenant_id = of_tenant AND o.instance_id = of_instance AND o.failing_since IS NOT NULL) THEN
    RETURN false;
  END IF;
  RETURN EXISTS (SELECT 1 FROM agents b
    WHERE b.tenant_id = of_tenant AND b.agent_type = of_type AND b.has_room IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM agent_outcomes o
      WHERE o.tenant_id = b.tenant_id AND o.instance_id = b.instance_id AND o.failing_since IS NOT NULL));
END $$;

-- Whether an agent that fails beside others gets no message now that others could take: it pauses, or has a message
-- already.
CREATE FUNCTION is_held_back(of_tenant text, of_instance text, of_type text)
  RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF NOT fails_beside_others(of_tenant, of_instance, of_type) THEN
    RETURN false;
  END IF;
  RETURN EXISTS (SELECT 1 FROM agent_outcomes o
      WHERE o.tenant_id = of_tenant AND o.instance_id = of_instance AND o.paused_until > now())
    OR EXISTS (SELECT 1 FROM running_messages r
      WHERE r.tenant_id = of_tenant AND r.instance_id = of_instance AND r.holds_slot);
END $$;
