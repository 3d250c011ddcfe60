-- The check value of the secret key in use, which stays in use until the transaction ends. A rotation takes the same
-- lock exclusively before it changes the key, so it finds all that this transaction seals. NULL before the first
-- process has stored one.
CREATE FUNCTION hold_secret_key() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(hashtextextended('secret_key', 0));
  -- a statement of its own: it sees what the lock waited for
  RETURN (SELECT f.value FROM platform_facts f WHERE f.name = 'secret_key_check');
END $$;
