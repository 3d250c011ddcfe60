-- How many tool calls a policy may allow; NULL: any number.
ALTER TABLE policies ADD COLUMN max_calls integer CHECK (max_calls BETWEEN 1 AND 1000000);
ALTER TABLE policies ADD CONSTRAINT max_calls_of_tools
  CHECK (max_calls IS NULL OR (scope = 'tool' AND decision = 'allow'));

-- How many it has allowed while it had a bound: apart from the policy, since every such call writes it.
CREATE TABLE policy_calls (
  tenant_id text NOT NULL REFERENCES tenants, policy_id text COLLATE "C" NOT NULL,
  calls_allowed integer NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant_id, policy_id),
  FOREIGN KEY (tenant_id, policy_id) REFERENCES policies ON DELETE CASCADE
);

SELECT isolate_tenants('{policy_calls}');
