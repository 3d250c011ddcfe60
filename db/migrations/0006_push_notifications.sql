-- Push notifications of A2A.

CREATE TABLE push_configs (
  tenant_id text NOT NULL, message_id text COLLATE "C" NOT NULL, config_id text NOT NULL,
  url text NOT NULL, schemes text[] NOT NULL,
  secrets bytea, -- {token?, credentials?}, encrypted; NULL where there is neither
  protocol_version text NOT NULL CHECK (protocol_version IN ('0.3', '1.0')),
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, message_id, config_id)
);

-- One row for each state that a config is to be notified of, in their order, until it is a delivery (0007_alerts.sql).
CREATE TABLE push_changes (
  tenant_id text NOT NULL, sequence bigint GENERATED ALWAYS AS IDENTITY,
  message_id text COLLATE "C" NOT NULL, config_id text NOT NULL,
  state text NOT NULL,
  changed_at timestamptz NOT NULL DEFAULT now(), -- updated_at of the message as it was then
  PRIMARY KEY (tenant_id, sequence)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- Runs in the transaction that changes the state, which holds the message's row: configs change before it or after it, and sequences rise
-- with the changes. The plan of a message that does one of its steps is woken (0009_plans.sql).
CREATE FUNCTION note_state_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.state <> OLD.state AND NEW.state <> 'submitted' THEN
    INSERT INTO push_changes (tenant_id, message_id, config_id, state)
      SELECT c.tenant_id, c.message_id, c.config_id, NEW.state FROM push_configs c
       WHERE c.tenant_id = NEW.tenant_id AND c.message_id = NEW.message_id;
    INSERT INTO plan_wakes (tenant_id, plan_id)
      SELECT p.tenant_id, p.plan_id FROM plan_messages p WHERE p.tenant_id = NEW.tenant_id AND p.message_id = NEW.message_id;
  END IF;
  RETURN NULL;
END $$;
-- The condition is parsed for every statement that ends a message: it is as short as can be.
CREATE TRIGGER state_change_of_message AFTER UPDATE OF state ON messages FOR EACH ROW
  WHEN (NEW.notifies) EXECUTE FUNCTION note_state_change();

SELECT isolate_tenants('{push_configs,push_changes}');
