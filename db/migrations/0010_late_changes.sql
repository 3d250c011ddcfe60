-- The last change of each message whose state changed more than five seconds after its id was made: with it the newest changes are found
-- without an index on what every message changes (messages/read/task-walk.ts). Written by note_change in db/functions/.
CREATE TABLE late_changes (
  tenant_id text NOT NULL, message_id text COLLATE "C" NOT NULL,
  changed_at timestamptz NOT NULL, -- updated_at of the message
  PRIMARY KEY (tenant_id, message_id)
);
CREATE INDEX late_changes_newest ON late_changes (tenant_id, changed_at, message_id);

SELECT isolate_tenants('{late_changes}');
