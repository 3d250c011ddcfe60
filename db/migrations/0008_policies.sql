-- Policies and guards, and the revision of everything that a process keeps compiled to decide by.

-- Raised by every change of a tenant's policies or guards (policy/policy-store.ts). A tenant without a row never had any. `changed_by` is the
-- transaction that raised it: processes look for rows of the transactions that they have not seen yet (policy/change-feed.ts), however
-- many tenants there are.
CREATE TABLE policy_revisions (
  tenant_id text PRIMARY KEY REFERENCES tenants, revision bigint NOT NULL,
  changed_by xid8 NOT NULL DEFAULT pg_current_xact_id()
);
CREATE INDEX policy_revisions_by_change ON policy_revisions (changed_by);

CREATE TABLE policies (
  tenant_id text NOT NULL REFERENCES tenants, policy_id text COLLATE "C" NOT NULL,
  scope text NOT NULL CHECK (scope IN ('admission', 'dispatch', 'tool', 'plan', 'session')),
  name text NOT NULL,
  decision text NOT NULL CHECK (decision IN ('allow', 'deny', 'require_approval', 'audit')),
  description text NOT NULL,
  match jsonb NOT NULL,
  reason text NOT NULL,
  approvers text[] NOT NULL,
  evaluator jsonb NOT NULL, -- without its secret
  evaluator_secret bytea, -- of a webhook, encrypted; NULL where there is none
  priority integer NOT NULL,
  enabled boolean NOT NULL,
  end_at timestamptz, -- not in force from then on; NULL: without an end
  created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(), updated_by text,
  PRIMARY KEY (tenant_id, policy_id)
);

-- What tenants have changed of their guards. A guard without a row is as the platform has it (GUARD_DEFAULTS in contracts/api/policies/guards.ts). Each
-- change raises the tenant's revision in `policy_revisions`.
CREATE TABLE guards (
  tenant_id text NOT NULL REFERENCES tenants,
  guard text NOT NULL CHECK (guard IN ('path', 'egress', 'secrets', 'prompt_injection', 'limits')),
  enabled boolean NOT NULL,
  decision text NOT NULL CHECK (decision IN ('allow', 'require_approval', 'deny')),
  config jsonb NOT NULL, -- the members that differ from the defaults of today or before
  updated_at timestamptz NOT NULL DEFAULT now(), updated_by text,
  PRIMARY KEY (tenant_id, guard)
);

-- Policies decide about the message before it joins a queue: the accept transaction could not.
ALTER TABLE running_messages ADD COLUMN undecided boolean NOT NULL DEFAULT false;
-- What a human was asked about the message's dispatch by a policy: it waits, or was approved. Keys of messages/supervise/policy-step.ts.
ALTER TABLE running_messages ADD COLUMN asked_policies text[] NOT NULL DEFAULT '{}';
-- What evaluators said about its dispatch to an agent: messages/dispatch/dispatch-policy.ts.
ALTER TABLE running_messages ADD COLUMN verdicts jsonb NOT NULL DEFAULT '{}';
-- What policies see of the sender's token: {sub, credential_id, scopes, agent_type}, and its limits. NULL where it has none and no policy could look
-- at the message as it was accepted; one that was made since sees the credential.
ALTER TABLE running_messages ADD COLUMN token jsonb;

SELECT isolate_tenants('{policy_revisions,policies,guards}');
