-- Adds up what agents did (usage/): from events, in the order of their positions, so that no transaction of a message
-- writes anything for it.

-- Something that is counted: `at` says in which hour. Amounts are added, negative ones too.
CREATE TYPE usage_fact AS (
  tenant_id text, at timestamptz, session_id text, agent_type text, instance_id text, model text, messages bigint,
  dispatches bigint, tool_calls bigint, input_tokens numeric, output_tokens numeric, duration_ms bigint,
  cost_usd numeric, user_id text, credential_id text, asked_type text
);

-- Adds facts to the sums. The rows are taken in the order of their keys: two transactions that add do not wait for each
-- other in a circle.
CREATE FUNCTION add_usage(facts usage_fact[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO usage_hours AS u (tenant_id, hour, agent_type, instance_id, model, messages, dispatches, tool_calls,
      input_tokens, output_tokens, duration_ms, cost_usd)
    SELECT f.tenant_id, date_trunc('hour', f.at, 'UTC'), f.agent_type, f.instance_id, f.model, sum(f.messages),
           sum(f.dispatches), sum(f.tool_calls), sum(f.input_tokens), sum(f.output_tokens), sum(f.duration_ms),
             sum(f.cost_usd)
      FROM unnest(facts) f GROUP BY 1, 2, 3, 4, 5
    HAVING (sum(f.messages), sum(f.dispatches), sum(f.tool_calls), sum(f.input_tokens), sum(f.output_tokens),
      sum(f.cost_usd))
           <> (0, 0, 0, 0, 0, 0)
     ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT (tenant_id, hour, agent_type, instance_id, model)
      DO UPDATE SET messages = u.messages + excluded.messages, dispatches = u.dispatches + excluded.dispatches,
      tool_calls = u.tool_calls + excluded.tool_calls, input_tokens = u.input_tokens + excluded.input_tokens,
      output_tokens = u.output_tokens + excluded.output_tokens, duration_ms = u.duration_ms + excluded.duration_ms,
      cost_usd = u.cost_usd + excluded.cost_usd;
  INSERT INTO usage_sessions AS u (tenant_id, hour, session_uuid, session_name, messages, dispatches, tool_calls,
      input_tokens, output_tokens, duration_ms, cost_usd)
    SELECT uuid_of(f.tenant_id), date_trunc('hour', f.at, 'UTC'),
           coalesce(session_uuid(uuid_of(f.tenant_id), f.session_id), '00000000-0000-0000-0000-000000000000'),
           session_name(f.session_id), sum(f.messages), sum(f.dispatches), sum(f.tool_calls), sum(f.input_tokens),
           sum(f.output_tokens), sum(f.duration_ms), sum(f.cost_usd)
      FROM unnest(facts) f GROUP BY 1, 2, 3, 4
    HAVING (sum(f.messages), sum(f.dispatches), sum(f.tool_calls), sum(f.input_tokens), sum(f.output_tokens),
      sum(f.cost_usd))
           <> (0, 0, 0, 0, 0, 0)
     ORDER BY 1, 2, 3
    ON CONFLICT (tenant_id, hour, session_uuid) DO UPDATE SET messages = u.messages + excluded.messages,
      dispatches = u.dispatches + excluded.dispatches, tool_calls = u.tool_calls + excluded.tool_calls,
      input_tokens = u.input_tokens + excluded.input_tokens, output_tokens = u.output_tokens + excluded.output_tokens,
      duration_ms = u.duration_ms + excluded.duration_ms, cost_usd = u.cost_usd + excluded.cost_usd;
  INSERT INTO usage_by_key AS u (tenant_id, kind, key, hour, messages, dispatches, tool_calls, input_tokens,
    output_tokens, duration_ms, cost_usd)
    SELECT f.tenant_id, k.kind, coalesce(k.key, ''), date_trunc('hour', f.at, 'UTC'), sum(f.messages),
           sum(f.dispatches), sum(f.tool_calls), sum(f.input_tokens), sum(f.output_tokens), sum(f.duration_ms),
             sum(f.cost_usd)
      FROM unnest(facts) f
      CROSS JOIN LATERAL (VALUES ('user', f.user_id), ('credential', f.credential_id),
        ('agent_type', f.asked_type)) AS k (kind, key) GROUP BY 1, 2, 3, 4
    HAVING (sum(f.messages), sum(f.dispatches), sum(f.tool_calls), sum(f.input_tokens), sum(f.output_tokens),
      sum(f.cost_usd))
           <> (0, 0, 0, 0, 0, 0)
     ORDER BY 1, 2, 3, 4
    ON CONFLICT (tenant_id, kind, key, hour) DO UPDATE SET messages = u.messages + excluded.messages,
      dispatches = u.dispatches + excluded.dispatches, tool_calls = u.tool_calls + excluded.tool_calls,
      input_tokens = u.input_tokens + excluded.input_tokens, output_tokens = u.output_tokens + excluded.output_tokens,
      duration_ms = u.duration_ms + excluded.duration_ms, cost_usd = u.cost_usd + excluded.cost_usd;
  INSERT INTO usage_days AS u (tenant_id, day, messages, tokens, cost_usd)
    SELECT f.tenant_id, (f.at AT TIME ZONE 'UTC')::date, sum(f.messages), sum(f.input_tokens + f.output_tokens),
      sum(f.cost_usd)
      FROM unnest(facts) f GROUP BY 1, 2
    HAVING (sum(f.messages), sum(f.input_tokens + f.output_tokens), sum(f.cost_usd)) <> (0, 0, 0) ORDER BY 1, 2
    ON CONFLICT (tenant_id, day)
      DO UPDATE SET messages = u.messages + excluded.messages, tokens = u.tokens + excluded.tokens,
        cost_usd = u.cost_usd + excluded.cost_usd;
END $$;

-- A number of tokens as an agent reported it: 0 if it is not a number, and never more than JSON can carry.
CREATE FUNCTION reported_tokens(usage jsonb, member text) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN jsonb_typeof(usage -> member) = 'number' THEN shown_tokens(trunc((usage ->> member)::numeric))
    ELSE 0 END
$$;

-- A sum as it is shown: as much as a number of JavaScript holds exactly.
CREATE FUNCTION shown_tokens(tokens numeric) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT least(greatest(tokens, 0), 9007199254740991)::bigint $$;

CREATE FUNCTION shown_cost(cost_usd numeric) RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT least(greatest(cost_usd, 0), 1e300)::double precision $$;

CREATE FUNCTION reported_cost(usage jsonb) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT CASE WHEN jsonb_typeof(usage -> 'cost_usd') = 'number' THEN greatest((usage ->> 'cost_usd')::numeric, 0)
    ELSE 0 END $$;

-- What each model of a message used (messages/dispatch/open-dispatch.ts).
CREATE FUNCTION usage_by_model(usage jsonb)
  RETURNS TABLE (model text, input_tokens numeric, output_tokens numeric, reported_cost_usd numeric)
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT coalesce(u.item ->> 'model', ''), sum(reported_tokens(u.item, 'input_tokens')),
         sum(reported_tokens(u.item, 'output_tokens')), sum(reported_cost(u.item))
    FROM jsonb_array_elements(CASE jsonb_typeof(usage -> 'by_model') WHEN 'array' THEN usage -> 'by_model'
      ELSE jsonb_build_array(usage) END) AS u (item)
   WHERE usage IS NOT NULL GROUP BY 1
$$;

-- How long a dispatch took, by its event: an element of a group's events.
CREATE FUNCTION duration_of(event json) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT coalesce(event ->> 'duration_ms', event #>> '{0,duration_ms}')::bigint $$;

-- Locks the cursor up to which usage is added up, and gives its position. While another process has it, this waits with
-- `waits`, else it gives NULL. NULL also where there is none yet: it is made, and begins with the oldest event.
CREATE FUNCTION lock_usage_cursor(waits boolean) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  since bigint;
BEGIN
  IF waits THEN
    PERFORM limit_lock_wait(true);
    SELECT c.position INTO since FROM event_cursors c WHERE c.consumer = 'usage' FOR UPDATE;
  ELSE
    SELECT c.position INTO since FROM event_cursors c WHERE c.consumer = 'usage' FOR UPDATE SKIP LOCKED;
  END IF;
  IF since IS NULL THEN
    INSERT INTO event_cursors (consumer, position) VALUES ('usage', 0) ON CONFLICT DO NOTHING;
  END IF;
  RETURN since;
END $$;

-- Adds up the next groups of events, `most` of them or a few more, in the transaction that moves the cursor past them:
-- so each is counted once, even if a process dies. When a message is accepted, it is counted without an agent, and for
-- the type that it asks for; when it ends, that count moves to its agent, instance and model. Its tokens are read from
-- its row, for each model, when it ends and whenever it waits for a human; only those that were not counted before are
-- added. They cost what the tenant's price of the model says at that moment, else what the agent reported. Dispatches
-- count when they end, unless nothing was sent. `waits`: it waits while another process adds up, else it returns NULL.
-- Returns how many groups there were.
CREATE FUNCTION roll_up_usage(most integer, waits boolean) RETURNS integer LANGUAGE plpgsql
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  since bigint;
  found event_positions[];
  facts usage_fact[];
  received_bit CONSTANT bigint := event_bit('message.received');
  asked_bit CONSTANT bigint := event_bit('message.input_required');
  end_bits CONSTANT bigint :=
    event_bit('message.completed') | event_bit('message.error') | event_bit('message.canceled');
  dispatch_end_bits CONSTANT bigint := event_bit('dispatch.success') | event_bit('dispatch.failed');
BEGIN
  PERFORM act_as_system();
  since := lock_usage_cursor(waits);
  IF since IS NULL THEN
    RETURN NULL;
  END IF;
  found := ARRAY(SELECT q.row FROM (
      SELECT p AS row,
             sum(cardinality(groups_of(p))) OVER (ORDER BY p.position ROWS UNBOUNDED PRECEDING)
             - cardinality(groups_of(p)) AS before
        FROM event_positions p WHERE p.position > group_position_at(since) ORDER BY p.position LIMIT most) q
    WHERE q.before < most ORDER BY (q.row).position);
  IF cardinality(found) = 0 THEN
    RETURN 0;
  END IF;
  -- OFFSET 0: each row is looked up by its key. A plan made while the tables are small would join by the tenant alone.
  WITH
  -- The events that count, one row for each group of them.
  seen AS MATERIALIZED (
    SELECT 'ten_' || g.tenant_id AS tenant_id, 'msg_' || g.message_id AS message_id, g.types, g.occurred_at,
           CASE WHEN g.types & dispatch_end_bits <> 0 THEN 'dsp_' || g.dispatch_id END AS dispatch_id,
           CASE WHEN g.types & dispatch_end_bits <> 0
           THEN duration_of(g.events -> count_of(g.types, event_bit('dispatch.success') - 1)) END AS duration_ms
      FROM (SELECT f.tenant_id, i.id AS group_id FROM unnest(found) f
        CROSS JOIN LATERAL unnest(groups_of(f)) AS i (id) OFFSET 0) w
      CROSS JOIN LATERAL (SELECT * FROM event_groups v
        WHERE v.tenant_id = w.tenant_id AND v.group_id = w.group_id OFFSET 0) g
     WHERE g.types & (received_bit | asked_bit | end_bits | dispatch_end_bits) <> 0 AND g.message_id IS NOT NULL),
  -- The messages that they are about.
  touched AS MATERIALIZED (
    SELECT s.tenant_id, s.message_id, bool_or(s.types & received_bit <> 0)::integer AS received,
           bool_or(s.types & end_bits <> 0)::integer AS ended,
           bool_or(s.types & (received_bit | asked_bit | end_bits) <> 0) AS reports,
           array_agg(s.dispatch_id) FILTER (WHERE s.dispatch_id IS NOT NULL) AS dispatch_ids,
           array_agg(s.occurred_at) FILTER (WHERE s.dispatch_id IS NOT NULL) AS dispatches_ended,
           array_agg(s.duration_ms) FILTER (WHERE s.dispatch_id IS NOT NULL) AS durations
      FROM seen s GROUP BY 1, 2),
  -- The same with what the messages' rows say.
  counted AS MATERIALIZED (
    SELECT t.received, t.ended, t.dispatch_ids, t.dispatches_ended, t.durations, m.tenant_id, m.message_id,
           m.session_id, m.created_at, coalesce(m.completed_at, m.updated_at) AS used_at,
           coalesce(m.agent_type, '') AS agent_type, coalesce(m.instance_id, '') AS instance_id,
           coalesce(m.usage ->> 'model', '') AS model, m.usage, m.user_id, m.credential_id, m.want_agent_type,
           coalesce(m.want_agent_type, m.agent_type) AS asked_type,
           -- The tokens of a message that has ended are counted with the event of its end, wherever that stands.
           t.ended = 1 OR t.reports AND m.state NOT IN ('completed', 'failed', 'canceled') AS reports
      FROM touched t
      CROSS JOIN LATERAL (SELECT * FROM messages v
        WHERE v.tenant_id = t.tenant_id AND v.message_id = t.message_id OFFSET 0) m),
  -- Their tokens for each model, in all and without those that were counted before.
  used AS MATERIALIZED (
    SELECT c.tenant_id, c.message_id, c.session_id, c.used_at, c.agent_type, c.instance_id, c.user_id, c.credential_id,
           c.asked_type, c.ended, u.model, u.input_tokens, u.output_tokens, u.reported_cost_usd,
           u.input_tokens - coalesce(k.input_tokens, 0) AS new_input_tokens,
           u.output_tokens - coalesce(k.output_tokens, 0) AS new_output_tokens,
           u.reported_cost_usd - coalesce(k.reported_cost_usd, 0) AS new_reported_cost_usd
      FROM counted c
      CROSS JOIN LATERAL usage_by_model(c.usage) u
      LEFT JOIN LATERAL (SELECT * FROM counted_usage v
        WHERE v.tenant_id = c.tenant_id AND v.message_id = c.message_id AND v.model = u.model OFFSET 0) k ON true
     WHERE c.reports),
  -- What was counted of a message is remembered until it has ended.
  kept AS (
    INSERT INTO counted_usage (tenant_id, message_id, model, input_tokens, output_tokens, reported_cost_usd)
      SELECT u.tenant_id, u.message_id, u.model, u.input_tokens, u.output_tokens, u.reported_cost_usd FROM used u
        WHERE u.ended = 0
      ON CONFLICT (tenant_id, message_id, model)
        DO UPDATE SET input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens,
          reported_cost_usd = excluded.reported_cost_usd),
  settled AS (
    DELETE FROM counted_usage k USING counted c
      WHERE c.ended = 1 AND k.tenant_id = c.tenant_id AND k.message_id = c.message_id)
  -- A row for each message received, message ended, use of a model, and dispatch ended. A short message without
  -- reported tokens has the second and the last only.
  SELECT array_agg(ROW(f.*)::usage_fact) INTO facts FROM (
    SELECT c.tenant_id, c.created_at, c.session_id, '', '', '', c.received - c.ended, 0, 0, 0, 0, 0, 0,
           c.user_id, c.credential_id, c.want_agent_type FROM counted c WHERE c.received <> c.ended
    UNION ALL
    SELECT c.tenant_id, c.created_at, c.session_id, c.agent_type, c.instance_id, c.model, c.ended, 0, 0, 0, 0, 0, 0,
           c.user_id, c.credential_id, c.asked_type FROM counted c
     WHERE c.ended = 1
    UNION ALL
    SELECT u.tenant_id, u.used_at, u.session_id, u.agent_type, u.instance_id, u.model, 0, 0, 0, u.new_input_tokens,
           u.new_output_tokens, 0,
           coalesce((SELECT (u.new_input_tokens * p.input_per_million
                             + u.new_output_tokens * p.output_per_million) / 1000000
                       FROM model_prices p WHERE p.tenant_id = u.tenant_id AND p.model = u.model),
                    u.new_reported_cost_usd), u.user_id, u.credential_id, u.asked_type
      FROM used u WHERE (u.new_input_tokens, u.new_output_tokens, u.new_reported_cost_usd) <> (0, 0, 0)
    UNION ALL
    SELECT d.tenant_id, e.at, c.session_id, d.agent_type, d.instance_id, c.model, 0, 1, 0, 0, 0, e.duration_ms, 0,
           c.user_id, c.credential_id, c.asked_type
      FROM counted c CROSS JOIN LATERAL unnest(c.dispatch_ids, c.dispatches_ended, c.durations) AS e (dispatch_id, at,
        duration_ms)
      CROSS JOIN LATERAL (SELECT * FROM dispatches v
        WHERE v.tenant_id = c.tenant_id AND v.dispatch_id = e.dispatch_id OFFSET 0) d
     WHERE d.state <> 'released') f;
  PERFORM add_usage(facts);
  -- Sessions are chosen at random, those with many messages more often, so that totals lag by a few hundred messages.
  PERFORM advance_totals(s.tenant_id, s.session_id)
    FROM (SELECT f.tenant_id, f.session_id FROM unnest(facts) f WHERE f.messages > 0 AND random() < 1 / 32.0
      GROUP BY 1, 2) s;
  UPDATE event_cursors c SET position = cursor_at(found[cardinality(found)].position, 255),
    updated_at = clock_timestamp() WHERE c.consumer = 'usage';
  RETURN (SELECT sum(cardinality(groups_of(p))) FROM unnest(found) p);
END $$;

-- Adds tool calls that a process has counted (usage/tool-usage.ts), once for each number of its batches. Gives whether
-- they were new.
CREATE FUNCTION add_tool_calls(of_source text, of_sequence bigint, calls jsonb) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO usage_batches AS b (source, sequence) VALUES (of_source, of_sequence)
    ON CONFLICT (source) DO UPDATE SET sequence = excluded.sequence, added_at = now()
      WHERE b.sequence < excluded.sequence;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  PERFORM add_usage(ARRAY(SELECT (c.tenant_id, c.at, c.session_id, c.agent_type, c.instance_id, '', 0, 0, c.tool_calls,
      0, 0, 0, 0,
      NULL, NULL, c.agent_type)::usage_fact
    FROM jsonb_to_recordset(calls) AS c (tenant_id text, at timestamptz, session_id text, agent_type text,
      instance_id text, tool_calls bigint)));
  RETURN true;
END $$;

-- The limits of these tenants, none above its ceiling, with what has been used of them, and when a new day and month
-- begin (UTC).
CREATE FUNCTION quotas_of(of_tenants text[]) RETURNS TABLE (
  tenant_id text, messages_per_day bigint, tokens_per_day bigint, cost_usd_per_month double precision,
  messages bigint, tokens bigint, cost_usd double precision, day_ends_at timestamptz, month_ends_at timestamptz,
  day_left_ms double precision, month_left_ms double precision
) LANGUAGE sql STABLE AS $$
  SELECT g.tenant_id, least(l.messages_per_day, m.messages_per_day), least(l.tokens_per_day, m.tokens_per_day),
         least(l.cost_usd_per_month, m.cost_usd_per_month)::double precision, coalesce(d.messages, 0),
         shown_tokens(coalesce(d.tokens, 0)), shown_cost(coalesce(c.cost_usd, 0)), t.day_ends_at, t.month_ends_at,
         1000 * extract(epoch FROM t.day_ends_at - now())::double precision,
         1000 * extract(epoch FROM t.month_ends_at - now())::double precision
    FROM unnest(of_tenants) AS g (tenant_id)
    CROSS JOIN (SELECT (now() AT TIME ZONE 'UTC')::date AS today,
      date_trunc('month', now() AT TIME ZONE 'UTC')::date AS month_begins,
      date_trunc('day', now(), 'UTC') + interval '24 hours' AS day_ends_at,
      (date_trunc('month', now() AT TIME ZONE 'UTC') + interval '1 month') AT TIME ZONE 'UTC' AS month_ends_at) t
    LEFT JOIN tenant_limits l ON l.tenant_id = g.tenant_id
    LEFT JOIN tenant_ceilings m ON m.tenant_id = g.tenant_id
    LEFT JOIN usage_days d ON d.tenant_id = g.tenant_id AND d.day = t.today
    CROSS JOIN LATERAL (SELECT sum(u.cost_usd) AS cost_usd FROM usage_days u
      WHERE u.tenant_id = g.tenant_id AND u.day >= t.month_begins AND u.day <= t.today) c
$$;

-- The same for keys of tenants that have limits of their own (tenant_limits.per_key).
CREATE FUNCTION key_quotas_of(of_tenants text[], kinds text[], keys text[]) RETURNS TABLE (
  kind text, key text, tenant_id text, messages_per_day bigint, tokens_per_day bigint,
  cost_usd_per_month double precision, messages bigint, tokens bigint, cost_usd double precision,
  day_ends_at timestamptz, month_ends_at timestamptz, day_left_ms double precision, month_left_ms double precision
) LANGUAGE sql STABLE AS $$
  SELECT g.kind, g.key, g.tenant_id, (p.limits ->> 'messages_per_day')::bigint, (p.limits ->> 'tokens_per_day')::bigint,
         (p.limits ->> 'cost_usd_per_month')::double precision, coalesce(c.messages, 0)::bigint,
         shown_tokens(coalesce(c.tokens, 0)), shown_cost(coalesce(c.cost_usd, 0)), t.day_ends_at, t.month_ends_at,
         1000 * extract(epoch FROM t.day_ends_at - now())::double precision,
         1000 * extract(epoch FROM t.month_ends_at - now())::double precision
    FROM unnest(of_tenants, kinds, keys) AS g (tenant_id, kind, key)
    CROSS JOIN (SELECT date_trunc('day', now(), 'UTC') AS day_begins, date_trunc('month', now(), 'UTC') AS month_begins,
      date_trunc('day', now(), 'UTC') + interval '24 hours' AS day_ends_at,
      (date_trunc('month', now() AT TIME ZONE 'UTC') + interval '1 month') AT TIME ZONE 'UTC' AS month_ends_at) t
    LEFT JOIN tenant_limits l ON l.tenant_id = g.tenant_id
    CROSS JOIN LATERAL (SELECT l.per_key -> ('per_' || g.kind) AS limits) p
    CROSS JOIN LATERAL (SELECT sum(u.messages) FILTER (WHERE u.hour >= t.day_begins) AS messages,
        sum(u.input_tokens + u.output_tokens) FILTER (WHERE u.hour >= t.day_begins) AS tokens,
          sum(u.cost_usd) AS cost_usd
      FROM usage_by_key u WHERE u.tenant_id = g.tenant_id AND u.kind = g.kind AND u.key = g.key
        AND u.hour >= t.month_begins) c
$$;
