-- The tenants whose policies or guards were changed by transactions that a former snapshot did not see, with their
-- revisions, and the place from which the next look goes on: the oldest transaction that may still be open. An index
-- finds them, however many tenants there are. The upper bound leaves out what a restored dump brought from another
-- cluster.
CREATE FUNCTION policy_changes(since xid8, OUT next text, OUT revisions jsonb) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM act_as_system();
  SELECT pg_snapshot_xmin(pg_current_snapshot())::text,
    coalesce(jsonb_object_agg(r.tenant_id, r.revision), '{}') INTO next, revisions
    FROM policy_revisions r WHERE r.changed_by >= since AND r.changed_by < pg_snapshot_xmax(pg_current_snapshot());
END $$;
