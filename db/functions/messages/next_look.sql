-- When somebody is to take the next step of a message (`running_messages.wake_requested_at`). A process that writes
-- now() takes the step itself after its commit. A sweeper takes it where that time is 15 s old, the oldest first
-- (messages/supervise/sweeper.ts), so the other times tell when a sweeper is to look.

-- At once, and before all others: for a step that no process takes after its commit.
CREATE FUNCTION sweep_first() RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT now() - interval '1 hour' $$;

-- In five seconds: what has failed is tried again.
CREATE FUNCTION sweep_soon() RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT now() - interval '10 s' $$;

-- In 75 seconds, should nobody tell the message before that its turn has come.
CREATE FUNCTION sweep_later() RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT now() + interval '1 minute' $$;
