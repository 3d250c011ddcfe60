-- Requests to humans, and who decided what.

-- A question to a human, about a message or a plan (0009_plans.sql). One is open at a time; those that are over keep their answers.
CREATE TABLE input_requests (
  tenant_id text NOT NULL, request_id text NOT NULL,
  message_id text COLLATE "C", plan_id text COLLATE "C", session_id text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('approval', 'form', 'confirmation')),
  source text NOT NULL CHECK (source IN ('policy', 'guard', 'agent', 'plan')),
  -- Where the message stood when it was asked, which decides how it goes on; `proposal`: of a plan as a whole.
  stage text NOT NULL CHECK (stage IN ('admission', 'dispatch', 'tool', 'output', 'plan', 'agent', 'proposal')),
  title text NOT NULL, prompt text NOT NULL,
  schema json, fields jsonb, -- json, not jsonb: people see members in the order in which they came
  -- What is asked about: of a tool call its arguments, which an approver may edit. `path`: what a guard objects to.
  action text, tool text, arguments json, executor jsonb, path text,
  policy_id text, policy_name text, guard text, policy_request jsonb,
  digest text NOT NULL, -- of what is asked about (messages/input/digest.ts)
  -- The key of the digests in its receipt (requests/receipts.ts). It goes with the request: then nobody can guess at what was decided.
  salt bytea NOT NULL DEFAULT uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()),
  approvers text[] NOT NULL DEFAULT '{}', quorum integer NOT NULL DEFAULT 1, allow_self boolean NOT NULL DEFAULT true,
  on_reject text NOT NULL DEFAULT 'fail' CHECK (on_reject IN ('fail', 'tell_agent')),
  escalate_to text[] NOT NULL DEFAULT '{}', -- become approvers with the first reminder
  reminder_seconds integer, reminders integer NOT NULL DEFAULT 0, remind_at timestamptz,
  state text NOT NULL CHECK (state IN ('pending', 'resolved', 'expired', 'withdrawn')),
  answer jsonb, -- {request_id, resolution, data?, comment?, arguments?}, as agents get it
  requested_at timestamptz NOT NULL DEFAULT now(), expires_at timestamptz NOT NULL, ended_at timestamptz,
  -- Set when a tool call was decided whose dispatch is at work, until the message's workflow has looked: the message may end before, and its
  -- running row with it.
  wake_requested_at timestamptz,
  PRIMARY KEY (tenant_id, request_id),
  CHECK (num_nonnulls(message_id, plan_id) = 1 AND (plan_id IS NOT NULL) = (stage = 'proposal'))
);
CREATE UNIQUE INDEX input_requests_one_open ON input_requests (tenant_id, message_id) WHERE state = 'pending';
CREATE INDEX input_requests_by_message ON input_requests (tenant_id, message_id, requested_at DESC);
CREATE INDEX input_requests_pending ON input_requests (tenant_id, requested_at) WHERE state = 'pending';
-- The lists of requests (requests/request-list.ts): each order, of all requests and of those in a state.
CREATE INDEX input_requests_in_order ON input_requests (tenant_id, requested_at, request_id);
CREATE INDEX input_requests_of_state ON input_requests (tenant_id, state, requested_at, request_id);
CREATE INDEX input_requests_by_expiry ON input_requests (tenant_id, expires_at, request_id);
CREATE INDEX input_requests_of_state_by_expiry ON input_requests (tenant_id, state, expires_at, request_id);
-- Earlier decisions about the same.
CREATE INDEX input_requests_by_digest ON input_requests (tenant_id, digest, requested_at);
CREATE INDEX input_requests_to_wake ON input_requests (wake_requested_at) WHERE wake_requested_at IS NOT NULL;
CREATE INDEX input_requests_due ON input_requests (least(expires_at, remind_at)) WHERE state = 'pending';

-- The audit of who decided what. Rows are only added: no role may change or delete them. The erasure of a message or plan empties what people and
-- agents wrote, and `ip`. No foreign keys, because they outlive their messages and plans. `voter`: who counts once towards a quorum; `stands_for`: the credentials whose vote
-- it may be, of which none counts a second time.
CREATE TABLE input_decisions (
  tenant_id text NOT NULL, approval_id text COLLATE "C" NOT NULL,
  request_id text NOT NULL, message_id text COLLATE "C", plan_id text COLLATE "C",
  kind text NOT NULL, source text NOT NULL,
  title text, tool text, arguments json, executor jsonb, -- of what was decided about: the arguments as this decision had them
  resolution text NOT NULL,
  principal_type text NOT NULL CHECK (principal_type IN ('credential', 'person', 'callback', 'page', 'slack', 'temporal', 'system')), principal_id text NOT NULL,
  voter text NOT NULL, stands_for text[] NOT NULL DEFAULT '{}',
  digest text NOT NULL, arguments_changed boolean NOT NULL DEFAULT false,
  comment text, ip text,
  decided_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, approval_id),
  UNIQUE (tenant_id, request_id, voter, digest),
  CHECK (num_nonnulls(message_id, plan_id) = 1)
);
-- What erasure has not emptied.
CREATE INDEX input_decisions_to_empty ON input_decisions (tenant_id, approval_id) WHERE num_nonnulls(comment, ip, title, arguments) > 0;
CREATE INDEX input_decisions_by_message ON input_decisions (tenant_id, message_id, approval_id) WHERE message_id IS NOT NULL;
CREATE INDEX input_decisions_by_plan ON input_decisions (tenant_id, plan_id, approval_id) WHERE plan_id IS NOT NULL;

-- What came of a request that was approved, once that is known: `expired` where nothing has used the approval. Part of the audit: rows are only
-- added and outlive their messages.
CREATE TABLE decision_outcomes (
  tenant_id text NOT NULL, request_id text NOT NULL,
  outcome text NOT NULL CHECK (outcome IN ('succeeded', 'failed', 'expired')),
  error_code text,
  settled_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, request_id)
);

SELECT isolate_tenants('{input_requests}');
SELECT isolate_tenants('{input_decisions,decision_outcomes}', 'SELECT, INSERT');
REVOKE UPDATE, DELETE ON input_decisions, decision_outcomes FROM fleet_system;
GRANT UPDATE (comment, ip, title, arguments) ON input_decisions TO fleet_system;

-- Tool calls that wait, or have waited, for a human: one row for each input request of stage `tool`. Once the request is approved the row is a
-- grant, which lets one call pass: the platform's own while the dispatch that made the call lives, else the repeated call of the message's
-- next dispatch.
CREATE TABLE tool_grants (
  tenant_id text NOT NULL, request_id text NOT NULL,
  message_id text COLLATE "C" NOT NULL,
  dispatch_id text COLLATE "C" NOT NULL, -- that made the call; its deadline stands still while the request is open
  deadline_left_ms bigint NOT NULL, -- of that dispatch
  asked_digest text NOT NULL, -- of the call as it was made; that of the request follows the arguments that an approver edits
  target jsonb NOT NULL, -- as the call names it: approved for one target is not approved for another
  node_id text NOT NULL, -- the process that waits for the decision
  call jsonb NOT NULL, -- what that process needs to make the call, beside the arguments, which are the request's (tools/approvals/tool-grants.ts)
  decided_at timestamptz, -- the request is over: it was resolved, withdrawn, or has expired
  used_at timestamptz, -- a call has passed, or the caller was told of the refusal
  used_by uuid, -- the call that a grant let pass; its own repeated question is answered as the first
  answered_at timestamptz, -- the result went out to the agent whose call has waited
  PRIMARY KEY (tenant_id, request_id)
);
CREATE INDEX tool_grants_by_message ON tool_grants (tenant_id, message_id);
-- A process finds what was decided without a look at what waits.
CREATE INDEX tool_grants_decided ON tool_grants (node_id, decided_at) WHERE decided_at IS NOT NULL;

SELECT isolate_tenants('{tool_grants}');

-- Runs in the transaction that ends a request, however it ends: the dispatch that waited has again the time that it had left.
CREATE FUNCTION note_tool_decision() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  decided tool_grants;
BEGIN
  UPDATE tool_grants g SET decided_at = now() WHERE g.tenant_id = NEW.tenant_id AND g.request_id = NEW.request_id RETURNING * INTO decided;
  UPDATE dispatches d SET deadline_at = now() + decided.deadline_left_ms * interval '1 ms'
   WHERE d.tenant_id = decided.tenant_id AND d.dispatch_id = decided.dispatch_id AND d.state = 'sent' AND d.deadline_at IS NULL;
  RETURN NULL;
END $$;
CREATE TRIGGER tool_decisions AFTER UPDATE OF state ON input_requests FOR EACH ROW
  WHEN (OLD.state = 'pending' AND NEW.state <> 'pending' AND NEW.stage = 'tool') EXECUTE FUNCTION note_tool_decision();
