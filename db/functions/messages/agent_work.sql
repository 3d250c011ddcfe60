-- What is known of the work for which an agent sends a message. `hops`: how many agents the message came through.
-- `users`: the one of its work, or those of all that may be its work, NULL among them for none; empty where nothing is
-- known.
CREATE TYPE agent_work AS (hops integer, users text[]);

-- `hops` is what the sender says (`metadata.hops`), or what is known of an agent that sends, whichever is more.
-- An agent sends for a message that it works on. Where it passes on the `traceparent` of that dispatch, that is the
-- one; else nothing tells which, and the message came through one agent more than the one that came through the fewest,
-- at least. So nobody who is in no loop is refused for it. An agent of a type that works on nothing begins something
-- new. Of types with more than 100 agents or 200 messages at work, which would take long to read, nothing is known
-- without a `traceparent`, and with one only where it is of the first of them or of the message that began the trace,
-- whose UUID the trace has. The users are those of that dispatch, else of all work in the trace, as where a span of the
-- agent's own stands between. OFFSET keeps the plan to the agents of the type, and then their slots, and so does the
-- order (served_sessions); and to one key of one month.
CREATE FUNCTION work_of(c accept_call) RETURNS agent_work LANGUAGE sql STABLE AS $$
  WITH senders AS MATERIALIZED (SELECT a.instance_id FROM agents a
    WHERE a.tenant_id = c.tenant_id AND a.agent_type = c.sender_agent_type
      AND coalesce(a.deregistered_at, 'infinity') = 'infinity' LIMIT 101),
    held AS MATERIALIZED (SELECT of_one.*
      FROM senders s, LATERAL (SELECT r.message_id, r.hops, r.current_dispatch_id FROM running_messages r
        WHERE r.tenant_id = c.tenant_id AND r.instance_id = s.instance_id AND r.holds_slot
          ORDER BY r.session_id OFFSET 0) AS of_one LIMIT 201),
    work AS MATERIALIZED (SELECT w.*, right(replace(w.current_dispatch_id, '-', ''), 16) = c.parent_span_id AS is_parent
      FROM (
      SELECT * FROM held UNION SELECT r.message_id, r.hops, r.current_dispatch_id FROM running_messages r
        WHERE r.tenant_id = c.tenant_id AND r.message_id = 'msg_' || c.trace_id::uuid
          AND r.agent_type = c.sender_agent_type) AS w),
    known AS MATERIALIZED (SELECT (SELECT count(*) FROM senders) <= 100
      AND (SELECT count(*) FROM held) <= 200 AS is_whole,
      EXISTS (SELECT 1 FROM work w WHERE w.is_parent) AS is_named)
  SELECT greatest((c.metadata ->> 'hops')::integer, 0, (
      SELECT 1 + CASE WHEN k.is_named THEN max(w.hops) FILTER (WHERE w.is_parent) WHEN k.is_whole THEN min(w.hops) END
        FROM work w)),
    CASE WHEN k.is_named OR k.is_whole AND c.trace_id IS NOT NULL THEN ARRAY(
      SELECT DISTINCT m.user_id
        FROM work w, LATERAL (SELECT m.user_id, trace_of(m.trace_id, m.message_id) AS trace_id FROM messages m
          WHERE m.tenant_id = c.tenant_id AND m.message_id = w.message_id OFFSET 0) AS m
       WHERE CASE WHEN k.is_named THEN w.is_parent ELSE m.trace_id = c.trace_id END)
    ELSE '{}' END
    FROM known k
$$;
