-- The audit: who administered what, and who decided what.

-- One row for each change, written in its transaction (audit/record-audit.ts), and one for each decision about a request. Rows are only
-- added. Secrets are never among `before` and `after`.
CREATE TABLE audit_entries (
  tenant_id text NOT NULL, audit_id text COLLATE "C" NOT NULL,
  -- The order in which the tenant's entries were committed; NULL only inside the transaction that writes the row.
  position bigint,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  principal_type text NOT NULL CHECK (principal_type IN
    ('credential', 'agent', 'person', 'callback', 'page', 'slack', 'system', 'schedule', 'operator', 'temporal')),
  principal_id text NOT NULL,
  action text NOT NULL,
  target_type text NOT NULL, target_id text NOT NULL, target_name text,
  ip text,
  before json, after json, -- json, not jsonb: members stay in the order of the API
  message_id text COLLATE "C", plan_id text COLLATE "C", -- of a decision
  PRIMARY KEY (tenant_id, audit_id)
);
CREATE UNIQUE INDEX audit_entries_in_order ON audit_entries (tenant_id, position);
CREATE INDEX audit_entries_by_target ON audit_entries (tenant_id, target_id, position);
CREATE INDEX audit_entries_by_principal ON audit_entries (tenant_id, principal_id, position);
CREATE INDEX audit_entries_by_message ON audit_entries (tenant_id, message_id) WHERE message_id IS NOT NULL;
CREATE INDEX audit_entries_by_plan ON audit_entries (tenant_id, plan_id) WHERE plan_id IS NOT NULL;
CREATE INDEX audit_entries_old ON audit_entries (at);

-- The position of a tenant's newest entry.
CREATE TABLE audit_heads (tenant_id text PRIMARY KEY, last_position bigint NOT NULL);

-- Runs as the last thing of a transaction. The row of the tenant in audit_heads stays locked until the commit is done, so an entry never
-- becomes visible after one with a higher position: a cursor skips none. Nothing else is locked afterwards, so nobody waits in a circle.
CREATE FUNCTION place_audit_entry() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  next_position bigint;
BEGIN
  INSERT INTO audit_heads AS h (tenant_id, last_position) VALUES (NEW.tenant_id, 1)
    ON CONFLICT (tenant_id) DO UPDATE SET last_position = h.last_position + 1
    RETURNING h.last_position INTO next_position;
  UPDATE audit_entries e SET position = next_position WHERE e.tenant_id = NEW.tenant_id AND e.audit_id = NEW.audit_id;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER position_of_audit_entry AFTER INSERT ON audit_entries DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION place_audit_entry();

-- Every decision about a request is an entry, whoever wrote its row. The erasure of its message or plan takes away the title (`target_name`),
-- the arguments, the comment and the address (erasure/message-tables.ts).
CREATE FUNCTION audit_decision() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO audit_entries (tenant_id, audit_id, principal_type, principal_id, action, target_type, target_id, target_name, ip, message_id,
      plan_id, after)
    SELECT NEW.tenant_id, 'aud_' || substr(NEW.approval_id, strpos(NEW.approval_id, '_') + 1), NEW.principal_type, NEW.principal_id,
           'request.decide', 'request', NEW.request_id, q.title, NEW.ip, NEW.message_id, NEW.plan_id,
           (SELECT json_object_agg(m.name, m.value) FROM (VALUES
               ('resolution', to_json(NEW.resolution)), ('kind', to_json(NEW.kind)), ('source', to_json(NEW.source)),
               ('tool', to_json(q.tool)), ('arguments', q.arguments), ('executor', to_json(q.executor)),
               ('message_id', to_json(NEW.message_id)), ('plan_id', to_json(NEW.plan_id)), ('approval_id', to_json(NEW.approval_id)),
               ('digest', to_json(NEW.digest)), ('arguments_changed', to_json(NEW.arguments_changed)), ('comment', to_json(NEW.comment))
             ) AS m (name, value) WHERE m.value IS NOT NULL)
      FROM (SELECT 1) AS one
      LEFT JOIN input_requests q ON q.tenant_id = NEW.tenant_id AND q.request_id = NEW.request_id;
  RETURN NULL;
END $$;
CREATE TRIGGER audit_of_decision AFTER INSERT ON input_decisions FOR EACH ROW EXECUTE FUNCTION audit_decision();

SELECT isolate_tenants('{audit_entries}', 'SELECT, INSERT');
GRANT UPDATE (position) ON audit_entries TO fleet_app;
SELECT isolate_tenants('{audit_heads}');
