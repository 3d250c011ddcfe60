-- The last token or sign-in of a credential, to the minute.
ALTER TABLE credentials ADD COLUMN last_used_at timestamptz;
