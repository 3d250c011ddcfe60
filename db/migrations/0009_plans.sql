-- Plans: graphs of steps, each of which is done by a message (docs/plans.md). A transaction that changes a step holds its plan's lock, which it
-- takes last: after the locks of a session, an agent's room or a message.

CREATE TABLE plans (
  tenant_id text NOT NULL, plan_id text COLLATE "C" NOT NULL, session_id text NOT NULL,
  description text NOT NULL,
  state text NOT NULL CHECK (state IN ('proposed', 'running', 'completed', 'failed', 'canceled', 'rejected')),
  max_parallel integer NOT NULL, auto_approve boolean NOT NULL,
  -- Claims of the token that created it: its steps are sent with them.
  credential_id text NOT NULL, created_by text NOT NULL, agent_type text NOT NULL, scopes text[] NOT NULL,
  trace_id text NOT NULL, parent_span_id text, -- the span that proposed it
  sampled boolean NOT NULL DEFAULT true, -- as the caller's trace is
  -- What an agent proposed it with; a repeat finds the plan.
  proposal_key text,
  created_at timestamptz NOT NULL DEFAULT now(),
  started_at timestamptz, ended_at timestamptz,
  error_code text, error_message text, failed_step integer,
  -- When the plan starter looks whether its workflow is still there; NULL once it has ended.
  check_at timestamptz,
  PRIMARY KEY (tenant_id, plan_id)
);
CREATE UNIQUE INDEX plans_proposed ON plans (tenant_id, proposal_key) WHERE proposal_key IS NOT NULL;
CREATE INDEX plans_of_session ON plans (tenant_id, session_id, plan_id);
CREATE INDEX plans_by_trace ON plans (trace_id, tenant_id);
CREATE INDEX plans_open ON plans (tenant_id, session_id) WHERE state IN ('proposed', 'running');
CREATE INDEX plans_to_check ON plans (check_at) WHERE check_at IS NOT NULL;

CREATE TABLE plan_steps (
  tenant_id text NOT NULL, plan_id text COLLATE "C" NOT NULL, place integer NOT NULL, -- counts from 0
  step_id text NOT NULL, description text NOT NULL,
  agent_type text, instance_id text, skill_id text,
  parts jsonb NOT NULL, -- as given: outputs of other steps are not filled in
  depends_on integer[] NOT NULL, -- places, also of the steps whose outputs it uses
  requires_approval boolean NOT NULL, timeout_seconds integer, max_attempts integer NOT NULL,
  state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'running', 'input-required', 'completed', 'failed', 'skipped')),
  attempts integer NOT NULL DEFAULT 0, message_id text COLLATE "C", -- of the newest attempt
  started_at timestamptz, ended_at timestamptz,
  retry_at timestamptz, -- of a pending step: no attempt before
  postponed integer NOT NULL DEFAULT 0, -- how often in a row the platform had no room for the next attempt
  -- The end of its time; while it waits for a human the clock stands, and time_left_ms keeps what is left.
  due_at timestamptz, time_left_ms bigint,
  error_code text, error_message text,
  PRIMARY KEY (tenant_id, plan_id, place),
  FOREIGN KEY (tenant_id, plan_id) REFERENCES plans ON DELETE CASCADE
);

-- The request for the approval of a plan, and the tokens that answer it, go with the plan; decisions about it stay.
ALTER TABLE input_requests ADD FOREIGN KEY (tenant_id, plan_id) REFERENCES plans ON DELETE CASCADE;
CREATE UNIQUE INDEX input_requests_of_plan ON input_requests (tenant_id, plan_id) WHERE plan_id IS NOT NULL;
ALTER TABLE callback_tokens ADD FOREIGN KEY (tenant_id, plan_id) REFERENCES plans ON DELETE CASCADE;
CREATE INDEX callback_tokens_of_plan ON callback_tokens (tenant_id, plan_id) WHERE plan_id IS NOT NULL;

-- The messages of all attempts.
CREATE TABLE plan_messages (
  tenant_id text NOT NULL, message_id text COLLATE "C" NOT NULL,
  plan_id text COLLATE "C" NOT NULL, place integer NOT NULL, attempt integer NOT NULL,
  PRIMARY KEY (tenant_id, message_id),
  FOREIGN KEY (tenant_id, plan_id) REFERENCES plans ON DELETE CASCADE
);
CREATE INDEX plan_messages_of_plan ON plan_messages (tenant_id, plan_id);

-- Plans whose workflows must look at their rows. Only added to, because what adds a row must wait for no plan's lock: a message that ends, for
-- example. The plan starter wakes the workflows and deletes the rows.
CREATE TABLE plan_wakes (
  wake_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant_id text NOT NULL, plan_id text COLLATE "C" NOT NULL,
  due_at timestamptz NOT NULL DEFAULT now(),
  FOREIGN KEY (tenant_id, plan_id) REFERENCES plans ON DELETE CASCADE
);
CREATE INDEX plan_wakes_due ON plan_wakes (due_at);
CREATE INDEX plan_wakes_of_plan ON plan_wakes (tenant_id, plan_id);

SELECT isolate_tenants('{plans,plan_steps,plan_messages,plan_wakes}');
