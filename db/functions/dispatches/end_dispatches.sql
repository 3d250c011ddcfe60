-- The complete transaction (docs/internals.md): sent → completed, failed or lost. Ends dispatches and their messages
-- with them, in one round trip; several callers may share it, as in accept_messages. It also takes the agent's next
-- message.

-- The end of a dispatch.
CREATE TYPE dispatch_end_call AS (
  tenant_id text, message_id text, dispatch_id text,
  epoch bigint, -- NULL: any
  state text, -- the new state of the dispatch
  error_code text, error_message text,
  artifacts jsonb, -- NULL: the agent sent no output, and the stored output stays
  usage jsonb, status_message jsonb,
  decisions jsonb, -- what guards decided about the output, as record_decision_events takes it; NULL: nothing
  event_id text, -- of the dispatch's event, which the message's event follows
  -- The dispatch in which the node `take_mesh` sends the agent's next message, its event, and where the take begins
  -- (`queue_from` of take_call). `take_dispatch` NULL: no message is taken, and `take_again` says whether one waits.
  take_mesh text, take_dispatch text, take_event text, take_queue_from timestamptz
);

-- What the process learns of a call.
CREATE TYPE dispatch_end_result AS (
  -- NULL: nothing was written. Either the dispatch was not the message's current one, or another transaction holds the
  -- lock that `awaits` names: the call is then made again.
  ended_at timestamptz,
  session_id text, instance_id text, agent_type text,
  woken jsonb, -- messages whose next step the process takes after the commit
  awaits text,
  taken jsonb, -- the dispatch that was taken, as dispatch_details has it
  take_again boolean, -- the agent's next message is to be taken in a transaction of its own
  watched boolean -- the message's workflow has to be told of the end
);

-- Makes a dispatch_end_result from named members. Postgres inlines it, so it costs nothing.
CREATE FUNCTION new_dispatch_end_result(
  ended_at timestamptz DEFAULT NULL, session_id text DEFAULT NULL, instance_id text DEFAULT NULL,
  agent_type text DEFAULT NULL, woken jsonb DEFAULT NULL, awaits text DEFAULT NULL, taken jsonb DEFAULT NULL,
  take_again boolean DEFAULT NULL, watched boolean DEFAULT NULL
) RETURNS dispatch_end_result LANGUAGE sql IMMUTABLE AS $$
  SELECT (ended_at, session_id, instance_id, agent_type, woken, awaits, taken, take_again,
    watched)::dispatch_end_result
$$;

-- The running row that the end of a dispatch has deleted.
CREATE TYPE dispatch_ended AS (
  place integer, -- of its call among the calls
  state text, ordered boolean,
  watched boolean, -- it had a workflow
  approved boolean, session_id text, instance_id text, agent_type text
);

-- What follows from the end of a dispatch, beyond what every end writes. `room_matters`: messages of the tenant wait
-- for an agent, or agents of it were found full.
CREATE FUNCTION follow_end(c dispatch_end_call, e dispatch_ended, room_matters boolean)
  RETURNS dispatch_end_result LANGUAGE plpgsql AS $$
DECLARE
  woken jsonb;
  taken jsonb;
  take_again boolean;
BEGIN
  IF is_late(c.message_id) THEN
    PERFORM note_change(c.tenant_id, c.message_id);
  END IF;
  IF c.decisions IS NOT NULL THEN
    PERFORM record_decision_events(c.tenant_id, e.session_id, c.message_id, m.trace_id, c.decisions)
      FROM messages m WHERE m.tenant_id = c.tenant_id AND m.message_id = c.message_id;
  END IF;
  IF room_matters THEN
    IF c.take_dispatch IS NOT NULL THEN
      SELECT t.taken, t.again INTO taken, take_again
        FROM take_next(new_take_call(tenant_id => c.tenant_id, instance_id => e.instance_id, mesh_id => c.take_mesh,
          epoch => c.epoch, dispatch_ids => ARRAY[c.take_dispatch], event_ids => ARRAY[c.take_event],
          queue_from => c.take_queue_from)) t;
    ELSE
      take_again := agent_has_queued(c.tenant_id, e.instance_id, e.agent_type);
    END IF;
    -- Nothing was taken, so the agent may have room: routing is to find it again. A take that is repeated sees to that
    -- itself.
    IF taken IS NULL AND (c.take_dispatch IS NULL OR take_again IS NOT TRUE) THEN
      PERFORM set_full_at(c.tenant_id, e.instance_id, NULL);
      PERFORM recheck_full(c.tenant_id, 2); -- two, as in take_messages
    END IF;
  END IF;
  IF e.approved THEN
    PERFORM settle_approvals(c.tenant_id, c.message_id);
  END IF;
  IF e.ordered THEN
    woken := wake_next_in_order(c.tenant_id, e.session_id, now());
  END IF;
  -- A tool call of the message waits for a human. The result is here, so the question is withdrawn.
  IF e.state = 'input-required' THEN
    PERFORM close_request(c.tenant_id, c.message_id, 'withdrawn');
  END IF;
  RETURN new_dispatch_end_result(ended_at => now(), session_id => e.session_id, instance_id => e.instance_id,
    agent_type => e.agent_type, woken => woken, taken => taken, take_again => take_again,
    watched => e.watched OR e.state = 'input-required');
END $$;

-- Ends dispatches of one tenant, no two of one message, and their messages. It skips a call whose dispatch is not its
-- message's current one, or whose message is locked; with `locked` it is this transaction that holds the locks.
-- `messages`, `dispatches`: the ids that the calls name, in their order. Gives a result for each call, in the same
-- order; NULL where nothing was written.
--
-- Rows are found by lists of their keys, because a join that was planned while the tables were small would read all
-- rows of the tenant. The first and the last id limit which partitions are opened, and which running messages Postgres
-- 15 and 16 read: while few messages run, those versions use the list of ids only as a filter.
CREATE FUNCTION end_together(of_tenant text, calls dispatch_end_call[], messages text[], dispatches text[],
  locked boolean)
  RETURNS dispatch_end_result[] LANGUAGE plpgsql AS $$
DECLARE
  first_message text COLLATE "C" := messages[1];
  last_message text COLLATE "C" := first_message;
  first_dispatch text COLLATE "C" := dispatches[1];
  last_dispatch text COLLATE "C" := first_dispatch;
  written record;
  e dispatch_ended;
  room_matters boolean;
  results dispatch_end_result[] := '{}';
BEGIN
  FOR place IN 2 .. cardinality(calls) LOOP
    first_message := least(first_message, messages[place]);
    last_message := greatest(last_message, messages[place]);
    first_dispatch := least(first_dispatch, dispatches[place]);
    last_dispatch := greatest(last_dispatch, dispatches[place]);
  END LOOP;
  -- coalesce, here and below, keeps the planner from every index but the primary keys. With an xmax of 0 nobody holds
  -- the message's lock (docs/internals.md#locks), so the DELETE does not wait. A separate lock would cost a tenth of
  -- the transaction.
  WITH call AS MATERIALIZED (
    SELECT c.message_id, c.dispatch_id, c.epoch, c.state, c.error_code, c.error_message, c.artifacts, c.usage,
      c.status_message, c.event_id FROM unnest(calls) AS c),
  gone AS (
    DELETE FROM running_messages r
     WHERE r.tenant_id = of_tenant AND r.message_id = ANY (messages)
       AND r.message_id BETWEEN first_message AND last_message
       AND coalesce(r.current_dispatch_id, '') = dispatches[array_position(messages, r.message_id)]
       AND coalesce(r.state, '') IN ('submitted', 'working', 'input-required') AND (r.xmax = 0 OR locked)
    RETURNING r.message_id, r.current_dispatch_id AS dispatch_id, r.state, r.ordered,
      r.supervised_at IS NOT NULL AS watched, r.approved, r.session_id, r.instance_id, r.agent_type),
  ended AS (
    UPDATE dispatches d SET state = c.state, error_code = c.error_code, ended_at = now(), deadline_at = NULL,
        mesh_id = CASE WHEN c.state <> 'completed' THEN d.mesh_id END FROM call c
     WHERE d.tenant_id = of_tenant AND d.dispatch_id = ANY (ARRAY(SELECT g.dispatch_id FROM gone g))
       AND d.dispatch_id BETWEEN first_dispatch AND last_dispatch AND coalesce(d.state, '') = 'sent'
       AND coalesce(d.dispatch_id, '') = c.dispatch_id AND coalesce(c.epoch, d.epoch) = d.epoch
    RETURNING d.message_id, d.instance_id, d.sent_at),
  over AS (
    UPDATE messages m SET state = CASE c.state WHEN 'completed' THEN 'completed' ELSE 'failed' END,
        unsuccessful_state = CASE WHEN c.state <> 'completed' THEN 'failed' END,
        artifacts = coalesce(c.artifacts, m.artifacts), usage = coalesce(c.usage, m.usage),
        status_message = CASE WHEN c.artifacts IS NULL THEN m.status_message ELSE c.status_message END,
        error_code = c.error_code, error_message = c.error_message, completed_at = now(), updated_at = now() FROM call c
     WHERE m.tenant_id = of_tenant AND m.message_id = ANY (ARRAY(SELECT g.message_id FROM gone g))
       AND m.message_id BETWEEN first_message AND last_message AND coalesce(m.message_id, '') = c.message_id
    RETURNING m.message_id, m.session_id, m.session_uuid, m.trace_id, m.created_at, c.dispatch_id, c.state,
      c.error_code, c.event_id),
  recorded AS (
    INSERT INTO event_groups (tenant_id, group_id, session_uuid, session_name, message_id, dispatch_id, trace_id,
      types, instance_mark, events)
      SELECT uuid_of(of_tenant), group_of(m.event_id), m.session_uuid, session_name(m.session_id),
             uuid_of(m.message_id), uuid_of(m.dispatch_id), m.trace_id::uuid,
             CASE WHEN m.state = 'completed' THEN event_bit('dispatch.success') | event_bit('message.completed')
               ELSE event_bit('dispatch.failed') | event_bit('message.error') END,
             instance_mark(d.instance_id),
             CASE WHEN m.state = 'completed' THEN ('[{"instance_id":' || to_json(d.instance_id)
                 || ',"duration_ms":' || milliseconds_between(d.sent_at, now()) || '},{"duration_ms":'
                   || milliseconds_between(m.created_at, now()) || '}]')::json
               ELSE json_build_array(
                 event_body(jsonb_build_object('instance_id', d.instance_id, 'error', m.error_code,
                   'duration_ms', milliseconds_between(d.sent_at, now())), 'warning'),
                 event_body(jsonb_build_object('error', m.error_code), 'warning')) END
        FROM ended d JOIN over m USING (message_id)
      RETURNING 1)
  SELECT (SELECT count(*) FROM recorded) AS recorded,
      array_agg((array_position(messages, g.message_id), g.state, g.ordered, g.watched, g.approved, g.session_id,
        g.instance_id, g.agent_type)::dispatch_ended) AS ends INTO written FROM gone g;
  IF written.recorded < cardinality(written.ends) THEN
    RAISE EXCEPTION 'a dispatch is not sent, or of another epoch' USING ERRCODE = 'FL001';
  END IF;
  IF written.recorded > 0 THEN
    room_matters := tenant_has_queued(of_tenant)
      OR EXISTS (SELECT 1 FROM agents a WHERE a.tenant_id = of_tenant AND a.full_at IS NOT NULL);
    FOREACH e IN ARRAY written.ends LOOP
      IF room_matters OR e.ordered OR e.watched OR e.approved OR e.state = 'input-required'
        OR calls[e.place].decisions IS NOT NULL OR is_late(messages[e.place]) THEN
        results[e.place] := follow_end(calls[e.place], e, room_matters);
      ELSE
        results[e.place] := new_dispatch_end_result(ended_at => now(), session_id => e.session_id,
          instance_id => e.instance_id, agent_type => e.agent_type, watched => false);
      END IF;
    END LOOP;
  END IF;
  IF written.recorded < cardinality(calls) AND NOT locked THEN
    FOR place IN 1 .. cardinality(calls) LOOP
      IF results[place] IS NULL THEN
        results[place] := end_locked(of_tenant, calls[place]);
      END IF;
    END LOOP;
  END IF;
  RETURN results;
END $$;

-- Ends a dispatch whose message has or had a lock (docs/internals.md#locks), perhaps of this transaction; `awaits` if
-- another one has it now.
CREATE FUNCTION end_locked(of_tenant text, c dispatch_end_call) RETURNS dispatch_end_result LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM running_messages r WHERE r.tenant_id = of_tenant AND r.message_id = c.message_id
    FOR UPDATE SKIP LOCKED;
  IF FOUND THEN
    RETURN (end_together(of_tenant, ARRAY[c], ARRAY[c.message_id], ARRAY[c.dispatch_id], true))[1];
  ELSIF EXISTS (SELECT 1 FROM running_messages r WHERE r.tenant_id = of_tenant AND r.message_id = c.message_id) THEN
    RETURN new_dispatch_end_result(awaits => 'message ' || c.message_id);
  END IF;
  RETURN NULL;
END $$;

-- Consecutive calls of one tenant are made together. A second call for a message begins a new group, and finds the
-- message ended. `wait_for_locks`: the first call may wait for its message, since nothing is locked yet.
CREATE FUNCTION end_dispatches(calls jsonb, wait_for_locks boolean) RETURNS dispatch_end_result[] LANGUAGE plpgsql
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  c dispatch_end_call;
  together dispatch_end_call[] := '{}';
  messages text[] := '{}';
  dispatches text[] := '{}';
  results dispatch_end_result[] := '{}';
  tenant text := '';
BEGIN
  PERFORM limit_lock_wait(wait_for_locks);
  FOR place IN 0 .. jsonb_array_length(calls) - 1 LOOP
    c := jsonb_populate_record(NULL::dispatch_end_call, calls -> place);
    IF c.tenant_id <> tenant OR c.message_id = ANY (messages) THEN
      IF place > 0 THEN
        results := results || end_together(tenant, together, messages, dispatches, false);
        together := '{}';
        messages := '{}';
        dispatches := '{}';
      END IF;
      tenant := c.tenant_id;
      PERFORM act_for_tenant(tenant);
    END IF;
    IF wait_for_locks AND place = 0 THEN
      PERFORM 1 FROM running_messages r WHERE r.tenant_id = c.tenant_id AND r.message_id = c.message_id FOR UPDATE;
    END IF;
    together := together || c;
    messages := messages || c.message_id;
    dispatches := dispatches || c.dispatch_id;
  END LOOP;
  RETURN results || end_together(tenant, together, messages, dispatches, false);
END $$;
