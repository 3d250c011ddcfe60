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
  call jsonb NOT NULL, -- what that process needs to make the call, beside the arguments, which are the request's (tools/tool-grants.ts)
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
