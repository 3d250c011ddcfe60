-- The card of one agent of each declaration of media types, of a type or (NULL) of every type. The index
-- agents_registered leads from one to the next, past all other agents that declare the same; without sorts no other
-- plan has its order.
CREATE FUNCTION declared_cards(of_tenant text, of_type text, at_most integer) RETURNS SETOF jsonb
  LANGUAGE plpgsql STABLE SET enable_sort = off SET enable_seqscan = off SET enable_bitmapscan = off
    SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  type text := coalesce(of_type, '');
  digest text := '';
  card jsonb;
BEGIN
  FOR n IN 1 .. at_most LOOP
    SELECT a.modes_digest, a.agent_card INTO digest, card FROM agents a
     WHERE a.tenant_id = of_tenant AND a.agent_type = type AND coalesce(a.deregistered_at, 'infinity') = 'infinity'
       AND a.modes_digest > digest
     ORDER BY a.tenant_id, a.agent_type, a.modes_digest LIMIT 1;
    IF NOT FOUND AND of_type IS NULL THEN
      SELECT a.agent_type, a.modes_digest, a.agent_card INTO type, digest, card FROM agents a
       WHERE a.tenant_id = of_tenant AND a.agent_type > type AND coalesce(a.deregistered_at, 'infinity') = 'infinity'
       ORDER BY a.agent_type, a.modes_digest LIMIT 1;
    END IF;
    EXIT WHEN NOT FOUND;
    RETURN NEXT card;
  END LOOP;
END $$;
