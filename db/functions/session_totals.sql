-- What a session has had: how many messages and tokens, exactly, without reading all messages. Rows of session_totals
-- have the sum of the older messages; a reader adds the newer ones, and those that were not over.

-- The tokens that a message has used.
CREATE FUNCTION tokens_of(usage jsonb) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT reported_tokens(usage, 'input_tokens') + reported_tokens(usage, 'output_tokens') $$;

-- A lower bound of the ids of a session's messages, so that the partitions of earlier months are not opened. Ids are
-- made by the clocks of processes, which differ from the database's by less than a day.
CREATE FUNCTION first_message_bound(s sessions)
  RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT id_bound('msg', s.created_at - interval '1 day') $$;

-- The totals of a session as of now, and how many of its messages were counted one by one. In PL/pgSQL, because a
-- condition with a column of sessions may not be asked of an index before the tenant's own (row-level security), and
-- all of the tenant's messages would be read. The session's UUID is worked out before and there is no upper bound: so
-- the index of sessions looks cheaper than the key while a month is empty.
CREATE FUNCTION totals_of(s sessions, OUT total_turns bigint, OUT total_tokens bigint, OUT uncounted bigint)
  LANGUAGE plpgsql STABLE
  SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  known session_totals;
  of_session CONSTANT uuid := session_uuid(uuid_of(s.tenant_id), s.session_id);
  after text COLLATE "C";
  newer numeric;
  open numeric := 0;
BEGIN
  SELECT * INTO known FROM session_totals k WHERE k.tenant_id = s.tenant_id AND k.session_id = s.session_id;
  after := coalesce(known.counted_until, first_message_bound(s));
  SELECT count(*), coalesce(sum(tokens_of(m.usage)), 0) INTO uncounted, newer FROM messages m
   WHERE m.session_uuid = of_session AND m.tenant_id = s.tenant_id AND m.message_id > after;
  IF cardinality(known.open_ids) > 0 THEN
    SELECT coalesce(sum(tokens_of(m.usage)), 0) INTO open FROM unnest(known.open_ids) AS o (message_id)
      CROSS JOIN LATERAL (SELECT v.usage FROM messages v
        WHERE v.tenant_id = s.tenant_id AND v.message_id = o.message_id OFFSET 0) m;
  END IF;
  total_turns := coalesce(known.turns, 0) + uncounted;
  total_tokens := shown_tokens(coalesce(known.tokens, 0) + newer + open);
END $$;

-- Brings the totals of a session forward, if a few hundred of its messages are older than a minute and not counted: by
-- ten thousand of them, or fewer where a hundred are not over. Gives how many more it counted; 0 while somebody else
-- has the session's lock. Under that lock no message of the session is being accepted. One that is accepted later with
-- an older id takes the totals away (forget_totals), which are counted anew: its id is then older than five seconds, as
-- that of one that waited a minute for this lock is not.
CREATE FUNCTION advance_totals(of_tenant text, of_session text) RETURNS integer LANGUAGE plpgsql
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  step CONSTANT integer := 250;
  at_most CONSTANT integer := 10000;
  open_most CONSTANT integer := 100;
  bound text COLLATE "C" := id_bound('msg', clock_timestamp() - interval '1 minute');
  wanted CONSTANT uuid := session_uuid(uuid_of(of_tenant), of_session);
  session sessions;
  known session_totals;
  after text COLLATE "C";
  counted record;
BEGIN
  SELECT * INTO session FROM sessions s WHERE s.tenant_id = of_tenant AND s.session_id = of_session;
  IF session.created_at > now() - interval '1 minute' THEN
    RETURN 0;
  END IF;
  SELECT * INTO known FROM session_totals k WHERE k.tenant_id = of_tenant AND k.session_id = of_session;
  after := coalesce(known.counted_until, first_message_bound(session));
  IF coalesce((SELECT m.message_id FROM messages m WHERE m.session_uuid = wanted AND m.tenant_id = of_tenant
      AND m.message_id > after ORDER BY m.message_id OFFSET step - 1 LIMIT 1) >= bound, true) THEN
    RETURN 0;
  END IF;
  PERFORM 1 FROM sessions s WHERE s.tenant_id = of_tenant AND s.session_id = of_session FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    RETURN 0;
  END IF;
  -- Read again: it sees what was committed before the lock.
  SELECT * INTO known FROM session_totals k WHERE k.tenant_id = of_tenant AND k.session_id = of_session;
  after := coalesce(known.counted_until, first_message_bound(session));
  WITH opened AS MATERIALIZED (
    SELECT m.message_id, m.usage, m.state NOT IN ('completed', 'failed', 'canceled') AS is_open
      FROM unnest(known.open_ids) AS open (message_id)
      CROSS JOIN LATERAL (SELECT * FROM messages v
        WHERE v.tenant_id = of_tenant AND v.message_id = open.message_id OFFSET 0) m),
  newer AS MATERIALIZED (
    SELECT m.message_id, m.usage, m.state NOT IN ('completed', 'failed', 'canceled') AS is_open FROM messages m
     WHERE m.session_uuid = wanted AND m.tenant_id = of_tenant
       AND m.message_id > after ORDER BY m.message_id LIMIT at_most),
  fitting AS MATERIALIZED (
    SELECT n.message_id, n.usage, n.is_open FROM (
      SELECT x.*, count(*) FILTER (WHERE x.is_open) OVER (ORDER BY x.message_id) AS open_so_far FROM newer x
        WHERE x.message_id < bound) n
     WHERE n.open_so_far + (SELECT count(*) FROM opened o WHERE o.is_open) <= open_most),
  settled AS (
    SELECT message_id, usage, is_open FROM opened UNION ALL SELECT message_id, usage, is_open FROM fitting)
  SELECT (SELECT count(*) FROM fitting) AS turns, (SELECT max(f.message_id) FROM fitting f) AS until,
         coalesce(sum(tokens_of(s.usage)) FILTER (WHERE NOT s.is_open), 0) AS tokens,
         coalesce(array_agg(s.message_id) FILTER (WHERE s.is_open), '{}') AS open_ids INTO counted FROM settled s;
  IF counted.turns > 0 THEN
    INSERT INTO session_totals AS k (tenant_id, session_id, counted_until, turns, tokens, open_ids)
      VALUES (of_tenant, of_session, counted.until, counted.turns, counted.tokens, counted.open_ids)
      ON CONFLICT (tenant_id, session_id)
        DO UPDATE SET counted_until = excluded.counted_until, turns = k.turns + excluded.turns,
          tokens = k.tokens + excluded.tokens, open_ids = excluded.open_ids;
  END IF;
  RETURN counted.turns;
END $$;

-- Deletes totals that claim to include a message which is accepted long after its id was made: they are wrong.
CREATE FUNCTION forget_totals(of_tenant text, of_session text, of_message text) RETURNS void LANGUAGE sql AS $$
  DELETE FROM session_totals k
    WHERE k.tenant_id = of_tenant AND k.session_id = of_session AND k.counted_until >= of_message
$$;
