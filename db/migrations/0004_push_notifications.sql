-- A2A push notifications: who is told of a task's changes, and what is to be told.

-- Somebody wants to be told: the trigger below looks further only then.
ALTER TABLE messages ADD COLUMN notifies boolean NOT NULL DEFAULT false;

CREATE TABLE push_configs (
  tenant_id        text NOT NULL,
  message_id       text NOT NULL,
  config_id        text NOT NULL,
  url              text NOT NULL,
  schemes          text[] NOT NULL,
  -- {token?, credentials?}, encrypted; NULL where there is neither.
  secrets          bytea,
  protocol_version text NOT NULL CHECK (protocol_version IN ('0.3', '1.0')),
  created_at       timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, message_id, config_id)
);

-- One row for each state that a config is to be told of, in their order; afterwards the log of it.
CREATE TABLE push_deliveries (
  tenant_id  text NOT NULL,
  message_id text NOT NULL,
  config_id  text NOT NULL,
  sequence   bigint GENERATED ALWAYS AS IDENTITY,
  state      text NOT NULL,
  -- The moment of the change: updated_at of the message as it was then.
  told_at    timestamptz NOT NULL DEFAULT now(),
  -- When the relay calls for its workflow (again); NULL once it has ended.
  wake_at    timestamptz DEFAULT now(),
  -- [{at, status_code, error, duration_ms, success}], the oldest first.
  attempts   jsonb NOT NULL DEFAULT '[]',
  outcome    text CHECK (outcome IN ('delivered', 'failed', 'dropped')),
  ended_at   timestamptz,
  PRIMARY KEY (tenant_id, message_id, config_id, sequence)
);
CREATE INDEX push_deliveries_due ON push_deliveries (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX push_deliveries_ended ON push_deliveries (ended_at) WHERE ended_at IS NOT NULL;

-- In the transaction of whoever changes a message's state, whichever way that is. The message's row is locked by then, so that a config
-- was set before the change or is set after it, and sequences rise with the changes.
CREATE FUNCTION note_push_deliveries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.state <> OLD.state AND NEW.state <> 'submitted' THEN
    INSERT INTO push_deliveries (tenant_id, message_id, config_id, state)
      SELECT c.tenant_id, c.message_id, c.config_id, NEW.state FROM push_configs c
       WHERE c.tenant_id = NEW.tenant_id AND c.message_id = NEW.message_id;
  END IF;
  RETURN NULL;
END $$;
-- The condition is parsed for every statement that ends a message: it is as short as can be.
CREATE TRIGGER push_deliveries_of_message AFTER UPDATE OF state ON messages FOR EACH ROW
  WHEN (NEW.notifies) EXECUTE FUNCTION note_push_deliveries();

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['push_configs', 'push_deliveries'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY one_tenant ON %I TO fleet_app USING (tenant_id = current_tenant())', name);
    EXECUTE format('CREATE POLICY whole_platform ON %I TO fleet_system USING (true)', name);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO fleet_app, fleet_system', name);
  END LOOP;
END $$;
