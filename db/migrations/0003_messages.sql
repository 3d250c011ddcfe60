-- Sessions, messages and dispatches.
--
-- Every statement parses the CHECKs of a table that it writes, and foreign keys look up and lock rows that the same statement has just
-- written, so the tables that every message writes have neither; the tests look for what they would have refused.
-- Message and dispatch ids compare bytewise (COLLATE "C"), as the bounds of their partitions do. Times and numbers come first in tables that
-- every message writes, so that no bytes are lost between columns.

-- A session's id in tables that are written often and kept long: 16 bytes for an id that the platform made, and a hash that no other tenant's
-- name has for one that a caller chose, with the name beside it. NULL: no session.
CREATE FUNCTION session_name(session_id text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT CASE WHEN NOT (length(session_id) = 40 AND starts_with(session_id, 'ses_')) THEN session_id END $$;
CREATE FUNCTION session_uuid(tenant_id uuid, session_id text) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN session_id = '' THEN NULL WHEN public.session_name(session_id) IS NULL THEN right(session_id, 36)::uuid
    ELSE md5(tenant_id::text || '/' || session_id)::uuid END
$$;
CREATE FUNCTION session_of(session_uuid uuid, session_name text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT coalesce(session_name, 'ses_' || session_uuid, '') $$;

CREATE TABLE sessions (
  created_at timestamptz NOT NULL DEFAULT now(), ended_at timestamptz,
  -- Of a session from /sessions/init: set when its workflow must look at the row again. The workflow clears it.
  wake_requested_at timestamptz, supervised_at timestamptz,
  -- When sessions/session-expiry.ts looks at it. Of a session that has no workflow: when it may have idled out. Of any that has ended: when
  -- the messages that were in flight are to have been canceled; then it is NULL.
  idle_check_at timestamptz,
  idle_timeout_seconds integer NOT NULL,
  explicit boolean NOT NULL, -- from /sessions/init: it has a workflow
  -- It counts on its instance until it ends, except while suspended. Other sessions count while a message of theirs is with the agent.
  reserves boolean NOT NULL DEFAULT false,
  -- Of a session that reserves its place, from a question to a human until its next dispatch, which claims room again.
  suspended boolean NOT NULL DEFAULT false,
  -- Its messages reach their agent one after the other (session_order.sql).
  ordered boolean NOT NULL DEFAULT false,
  tenant_id text NOT NULL, session_id text NOT NULL,
  user_id text,
  credential_id text NOT NULL DEFAULT '', -- that opened it
  agent_type text, instance_id text,
  -- 'active', 'completed' or 'expired'. 'paused' is derived from messages that wait for a human and never stored.
  status text NOT NULL,
  metadata jsonb NOT NULL DEFAULT '{}',
  -- The type of the agent that opened it; it sees the session from then on.
  sender_agent_type text,
  ended_reason text,
  PRIMARY KEY (tenant_id, session_id)
);
CREATE INDEX sessions_slots ON sessions (tenant_id, instance_id, session_id) WHERE status = 'active' AND reserves;
CREATE INDEX sessions_to_wake ON sessions (wake_requested_at) WHERE wake_requested_at IS NOT NULL;
CREATE INDEX sessions_to_check ON sessions (idle_check_at) WHERE idle_check_at IS NOT NULL;
-- What a user has, also for erasure.
CREATE INDEX sessions_by_user ON sessions (tenant_id, user_id, session_id) WHERE user_id IS NOT NULL;
CREATE INDEX sessions_supervised ON sessions (supervised_at) WHERE supervised_at IS NOT NULL AND status = 'active';

-- Totals of sessions with many messages: those up to `counted_until`. Reports and the usage roll-up bring them forward
-- (db/functions/session_totals.sql), so they cost messages nothing, and short sessions have no row.
CREATE TABLE session_totals (
  turns bigint NOT NULL,
  tenant_id text NOT NULL, session_id text NOT NULL,
  counted_until text COLLATE "C" NOT NULL, -- a message's id
  tokens numeric NOT NULL,
  open_ids text[] COLLATE "C" NOT NULL, -- of these messages those that were not over, whose tokens are not counted
  PRIMARY KEY (tenant_id, session_id)
);
-- Without the first agent of a session that a message opened: that one is in the session's row alone until another joins (session_members).
CREATE TABLE session_agents (
  tenant_id text NOT NULL, session_id text NOT NULL,
  agent_type text NOT NULL, instance_id text NOT NULL,
  joined_at timestamptz NOT NULL DEFAULT now(), join_reason text NOT NULL,
  PRIMARY KEY (tenant_id, session_id, instance_id)
);

-- One row per messageId that a credential has sent in a context for a user, until it expires: then the messageId is new. `idempotency_key` is a
-- hash of these four and the tenant, by the function of that name.
CREATE TABLE idempotency_keys (
  idempotency_key uuid PRIMARY KEY, expires_at timestamptz NOT NULL,
  tenant_id uuid NOT NULL, message_id uuid NOT NULL, -- without their prefixes
  content_hash uuid NOT NULL -- half of a SHA-256
);
CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);

-- A message: what was sent, and below what became of it. What changes from moment to moment is in running_messages.
CREATE TABLE messages (
  created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(),
  started_at timestamptz, completed_at timestamptz,
  deadline_ms integer NOT NULL,
  notifies boolean NOT NULL DEFAULT false, -- its state changes write push notifications, or wake its plan
  tenant_id text NOT NULL, message_id text COLLATE "C" NOT NULL, session_id text NOT NULL,
  session_uuid uuid, -- as the function of that name makes it: for the index, half as long as text
  credential_id text NOT NULL,
  user_id text, -- the end user that it is sent for: that of its session, if that has one
  sender_agent_type text, -- of the agent that sent it; NULL for a credential that stands for no agent
  client_message_id text NOT NULL, method text NOT NULL,
  parts jsonb NOT NULL, metadata jsonb NOT NULL DEFAULT '{}',
  want_agent_type text,
  -- Of the caller's trace that it continues; NULL: it began one of its own, which has its UUID.
  trace_id text, parent_span_id text,
  propagation jsonb, -- what goes on with the trace: baggage, tracestate, and sampled: false where the caller's trace is not sampled; NULL for nothing
  state text NOT NULL, -- submitted, working, input-required, completed, failed or canceled
  -- `state` if it is 'failed' or 'canceled', for its index: a message that completes leaves it NULL, so that its end writes no index entry. Who
  -- writes the state writes it: each statement parses the expression of a generated column anew, which took a twentieth of its time.
  unsuccessful_state text,
  instance_id text, agent_type text,
  turns jsonb NOT NULL DEFAULT '[]', -- after the first: questions and answers, as A2A messages
  artifacts jsonb NOT NULL DEFAULT '[]', status_message jsonb, usage jsonb,
  error_code text, error_message text,
  -- The message that this one repeats, and the credential that sent it first; of that message, the newest that repeats it (messages/retry.ts).
  retry_of text COLLATE "C", first_credential_id text, retried_as text COLLATE "C",
  PRIMARY KEY (tenant_id, message_id)
) PARTITION BY RANGE (message_id);
-- The session first: with the tenant first a plan that was made while the month is new looks for a message's key in this index too, and reads
-- all of the tenant's entries. For the same reason only queries that name a session may use it: Postgres can skip over a first column.
CREATE INDEX messages_by_session ON messages (session_uuid, message_id) WHERE session_uuid IS NOT NULL;
-- The trace of a message.
CREATE FUNCTION trace_of(trace_id text, message_id text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT coalesce(trace_id, replace(right(message_id, 36), '-', '')) $$;
-- A message that began its trace is found by its key.
CREATE INDEX messages_by_trace ON messages (trace_id, tenant_id, message_id) WHERE parent_span_id IS NOT NULL;
-- Few among many that completed.
CREATE INDEX messages_unsuccessful ON messages (tenant_id, unsuccessful_state, message_id) WHERE unsuccessful_state IS NOT NULL;
CREATE INDEX messages_by_error ON messages (tenant_id, error_code, message_id) WHERE error_code IS NOT NULL;
CREATE INDEX messages_by_user ON messages (tenant_id, user_id, message_id) WHERE user_id IS NOT NULL;

-- A message that is not over: what finds and routes messages. The row is the message's lock, and is deleted with the message's end, so no search
-- for messages at work reads the past. `state`, `instance_id` and `agent_type` are those of `messages`.
CREATE TABLE running_messages (
  tenant_id text NOT NULL, message_id text COLLATE "C" NOT NULL, session_id text NOT NULL,
  state text NOT NULL, created_at timestamptz NOT NULL DEFAULT now(),
  want_instance_id text, want_agent_type text, want_skill_id text,
  instance_id text, agent_type text,
  attempts integer NOT NULL DEFAULT 0, current_dispatch_id text COLLATE "C",
  failed_openings smallint NOT NULL DEFAULT 0, -- how often the opening of a dispatch raised
  -- The session's slot on the instance, held from the opening of a dispatch to its end.
  holds_slot boolean NOT NULL DEFAULT false,
  -- The human's answer that the next dispatch carries: {request_id, resolution, data?, comment?}.
  resolution jsonb,
  -- What its agent has answered, while a guard waits for a human before it is delivered (`HeldOutput` in messages/read/rows.ts).
  held_output json, -- with a question of the agent: see input_requests
  -- The agent's own ids, of an A2A server that was asked before.
  remote_task_id text, remote_context_id text,
  -- Since when it waits for an agent.
  unrouted_since timestamptz,
  -- While it waits for an agent: what it waits for (db/functions/routing/queues.sql), and until when while agents of its target are online.
  queue text,
  wait_ends_at timestamptz,
  -- Agents to which no connection opened for this message: routing takes them last.
  unreachable_ids text[] NOT NULL DEFAULT '{}',
  -- Set where the message is to go on, by whichever process looks first: the one that set it, or a sweeper once that one has died.
  wake_requested_at timestamptz,
  -- When its workflow last looked; NULL: it has none.
  supervised_at timestamptz,
  -- That of its session, so that the end of a message need not look.
  ordered boolean NOT NULL DEFAULT false,
  -- How many agents it came through, so that those which send to each other in a loop come to an end, whether they count or not
  -- (db/functions/messages/agent_work.sql).
  hops smallint NOT NULL DEFAULT 0,
  -- Set with the loss of an agent whose skill is idempotent, to the deadline of the lost dispatch, so that all repeats together have the time of
  -- one; a human's answer begins a new one.
  repeat_until timestamptz,
  -- A human has approved something of it: its end says what came of that (settle_approvals).
  approved boolean NOT NULL DEFAULT false,
  PRIMARY KEY (tenant_id, message_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
-- By state, so that messages at work are counted without a look at those that wait for input, and the reverse. Partial, so that no plan
-- made on an empty table takes it instead of the key.
CREATE INDEX running_in_flight ON running_messages (tenant_id, state, session_id)
  WHERE state IN ('submitted', 'working', 'input-required');
-- With the key at the end no two entries are equal: many equal dead ones make every insert search among them.
CREATE INDEX running_slots ON running_messages (tenant_id, instance_id, session_id, message_id) WHERE holds_slot;
-- Who carries a human's answer goes first, then the oldest (db/functions/dispatches/take_messages.sql).
CREATE INDEX running_queued ON running_messages (tenant_id, queue, (resolution IS NULL), created_at) WHERE queue IS NOT NULL;
CREATE INDEX running_to_wake ON running_messages (wake_requested_at) WHERE wake_requested_at IS NOT NULL;
CREATE INDEX running_waits ON running_messages (wait_ends_at) WHERE wait_ends_at IS NOT NULL;

-- Queues for which no agent is online, since when (db/functions/routing/waits.sql).
CREATE TABLE queue_absences (tenant_id text, queue text, since timestamptz NOT NULL, PRIMARY KEY (tenant_id, queue));

-- One attempt to have one agent do a message. States: messages/dispatch/dispatch-states.ts. No index has a column that changes, so that the
-- end of a dispatch writes none; open ones are found by running_messages.
CREATE TABLE dispatches (
  created_at timestamptz NOT NULL DEFAULT now(),
  sent_at timestamptz, -- written before the first byte goes out: from here on the agent may have it
  deadline_at timestamptz, ended_at timestamptz, -- once its message has ended with it: no deadline, and no node where it was completed
  epoch bigint NOT NULL, attempt smallint NOT NULL,
  tenant_id text NOT NULL, dispatch_id text COLLATE "C" NOT NULL,
  message_id text COLLATE "C" NOT NULL,
  instance_id text NOT NULL, agent_type text NOT NULL,
  deployment_mode text NOT NULL, mesh_id text,
  state text NOT NULL, skill_id text, error_code text,
  PRIMARY KEY (tenant_id, dispatch_id)
) PARTITION BY RANGE (dispatch_id);
-- Only for queries that name an instance, as messages_by_session. In ascending order, so that full pages are left behind.
CREATE INDEX dispatches_newest ON dispatches (instance_id, tenant_id, created_at) WHERE instance_id IS NOT NULL;

-- Writes agent.capacity_changed with the load of an instance (agent_load), after a session that counts by itself came to it or left it.
CREATE FUNCTION record_capacity(of_tenant text, of_instance text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM record_event(a.tenant_id, new_event_id(), 'agent.capacity_changed', 'info', '', NULL, jsonb_build_object('agent_type', a.agent_type, 'instance_id', a.instance_id,
        'current_sessions', agent_load(a.tenant_id, a.instance_id), 'max_concurrent_sessions', a.max_concurrent_sessions))
    FROM agents a WHERE a.tenant_id = of_tenant AND a.instance_id = of_instance;
END $$;

-- A session that pauses or resumes changes the load of its instance, unless a message of it holds the slot there: whichever function does it, the
-- event is written here.
CREATE FUNCTION note_capacity_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM running_messages r WHERE r.tenant_id = NEW.tenant_id AND r.instance_id = NEW.instance_id
                   AND r.session_id = NEW.session_id AND r.holds_slot) THEN
    PERFORM record_capacity(NEW.tenant_id, NEW.instance_id);
  END IF;
  RETURN NULL;
END $$;
-- One that moves to another instance is counted by who moves it.
CREATE TRIGGER capacity_of_session AFTER UPDATE OF suspended ON sessions FOR EACH ROW
  WHEN (NEW.suspended <> OLD.suspended AND NEW.reserves AND NEW.instance_id = OLD.instance_id AND NEW.status = 'active')
  EXECUTE FUNCTION note_capacity_change();

-- Messages that wait for an agent to which nothing can be sent any more, because it has their session, wait for any of its type from then on.
-- Queues are named as by `queue_of`. One that another transaction has is being routed.
CREATE FUNCTION requeue_messages() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE running_messages r SET queue = '/' || OLD.agent_type || '/' || coalesce(r.want_skill_id, '')
   WHERE r.tenant_id = OLD.tenant_id AND r.message_id IN (SELECT w.message_id FROM running_messages w
     WHERE w.tenant_id = OLD.tenant_id AND w.queue = OLD.instance_id || '//' AND w.want_instance_id IS DISTINCT FROM OLD.instance_id
       FOR UPDATE SKIP LOCKED);
  RETURN NULL;
END $$;
CREATE TRIGGER queue_of_agent AFTER UPDATE ON agents FOR EACH ROW WHEN (OLD.has_room IS NOT NULL AND NEW.has_room IS NULL)
  EXECUTE FUNCTION requeue_messages();

-- The dispatches that a stopping mesh node offers to the next nodes of their agents (docs/durability.md), with what it knew of them. A dispatch is
-- offered while it has the epoch of its row. The node that claims it raises the epoch, and deletes the row once the agent is connected.
CREATE TABLE dispatch_transfers (
  tenant_id text NOT NULL, instance_id text NOT NULL, dispatch_id text COLLATE "C" NOT NULL,
  mesh_id text NOT NULL, -- the node that offers it
  epoch bigint NOT NULL, -- of the dispatch
  resume_token_hashes bytea[] NOT NULL, -- SHA-256; an agent with one of these tokens may continue
  -- JSON of the output so far. Not jsonb: a chunk may end inside a surrogate pair, which jsonb refuses.
  progress text NOT NULL,
  expires_at timestamptz NOT NULL, -- then no node may accept it any more, and the dispatch is lost
  PRIMARY KEY (tenant_id, instance_id, dispatch_id)
);

-- The last change of each message whose state changed more than five seconds after its id was made: with it the newest changes are found
-- without an index on what every message changes (messages/read/task-walk.ts). Written by note_change in db/functions/.
CREATE TABLE late_changes (
  tenant_id text NOT NULL, message_id text COLLATE "C" NOT NULL, session_id text NOT NULL,
  changed_at timestamptz NOT NULL, -- updated_at of the message
  PRIMARY KEY (tenant_id, message_id)
);
CREATE INDEX late_changes_newest ON late_changes (tenant_id, changed_at, message_id);
-- When a session idles out (session_idle.sql).
CREATE INDEX late_changes_of_session ON late_changes (tenant_id, session_id, changed_at);

SELECT isolate_tenants('{idempotency_keys}', own_tenant => 'current_tenant_uuid()');
SELECT isolate_tenants('{sessions,session_totals,session_agents,messages,running_messages,dispatches,dispatch_transfers,late_changes,queue_absences}');
