-- What is known of the work for which an agent sends a message. `hops`: how many agents the message came through.
-- `users`: of the message that the agent works on, or of all messages that it may work on; NULL stands for a message
-- without a user. Empty where nothing is known.
CREATE TYPE agent_work AS (hops integer, users text[]);

-- `hops` is the greater of what the sender says (`metadata.hops`) and what the record says of an agent that sends. An
-- agent sends while it works on a message. If it passes on the `traceparent` of that dispatch, the message is known,
-- and `hops` is one more than that message's. Else it is one more than the least of all messages that agents of its
-- type work on, so that no agent outside of a loop is refused. An agent of a type that works on nothing begins
-- something new. For types with more than 100 agents or 200 messages at work, which would take long to read, nothing is
-- known without a `traceparent`; with one, only if it is of one of the messages that were read, or of the message that
-- began the trace, whose UUID is the trace id. The users are those of that message, else of all work in the trace,
-- because the agent may have a span of its own between. OFFSET and the order (served_sessions) make the plan read the
-- agents of the type and then their slots, and OFFSET one key of one month.
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
