-- Makes the monthly partitions of messages, dispatches, groups of events and their positions up to `months_ahead`
-- months from now, without a gap after the newest one. There is no default partition, so that old ones can be detached
-- while the platform runs. An id begins with the milliseconds of its creation in hexadecimal, which gives the bounds.
-- Pages of messages and dispatches keep room for the version that their end writes. A partition is made apart, in the
-- schema of its table, and attached with a CHECK that spares Postgres the scan, so that nobody waits for it.
CREATE FUNCTION create_partitions(months_ahead integer DEFAULT 2) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '5s' AS $$
DECLARE
  present date := date_trunc('month', now() AT TIME ZONE 'UTC')::date;
  parent record;
  month date;
  lower_bound text;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('create_partitions', 0));
  FOR parent IN SELECT named.*,
    (SELECT max(to_date(right(c.relname, 7), 'YYYY_MM')) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = ('public.' || named.table_name)::regclass) AS newest
      FROM (VALUES ('messages', 'message_id', 'msg', 90), ('dispatches', 'dispatch_id', 'dsp', 92),
        ('event_groups', 'group_id', NULL, 100), ('event_positions', 'last_group_id', NULL, 100))
        AS named (table_name, key, prefix, fill) LOOP
    FOR month IN SELECT generate_series(coalesce(parent.newest + interval '1 month', present),
        present + months_ahead * interval '1 month', interval '1 month')::date LOOP
      -- The first partition takes whatever is older.
      lower_bound := CASE WHEN parent.newest IS NOT NULL OR month > present THEN id_bound(parent.prefix, month) END;
      EXECUTE format($sql$
        CREATE TABLE %1$s (LIKE public.%2$I INCLUDING ALL)
          WITH (fillfactor = %3$s, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
        ALTER TABLE %1$s ADD CONSTRAINT in_bounds CHECK (%5$s AND %4$I < %6$L);
        ALTER TABLE public.%2$I ATTACH PARTITION %1$s FOR VALUES FROM (%7$s) TO (%6$L);
        ALTER TABLE %1$s DROP CONSTRAINT in_bounds$sql$,
        'public.' || parent.table_name || to_char(month, '_YYYY_MM'), parent.table_name, parent.fill, parent.key,
        coalesce(format('%I >= %L', parent.key, lower_bound), 'true'),
        id_bound(parent.prefix, (month + interval '1 month')::date), coalesce(quote_literal(lower_bound), 'MINVALUE'));
      PERFORM limit_statistics('public.' || parent.table_name || to_char(month, '_YYYY_MM'));
    END LOOP;
  END LOOP;
END $$;

-- Makes ANALYZE of a partition cheap: a twentieth of the rows are looked at, and only columns that an index has. While
-- a month is young autovacuum analyzes it every few seconds, and sorting thousands of JSON documents took most of a
-- core each time.
CREATE FUNCTION limit_statistics(partition regclass) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  indexed record;
BEGIN
  EXECUTE (SELECT format('ALTER TABLE %s %s', partition, string_agg(format('ALTER %I SET STATISTICS %s', a.attname,
        CASE WHEN EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = partition AND a.attnum = ANY (i.indkey)) THEN 5
          ELSE 0 END), ', '))
      FROM pg_attribute a WHERE a.attrelid = partition AND a.attnum > 0 AND NOT a.attisdropped);
  FOR indexed IN SELECT i.indexrelid::regclass AS name, k.place
    FROM pg_index i, unnest(i.indkey) WITH ORDINALITY AS k (attnum, place)
      WHERE i.indrelid = partition AND k.attnum = 0 LOOP
    EXECUTE format('ALTER INDEX %s ALTER COLUMN %s SET STATISTICS 5', indexed.name, indexed.place);
  END LOOP;
END $$;

-- The least id of a kind that is made from this moment on. NULL for a prefix: the least UUID.
CREATE FUNCTION id_bound(prefix text, moment timestamptz) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  hex text := lpad(to_hex(greatest(0, extract(epoch FROM moment) * 1000)::bigint), 12, '0');
  bound text := substr(hex, 1, 8) || '-' || substr(hex, 9);
BEGIN
  RETURN coalesce(prefix || '_' || bound, bound || '-0000-0000-000000000000');
END $$;

-- The same from the beginning of this day (UTC) on.
CREATE FUNCTION id_bound(prefix text, day date) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN id_bound(prefix, day::timestamp AT TIME ZONE 'UTC');
END $$;
