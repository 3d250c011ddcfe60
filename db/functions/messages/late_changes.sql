-- The least id of a message for which a change at this time is not late: an id begins with the milliseconds of its
-- creation in hexadecimal.
CREATE FUNCTION late_bound(at timestamptz) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT overlay('msg_' || lpad(to_hex(floor(extract(epoch FROM at) * 1000)::bigint - 5000), 12, '0') PLACING '-'
    FROM 13 FOR 0)
$$;

-- Whether a change of a message is late now: more than five seconds after its id was made. Whoever accepts and
-- completes messages asks before it calls note_change: most end before they are late.
CREATE FUNCTION is_late(of_message text)
  RETURNS boolean LANGUAGE sql STABLE AS $$ SELECT of_message COLLATE "C" < late_bound(now()) $$;

-- Every function that writes `updated_at` of a message calls this in the same transaction.
CREATE FUNCTION note_change(of_tenant text, of_message text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF is_late(of_message) THEN
    INSERT INTO late_changes (tenant_id, message_id, session_id, changed_at)
      SELECT of_tenant, of_message, m.session_id, now() FROM messages m
        WHERE m.tenant_id = of_tenant AND m.message_id = of_message
      ON CONFLICT (tenant_id, message_id) DO UPDATE SET changed_at = excluded.changed_at;
  END IF;
END $$;
