-- Events as everybody reads them, out of the rows that hold those of a transaction about one message (event_groups).

-- The id of a group's event at a place, from 0 on: the last byte is the place.
CREATE FUNCTION event_id(of_group uuid, place bigint) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT 'evt_' || left(of_group::text, 34) || lpad(to_hex(place), 2, '0') $$;

-- The group of an event, and its place there.
CREATE FUNCTION group_of(event_id text) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT (substr(event_id, 5, 34) || '00')::uuid $$;
CREATE FUNCTION place_of(event_id text) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT ('x' || right(event_id, 2))::bit(8)::integer $$;

-- The UUID of an identifier, and of a trace.
CREATE FUNCTION uuid_of(id text) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT right(id, 36)::uuid $$;

-- The payload as its type defines it: groups leave out what their columns say, and what most events of a type say.
CREATE FUNCTION payload_of(g event_groups, event_type text, payload jsonb) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT CASE
    WHEN event_type = 'message.completed'
      THEN payload || jsonb_build_object('message_id', 'msg_' || g.message_id, 'session_id', g.session_id, 'role', 'agent')
    WHEN event_type = 'message.received'
      THEN '{"role": "user"}' || payload || jsonb_build_object('message_id', 'msg_' || g.message_id, 'session_id', g.session_id)
    WHEN event_type IN ('message.error', 'message.canceled')
      THEN payload || jsonb_build_object('message_id', 'msg_' || g.message_id, 'session_id', g.session_id)
    WHEN event_type = 'dispatch.sent'
      THEN '{"skill_id": null}' || payload || jsonb_build_object('dispatch_id', 'dsp_' || g.dispatch_id, 'session_id', g.session_id)
    WHEN event_type IN ('dispatch.success', 'dispatch.failed') THEN payload || jsonb_build_object('dispatch_id', 'dsp_' || g.dispatch_id)
    WHEN event_type = 'session.created' THEN payload || jsonb_build_object('session_id', g.session_id, 'tenant_id', g.tenant_id)
    ELSE payload END
$$;

-- `message_id`: of the message that it is about, of an event of a dispatch too. Whoever looks for events by their ids names their groups:
-- there is an index for these only.
CREATE VIEW events WITH (security_invoker = true) AS
  SELECT g.tenant_id, event_id(g.group_id, e.place - 1) AS event_id, e.event ->> 0 AS event_type, split_part(e.event ->> 0, '.', 1) AS category,
         'platform' AS source, coalesce(e.event ->> 2, 'info') AS severity, g.session_id,
         CASE WHEN e.event ->> 0 <> 'session.created' THEN 'msg_' || g.message_id END AS message_id, replace(coalesce(g.trace_id, g.message_id)::text, '-', '') AS trace_id,
         g.occurred_at,
         payload_of(g, e.event ->> 0, e.event -> 1) AS payload, g.group_id, g.transaction_id
    FROM event_groups g CROSS JOIN LATERAL jsonb_array_elements(g.events::jsonb) WITH ORDINALITY AS e (event, place);
GRANT SELECT ON events TO fleet_app, fleet_system;

-- Writes an event of the platform. `of_message`: where the payload does not name it.
CREATE FUNCTION record_event(of_tenant text, event_id text, event_type text, severity text, session_id text, trace_id text, payload jsonb,
  of_message text DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO event_groups (tenant_id, group_id, session_id, message_id, dispatch_id, trace_id, events)
    VALUES (of_tenant, group_of(event_id), session_id, uuid_of(coalesce(of_message, payload ->> 'message_id')),
      CASE WHEN event_type LIKE 'dispatch.%' THEN uuid_of(payload ->> 'dispatch_id') END, trace_id::uuid,
      jsonb_build_array(event_of(event_type, payload, severity)));
END $$;

-- An element of a group's events. STABLE, as what it calls is: an IMMUTABLE one would be called each time, not inlined, which takes 15 µs.
CREATE FUNCTION event_of(event_type text, payload jsonb, severity text DEFAULT 'info') RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN severity = 'info' THEN jsonb_build_array(event_type, payload) ELSE jsonb_build_array(event_type, payload, severity) END
$$;
