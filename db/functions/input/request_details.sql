-- A request to a human with what was decided about it so far, as callers see it. Approvals of arguments that were
-- edited afterwards are left out. `target`: for a tool call, the agent that it names.
CREATE VIEW request_details WITH (security_invoker = true) AS
  SELECT q.*, coalesce((
      SELECT jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
               'principal', CASE WHEN d.principal_type = 'credential' THEN d.principal_id
               ELSE d.principal_type || ':' || d.principal_id END, 'resolution', d.resolution, 'comment', d.comment,
               'at', to_char(d.decided_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))) ORDER BY d.approval_id)
        FROM input_decisions d WHERE d.tenant_id = q.tenant_id AND d.request_id = q.request_id
          AND d.digest = q.digest), '[]') AS approvals,
      (SELECT g.target FROM tool_grants g WHERE g.tenant_id = q.tenant_id AND g.request_id = q.request_id) AS target
    FROM input_requests q;
GRANT SELECT ON request_details TO fleet_app, fleet_system;

-- A decision of the audit, with what came of the request where it was approved.
CREATE VIEW decision_details WITH (security_invoker = true) AS
  SELECT d.*, o.outcome, o.error_code, o.settled_at
    FROM input_decisions d
    LEFT JOIN decision_outcomes o ON o.tenant_id = d.tenant_id AND o.request_id = d.request_id
      AND d.resolution IN ('approved', 'confirmed', 'submitted');
GRANT SELECT ON decision_details TO fleet_app, fleet_system;
