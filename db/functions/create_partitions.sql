-- Makes the monthly partitions of messages, dispatches and events up to `months_ahead` months from now. There is no default partition, so
-- that old ones can be detached while the platform runs. An id begins with the milliseconds of its creation in hexadecimal, which gives
-- the bounds. Pages of messages and dispatches keep room for the version that their end writes. A partition is made apart and attached with a CHECK that spares Postgres the scan, so that nobody waits for it.
CREATE FUNCTION create_partitions(months_ahead integer DEFAULT 2) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '5s' AS $$
DECLARE
  parent record;
  lower_month date;
  month date;
  partition text;
  lower_bound text;
  upper_bound text;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('create_partitions', 0));
  FOR parent IN SELECT * FROM (VALUES ('messages', 'message_id', 'msg', 80), ('dispatches', 'dispatch_id', 'dsp', 85),
      ('events', 'event_id', 'evt', 100)) AS named (table_name, key, prefix, fill) LOOP
    lower_month := NULL;
    FOR months IN 0 .. months_ahead LOOP
      month := date_trunc('month', now() AT TIME ZONE 'UTC')::date + months * interval '1 month';
      partition := parent.table_name || to_char(month, '_YYYY_MM');
      CONTINUE WHEN to_regclass(quote_ident(partition)) IS NOT NULL;
      -- The first partition takes whatever is older.
      IF EXISTS (SELECT 1 FROM pg_inherits WHERE inhparent = parent.table_name::regclass) THEN
        lower_month := month;
      END IF;
      lower_bound := id_bound(parent.prefix, lower_month);
      upper_bound := id_bound(parent.prefix, (month + interval '1 month')::date);
      EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)
        WITH (fillfactor = %s, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)',
        partition, parent.table_name, parent.fill);
      EXECUTE format('ALTER TABLE %I ADD CONSTRAINT in_bounds CHECK (%I >= %L AND %I < %L)', partition, parent.key, lower_bound, parent.key,
        upper_bound);
      EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%L)', parent.table_name, partition,
        CASE WHEN lower_month IS NULL THEN 'MINVALUE' ELSE quote_literal(lower_bound) END, upper_bound);
      EXECUTE format('ALTER TABLE %I DROP CONSTRAINT in_bounds', partition);
    END LOOP;
  END LOOP;
END $$;

-- The least id of a kind that is made from the beginning of this day (UTC) on; '' for NULL.
CREATE FUNCTION id_bound(prefix text, day date) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  hex text := lpad(to_hex((extract(epoch FROM day) * 1000)::bigint), 12, '0');
BEGIN
  RETURN CASE WHEN day IS NULL THEN '' ELSE prefix || '_' || substr(hex, 1, 8) || '-' || substr(hex, 9) END;
END $$;
