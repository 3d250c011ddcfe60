-- Requests to humans, and who decided what.

-- A question to a human about a message. One is open at a time; those that are over keep their answers.
CREATE TABLE input_requests (
  tenant_id text NOT NULL, request_id text NOT NULL,
  message_id text COLLATE "C" NOT NULL, session_id text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('approval', 'form', 'confirmation')),
  source text NOT NULL CHECK (source IN ('policy', 'guard', 'agent', 'plan')),
  -- Where the message stood when it was asked, which decides how it goes on.
  stage text NOT NULL CHECK (stage IN ('admission', 'dispatch', 'tool', 'output', 'plan', 'agent')),
  title text NOT NULL, prompt text NOT NULL,
  schema jsonb, fields jsonb,
  -- What is asked about: of a tool call its arguments, which an approver may edit. `path`: what a guard objects to.
  action text, tool text, arguments jsonb, path text,
  policy_id text, policy_name text, guard text, policy_request jsonb,
  digest text NOT NULL, -- of what is asked about (messages/input/digest.ts)
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
  PRIMARY KEY (tenant_id, request_id)
);
CREATE UNIQUE INDEX input_requests_one_open ON input_requests (tenant_id, message_id) WHERE state = 'pending';
CREATE INDEX input_requests_by_message ON input_requests (tenant_id, message_id, requested_at DESC);
CREATE INDEX input_requests_pending ON input_requests (tenant_id, requested_at) WHERE state = 'pending';
CREATE INDEX input_requests_to_wake ON input_requests (wake_requested_at) WHERE wake_requested_at IS NOT NULL;
CREATE INDEX input_requests_due ON input_requests (least(expires_at, remind_at)) WHERE state = 'pending';

-- The audit of who decided what. Rows are only added: no role may change or delete them. The erasure of a message empties `comment` and
-- `ip`. No foreign keys, because they outlive their messages. `voter`: who counts once towards a quorum.
CREATE TABLE input_decisions (
  tenant_id text NOT NULL, approval_id text COLLATE "C" NOT NULL,
  request_id text NOT NULL, message_id text COLLATE "C" NOT NULL,
  kind text NOT NULL, source text NOT NULL,
  resolution text NOT NULL,
  principal_type text NOT NULL CHECK (principal_type IN ('credential', 'callback', 'page', 'slack', 'system')), principal_id text NOT NULL,
  voter text NOT NULL,
  digest text NOT NULL, arguments_changed boolean NOT NULL DEFAULT false,
  comment text, ip text,
  decided_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, approval_id),
  UNIQUE (tenant_id, request_id, voter, digest)
);
-- What erasure has not emptied.
CREATE INDEX input_decisions_to_empty ON input_decisions (tenant_id, approval_id) WHERE comment IS NOT NULL OR ip IS NOT NULL;
CREATE INDEX input_decisions_by_message ON input_decisions (tenant_id, message_id, approval_id);

SELECT isolate_tenants('{input_requests}');
SELECT isolate_tenants('{input_decisions}', 'SELECT, INSERT');
REVOKE UPDATE, DELETE ON input_decisions FROM fleet_system;
GRANT UPDATE (comment, ip) ON input_decisions TO fleet_system;
