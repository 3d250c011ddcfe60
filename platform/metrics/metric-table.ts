/** A metric as a scrape and docs/metrics.md describe it. */
export interface MetricDescription {
  type: 'counter' | 'gauge' | 'histogram';
  help: string;
  labels: string[];
}

const describeAs =
  (type: MetricDescription['type']) =>
  (help: string, ...labels: string[]): MetricDescription => ({ type, help, labels });
const counter = describeAs('counter');
const gauge = describeAs('gauge');
const histogram = describeAs('histogram');

/** Every metric of the platform. `npm run docs` writes the tables of docs/metrics.md from it, one for each heading. */
export const METRICS = {
  // process
  fleet_build_info: gauge('1', 'version'),
  fleet_part_up: gauge('1 if `database`, `temporal`, `mesh` or `redis` answers, as in `GET /health`', 'part'),
  fleet_loop_failing: gauge('1 for each background loop whose last turn failed; none while all work', 'loop'),
  fleet_log_lines_total: counter('lines of `warn`, `error` and `fatal`', 'level'),
  fleet_log_lines_dropped_total: counter(
    'lines that could not be written, because a disk is full or the reader of the log is gone',
  ),
  // http
  fleet_http_requests_total: counter(
    'answered requests. `route` is the template of the path; paths that there are not are `unknown`, with the method `any`',
    'method',
    'route',
    'status',
  ),
  fleet_http_request_duration_seconds: histogram(
    'from the request until the answer was written. `/send` waits for its agent, and a stream lasts as long as it is read',
    'method',
    'route',
  ),
  // messages
  fleet_messages_accepted_total: counter(
    '`dispatched`: an agent got it at once. `queued`: it waits for an agent. `waits`: for a person, an evaluator or its turn. `failed`: at once, for its target is not registered or a policy denied it',
    'outcome',
  ),
  fleet_messages_watched_total: counter(
    'messages that their agents had for longer than `WATCH_AFTER_MS`, so that they got workflows',
  ),
  fleet_messages_repeated_total: counter('sends whose `messageId` was on the record already'),
  fleet_messages_refused_total: counter(
    'sends that wrote nothing: `mismatch` (of content with the same `messageId`), `no_session`, `session_closed`, `target_required`, `queued_full` (`TENANT_MAX_QUEUED`), `waiting_full` (`TENANT_MAX_WAITING`), `other_user` (the session, or the work of the agent, is of another user), `too_many_hops` (agents that send to each other in a loop), `quota_exceeded`, `usage_unknown` (what the tenant has used of its quotas is not added up: 503), `refused` (a policy denies the session that the message would open)',
    'reason',
  ),
  fleet_dispatches_in_flight: gauge('dispatches that run on this mesh node'),
  fleet_dispatches_total: counter(
    'dispatches that ended on this mesh node. `end`: `completed`, `failed`, `input_required`, `lost`, `not_sent`, `closed` (something else ended it, for example a cancel), `unrecorded`',
    'end',
  ),
  fleet_dispatch_duration_seconds: histogram(
    'from sending a dispatch until its end was recorded; waits for people that a tool call needs are in it',
  ),
  // mesh
  fleet_mesh_connections: gauge(
    'connected agents of this node: `ready`, `draining`, `suspended` (the socket is lost, the agent may resume)',
    'state',
  ),
  fleet_mesh_certificate_end_seconds: gauge(
    'when the TLS certificate in use ends, in seconds since 1970; none behind a proxy that ends TLS',
  ),
  fleet_mesh_handshakes_total: counter('WebSocket upgrades, `accepted` and `refused`', 'result'),
  fleet_mesh_transitions_total: counter(
    'changes of state, by the events of connections: `welcomed`, `resumed`, `socket_lost`, `pings_missed`, …',
    'event',
  ),
  fleet_node_messages_dropped_total: counter(
    'messages over Redis that were not taken: `forged` (not signed with the secret key for this node), `late` (over a minute old, or from a clock that is as far off)',
    'reason',
  ),
  // database
  fleet_database_connections: gauge(
    "open connections: `fleet_app` for the work of tenants, `fleet_system` for the platform's own",
    'role',
  ),
  fleet_database_connections_idle: gauge('those of them without work', 'role'),
  fleet_database_connections_max: gauge('how many may be open', 'role'),
  fleet_database_waiting: gauge('work that waits for a connection', 'role'),
  fleet_database_turns_waiting: gauge('work of tenants that waits for its turn, before it asks for a connection'),
  fleet_database_turns_waited_total: counter('work of tenants that had to wait for its turn'),
  fleet_database_turns_wait_seconds_total: counter('how long that waited, all together'),
  fleet_database_turns_refused_total: counter('work of tenants that waited too long, or had too much before it: 429'),
  fleet_batch_size: histogram('calls that shared one statement of `accept_messages` or `end_dispatches`', 'statement'),
  fleet_batch_calls_waiting: gauge('calls that wait for such a statement', 'statement'),
  fleet_batch_calls_repeated_total: counter(
    'calls that were repeated: another transaction held their lock, or their statement was undone',
    'statement',
  ),
  // queues
  fleet_queue_depth: gauge(
    '*platform*, from each worker: what waits in Postgres; 10,000 stands for that many or more',
    'queue',
  ),
  fleet_queue_oldest_seconds: gauge('*platform*, from each worker: how long the oldest of these waits', 'queue'),
  fleet_events_unread: gauge(
    '*platform*, from each worker: groups of events (each of a transaction and a message) that were not read yet by `alerts` (the rules, those of a tenant that is left behind included), `usage` (the sums that quotas are measured by) or `traces` (the export, if one is configured)',
    'reader',
  ),
  fleet_receivers_unavailable: gauge(
    '*platform*, from each worker: receivers that failed five times in a row and get only probes, for which deliveries wait, told apart by tenant and receiver; up to 10,000',
  ),
  fleet_delivery_attempts_total: counter(
    'attempts by `webhook`, `slack`, `email` and `push`: `accepted`, `refused` (never to be taken), `unavailable` (perhaps later)',
    'channel',
    'outcome',
  ),
  fleet_deliveries_ended_total: counter('deliveries that ended `delivered` or `failed`', 'channel', 'result'),
  fleet_trace_spans_total: counter(
    'spans of traces: `exported`, `refused` (by the collector, for good), `dropped` (of tool calls and streams, beyond what is kept). `unreadable` counts messages and plans whose spans could not be read for the export',
    'result',
  ),
};
