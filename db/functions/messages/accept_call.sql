-- What the accept transaction (accept_messages.sql) takes and gives, and how a repeated messageId is found.

-- A message to accept.
CREATE TYPE accept_call AS (
  tenant_id text, message_id text, session_id text,
  requested_context text, -- the session that the message names; '': it opens `session_id`
  credential_id text, sender_agent_type text,
  -- The user that the message is said to be for; NULL: that of its session, or of what its agent works on.
  user_id text,
  -- Who says so. `token`: the sender's token is limited to that user; `record`: the message is sent again; NULL: its
  -- sender.
  user_from text,
  client_message_id text, content_hash uuid, method text, parts jsonb, metadata jsonb,
  want_instance_id text, want_agent_type text, want_skill_id text,
  trace_id text, parent_span_id text, propagation jsonb, deadline_ms integer,
  created_by text, idle_timeout_seconds integer, idempotency_hours integer,
  -- Bounds to count to; 0: not to be counted. At the first the message waits, at the two others it is refused.
  in_flight_limit integer, queued_limit integer, waiting_limit integer,
  queued_full boolean, waiting_full boolean, -- the process knows that the limit is reached
  refused boolean, -- the message is refused, unless it is a repeat
  -- The error of a message whose target is not registered, which is then put on the record as failed; NULL: refused.
  unavailable_text text,
  dispatch_id text, -- of the dispatch that the process may open; NULL: it opens none
  mesh_id text, reaches_nodes boolean, -- as in `routing`
  idle_ids text[], -- agents that may have nothing to do
  event_id text, -- of the first of session.created, message.received, dispatch.sent and message.error
  -- What policies and guards have to say of the message; NULL for most. With `error`, `input_request`, `undecided` or
  -- `dispatch_undecided` no dispatch is offered. Its members:
  --   error {code, message}: the message fails with it
  --   input_request: a new_input_request that it waits for
  --   undecided, true: it is decided before the message joins a queue
  --   dispatch_undecided, true: it is decided before an agent gets the message
  --   dispatch_events: as `events`, of the decision about the dispatch
  --   events [{event_id, event_type, severity, payload}]
  decision jsonb,
  -- What policies see of the sender's token; NULL where it has no limits and the tenant had no policy that could look
  -- at it.
  token jsonb
);

-- What the process learns of a call.
CREATE TYPE accept_result AS (
  -- dispatched | queued | rests | asked | denied | unavailable | repeat | mismatch | refused | queued_full |
  -- waiting_full | too_many_hops | other_user | no_session | session_closed | target_required | target_unknown | later
  verdict text,
  state text, -- the first of a message that is written
  message_id text, session_id text, accepted_at timestamptz,
  -- The agent of a `dispatched` message. Of a queued one `instance_id` and `mesh_id` name an agent with room that
  -- another node sends to. With target_unknown `agent_type` is the type that was looked for.
  instance_id text, agent_type text, deployment_mode text, connection_epoch bigint, mesh_id text, public_url text,
  agent_card jsonb,
  dispatch_auth text, -- in hexadecimal
  user_id text, -- of each message that is written
  in_flight integer, queued integer, waiting integer, -- where they were counted
  awaits text, -- with `locked`: the lock
  new_queue text -- the queue of a queued message, unless it waits behind others; also where that was not looked up
);

-- What becomes of a call, before its message is written.
CREATE TYPE accept_outcome AS (
  c accept_call, result accept_result,
  key uuid, -- NULL: `result` is all, and nothing is written
  want_type text, agent chosen_agent, error_code text, error_text text, ordered boolean,
  resumes boolean, -- the message is dispatched, and ends the suspension of its session
  hops integer,
  has_extra_rows boolean, -- it writes more rows than most messages (write_extra_rows)
  queue text -- that it joins
);

-- Make an accept_result and an accept_outcome from named members. Postgres inlines them, so they cost nothing.
CREATE FUNCTION new_accept_result(
  verdict text DEFAULT NULL, state text DEFAULT NULL, message_id text DEFAULT NULL, session_id text DEFAULT NULL,
  accepted_at timestamptz DEFAULT NULL, instance_id text DEFAULT NULL, agent_type text DEFAULT NULL,
  deployment_mode text DEFAULT NULL, connection_epoch bigint DEFAULT NULL, mesh_id text DEFAULT NULL,
  public_url text DEFAULT NULL, agent_card jsonb DEFAULT NULL, dispatch_auth text DEFAULT NULL,
  user_id text DEFAULT NULL, in_flight integer DEFAULT NULL, queued integer DEFAULT NULL, waiting integer DEFAULT NULL,
  awaits text DEFAULT NULL, new_queue text DEFAULT NULL
) RETURNS accept_result LANGUAGE sql IMMUTABLE AS $$
  SELECT (verdict, state, message_id, session_id, accepted_at, instance_id, agent_type, deployment_mode,
    connection_epoch, mesh_id, public_url, agent_card, dispatch_auth, user_id, in_flight, queued, waiting, awaits,
    new_queue)::accept_result
$$;

CREATE FUNCTION new_accept_outcome(
  c accept_call DEFAULT NULL, result accept_result DEFAULT NULL, key uuid DEFAULT NULL, want_type text DEFAULT NULL,
  agent chosen_agent DEFAULT NULL, error_code text DEFAULT NULL, error_text text DEFAULT NULL,
  ordered boolean DEFAULT NULL, resumes boolean DEFAULT NULL, hops integer DEFAULT NULL,
  has_extra_rows boolean DEFAULT NULL, queue text DEFAULT NULL
) RETURNS accept_outcome LANGUAGE sql IMMUTABLE AS $$
  SELECT (c, result, key, want_type, agent, error_code, error_text, ordered, resumes, hops, has_extra_rows,
    queue)::accept_outcome
$$;

-- The key of a messageId: the same one from the same credential for the same user (NULL for none) in the same context
-- ('' for none) is a repeat. Half of a SHA-256; the lengths keep one part from passing for another.
CREATE FUNCTION idempotency_key(of_tenant text, credential_id text, of_user text, requested_context text,
  client_message_id text) RETURNS uuid
  LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN left(encode(sha256(convert_to(concat_ws('/', of_tenant, credential_id, length(requested_context),
    coalesce(length(of_user)::text, ''), requested_context || coalesce(of_user, '') || client_message_id), 'UTF8')),
      'hex'), 32)::uuid;
END $$;

-- The result of a call that writes nothing: 'repeat' or 'mismatch' when the messageId is on the record, else
-- `otherwise`.
CREATE FUNCTION not_accepted(c accept_call, result accept_result, otherwise text)
  RETURNS accept_result LANGUAGE plpgsql AS $$
BEGIN
  SELECT m.message_id, m.session_id, CASE WHEN k.content_hash = c.content_hash THEN 'repeat' ELSE 'mismatch' END
    INTO result.message_id, result.session_id, result.verdict
    FROM idempotency_keys k JOIN messages m ON m.tenant_id = c.tenant_id AND m.message_id = 'msg_' || k.message_id
   WHERE k.idempotency_key = idempotency_key(c.tenant_id, c.credential_id, c.user_id, c.requested_context,
     c.client_message_id)
     AND k.expires_at > now();
  result.verdict := coalesce(result.verdict, otherwise);
  RETURN result;
END $$;

-- Deletes a key, if it is there. Another transaction may be deleting it: with `may_wait` it waits for that one, else it
-- gives false.
CREATE FUNCTION forget_key(key uuid, may_wait boolean) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF NOT may_wait THEN
    PERFORM 1 FROM idempotency_keys k WHERE k.idempotency_key = key FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
      RETURN NOT EXISTS (SELECT 1 FROM idempotency_keys k WHERE k.idempotency_key = key);
    END IF;
  END IF;
  DELETE FROM idempotency_keys k WHERE k.idempotency_key = key;
  RETURN true;
END $$;

-- The result of a call that would have to wait for a lock of another transaction.
CREATE FUNCTION accept_locked(result accept_result, lock_name text)
  RETURNS accept_result LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  result.verdict := 'locked';
  result.awaits := lock_name;
  RETURN result;
END $$;
