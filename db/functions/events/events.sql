-- Events as readers get them. A row of event_groups holds the events of one transaction about one message. The
-- alternative, a row for each event with its type as text, was measured in November 2026 (2 cores): accept_messages
-- took 1 to 3 % longer for one message, 7 to 9 % for 16 together, 12 % for 32, and wrote three rows and index entries
-- in place of one.

-- The id of a group's event at a place, from 0 on: the last byte is the place.
CREATE FUNCTION event_id(of_group uuid, place bigint) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT 'evt_' || left(of_group::text, 34) || lpad(to_hex(place), 2, '0') $$;

-- The group of an event, and its place there.
CREATE FUNCTION group_of(event_id text) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT (substr(event_id, 5, 34) || '00')::uuid $$;
CREATE FUNCTION place_of(event_id text) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT ('x' || right(event_id, 2))::bit(8)::integer $$;

-- The UUID in an identifier, or of a trace id.
CREATE FUNCTION uuid_of(id text) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT right(id, 36)::uuid $$;

-- The whole payload of an event. Groups do not store what their columns hold, nor members that have the same value in
-- most events of a type.
CREATE FUNCTION payload_of(g event_groups, event_type text, payload jsonb) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT CASE
    WHEN event_type = 'message.completed'
      THEN payload || jsonb_build_object('message_id', 'msg_' || g.message_id,
        'session_id', session_of(g.session_uuid, g.session_name), 'role', 'agent')
    WHEN event_type = 'message.received'
      THEN '{"role": "user"}' || payload
        || jsonb_build_object('message_id', 'msg_' || g.message_id,
        'session_id', session_of(g.session_uuid, g.session_name))
    WHEN event_type IN ('message.error', 'message.canceled')
      THEN payload || jsonb_build_object('message_id', 'msg_' || g.message_id,
        'session_id', session_of(g.session_uuid, g.session_name))
    WHEN event_type = 'dispatch.sent'
      THEN '{"skill_id": null}' || payload
        || jsonb_build_object('dispatch_id', 'dsp_' || g.dispatch_id,
        'session_id', session_of(g.session_uuid, g.session_name))
    WHEN event_type IN ('dispatch.success', 'dispatch.failed') THEN payload
      || jsonb_build_object('dispatch_id', 'dsp_' || g.dispatch_id)
    WHEN event_type = 'session.created' THEN payload
      || jsonb_build_object('session_id', session_of(g.session_uuid, g.session_name),
      'tenant_id', 'ten_' || g.tenant_id)
    WHEN event_type = 'session.closed' THEN payload
      || jsonb_build_object('session_id', session_of(g.session_uuid, g.session_name))
    ELSE payload END
$$;

-- The types of a group's events, in their order.
CREATE FUNCTION types_of(types bigint) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT ARRAY(SELECT t.name FROM unnest(event_types()) WITH ORDINALITY AS t (name, place)
    WHERE types & (1::bigint << t.place::integer - 1) <> 0) $$;

-- How many events a group has of these types; of all by default.
CREATE FUNCTION count_of(types bigint, wanted bigint DEFAULT -1) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT bit_count((types & wanted)::bit(64))::integer $$;

-- The bits of these types; all for NULL.
CREATE FUNCTION event_bits(of_types text[]) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT CASE WHEN of_types IS NULL THEN -1
    ELSE coalesce((SELECT bit_or(event_bit(t)) FROM unnest(of_types) t), 0) END $$;

-- Whether an event of a group names an instance.
CREATE FUNCTION names_instance(events json, instance_id text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT jsonb_path_exists(events::jsonb, '$[*].instance_id ? (@ == $id)',
    jsonb_build_object('id', instance_id)) $$;

-- `message_id`: of the event's message, also for an event of a dispatch. Queries filter by `tenant_uuid`,
-- `session_uuid` and `group_id`: there are indexes for these only.
CREATE VIEW events WITH (security_invoker = true) AS
  SELECT 'ten_' || g.tenant_id AS tenant_id, event_id(g.group_id, e.place - 1) AS event_id, e.event_type,
         split_part(e.event_type, '.', 1) AS category, 'platform' AS source,
         CASE jsonb_typeof(e.event) WHEN 'array' THEN e.event ->> 1 ELSE 'info' END AS severity,
         session_of(g.session_uuid, g.session_name) AS session_id,
         CASE WHEN e.event_type <> 'session.created' THEN 'msg_' || g.message_id END AS message_id,
         replace(coalesce(g.trace_id, g.message_id)::text, '-', '') AS trace_id, g.occurred_at,
         payload_of(g, e.event_type,
         CASE jsonb_typeof(e.event) WHEN 'array' THEN e.event -> 0 ELSE e.event END) AS payload, g.group_id,
         g.tenant_id AS tenant_uuid, g.session_uuid, g.transaction_id
    FROM event_groups g
    CROSS JOIN LATERAL ROWS FROM (unnest(types_of(g.types)),
      jsonb_array_elements(g.events::jsonb)) WITH ORDINALITY AS e (event_type, event, place);
GRANT SELECT ON events TO fleet_app, fleet_system;

-- An element of a group's events.
CREATE FUNCTION event_body(payload jsonb, severity text DEFAULT 'info') RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN severity = 'info' THEN payload ELSE jsonb_build_array(payload, severity) END
$$;

-- An event for record_group. It is STABLE like the functions that it calls: Postgres would not inline an IMMUTABLE one,
-- and a call takes 15 µs.
CREATE FUNCTION event_of(event_type text, payload jsonb, severity text DEFAULT 'info')
  RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT jsonb_build_array(event_type, event_body(payload, severity))
$$;

-- The id of an event that a SQL function adds by itself: a UUID of version 7 whose last byte is the place in its group.
CREATE FUNCTION new_event_id() RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT format('evt_%s-%s-7%s-8%s-%s00', left(n.at, 8), right(n.at, 4), left(n.chance, 3), substr(n.chance, 4, 3),
    right(n.chance, 10))
    FROM (SELECT lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0') AS at,
                 replace(gen_random_uuid()::text, '-', '') AS chance) AS n
$$;

-- Writes an event of the platform. `of_message`: where the payload does not name it.
CREATE FUNCTION record_event(of_tenant text, event_id text, event_type text, severity text, session_id text,
  trace_id text, payload jsonb, of_message text DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO event_groups (tenant_id, group_id, session_uuid, session_name, message_id, dispatch_id, trace_id, types,
    instance_mark, events)
    VALUES (uuid_of(of_tenant), group_of(event_id), session_uuid(uuid_of(of_tenant), session_id),
      session_name(session_id), uuid_of(coalesce(of_message, payload ->> 'message_id')),
      CASE WHEN event_type LIKE 'dispatch.%' THEN uuid_of(payload ->> 'dispatch_id') END, trace_id::uuid,
      event_bit(event_type), instance_mark(payload ->> 'instance_id'),
      jsonb_build_array(event_body(payload, severity)));
END $$;
