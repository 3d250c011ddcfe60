-- Why an instance was deregistered: because somebody asked for it, so that it stays away until it is started again, or because it was silent,
-- so that it may register anew by itself. NULL for a registered one, and for what was deregistered before this column was there.
ALTER TABLE agents ADD COLUMN deregistration_cause text CHECK (deregistration_cause IN ('explicit', 'inactivity'));
