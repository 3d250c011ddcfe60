import { collectDefaultMetrics } from 'prom-client';
import type { HttpCounts } from '../../api/plugins/http-counts.js';
import type { HealthResponse } from '../../contracts/api/health.js';
import type { DbCounts } from '../../db/pool.js';
import type { DeliveryCounts } from '../../deliveries/attempts.js';
import type { MeshStats } from '../../mesh/server/server.js';
import type { VerdictCounts } from '../../messages/accept/verdicts.js';
import type { DispatchRunner } from '../../messages/runner/runner.js';
import type { LogCounts } from '../../runtime/logger.js';
import { Loop } from '../../runtime/loop.js';
import type { SpanCounts } from '../../telemetry/traces/span-recorder.js';
import { type CollectedMetrics, type Distribution, durations, labelled, type Sample } from './collected.js';
import type { QueueDepths } from './queue-depths.js';

/** Where the metrics are read. What a role brings is null in a process without it, and until it has started. */
export interface MetricSources {
  version: string;
  logCounts: LogCounts;
  health(): Promise<HealthResponse>;
  database(): DbCounts;
  verdicts: VerdictCounts;
  /** Messages of the fast path whose workflows took over. */
  handedOver: number;
  deliveries: DeliveryCounts;
  spans: SpanCounts;
  http: HttpCounts;
  mesh: {
    runner: Pick<DispatchRunner, 'size' | 'counts'>;
    stats(): MeshStats;
    /** Of the certificate in use; null behind a proxy that ends TLS. */
    certificateEndsAtMs(): number | null;
  } | null;
  /** Of the whole platform; read by the worker role alone, so that each process does not count the same. */
  queues: (() => Promise<QueueDepths>) | null;
}

/** Defines every metric of the platform (docs/metrics.md). Labels have few values: none names a tenant, session, agent or message. */
export function definePlatformMetrics(metrics: CollectedMetrics, sources: MetricSources): void {
  collectDefaultMetrics({ register: metrics.registry });
  defineProcess(metrics, sources);
  defineHttp(metrics, sources);
  defineMessages(metrics, sources);
  defineMesh(metrics, sources);
  defineDatabase(metrics, sources);
  defineDeliveries(metrics, sources);
  defineQueues(metrics, sources);
}

function defineProcess(metrics: CollectedMetrics, { version, logCounts, health }: MetricSources): void {
  metrics.gauge('fleet_build_info', '1, with the version of the platform', ['version'], () => [[{ version }, 1]]);
  metrics.gauge('fleet_part_up', '1 if a part answers, as in GET /health', ['part'], async () =>
    Object.entries((await health()).checks).map(([part, state]): Sample => [{ part }, state === 'ok' ? 1 : 0]),
  );
  metrics.gauge('fleet_loop_failing', '1 for each background loop whose last turn failed', ['loop'], () =>
    [...Loop.failing].map(({ name }): Sample => [{ loop: name }, 1]),
  );
  metrics.counter('fleet_log_lines_total', 'Lines of the log from level warn on', ['level'], () =>
    labelled('level', logCounts.lines),
  );
  metrics.counter('fleet_log_lines_dropped_total', 'Lines of the log that could not be written', [], () => [
    [{}, logCounts.dropped()],
  ]);
}

function defineHttp(metrics: CollectedMetrics, { http }: MetricSources): void {
  metrics.counter('fleet_http_requests_total', 'Answered HTTP requests', ['method', 'route', 'status'], () =>
    http.flatMap(({ method, route, byStatus }) =>
      Object.entries(byStatus).map(([status, count]): Sample => [{ method, route, status }, count]),
    ),
  );
  metrics.histogram('fleet_http_request_duration_seconds', 'Time from a request until its answer was written', () =>
    http
      .filter(({ byStatus }) => Object.keys(byStatus).length > 0)
      .map((route) => durations({ method: route.method, route: route.route }, route)),
  );
}

type Verdict = keyof VerdictCounts;
const ACCEPTED = {
  fast: ['dispatched'],
  workflow: ['accepted', 'asked'],
  none: ['unavailable', 'denied'],
} as const satisfies Record<string, Verdict[]>;
const REFUSED = [
  'mismatch',
  'no_session',
  'session_closed',
  'target_required',
  'full',
  'waiting_full',
  'agents_saturated',
  'too_many_hops',
  'quota_exceeded',
  'usage_unknown',
  'refused',
] as const satisfies Verdict[];

function defineMessages(metrics: CollectedMetrics, sources: MetricSources): void {
  const { verdicts } = sources;
  metrics.counter('fleet_messages_accepted_total', 'Accepted messages, by the path that they took', ['path'], () =>
    Object.entries(ACCEPTED).map(
      ([path, of]): Sample => [{ path }, of.reduce((sum, verdict) => sum + (verdicts[verdict] ?? 0), 0)],
    ),
  );
  metrics.counter('fleet_messages_repeated_total', 'Messages that were on the record already', [], () => [
    [{}, verdicts.repeat ?? 0],
  ]);
  metrics.counter('fleet_messages_refused_total', 'Messages that were refused, by verdict', ['reason'], () =>
    REFUSED.map((reason): Sample => [{ reason }, verdicts[reason] ?? 0]),
  );
  metrics.counter('fleet_messages_handed_over_total', 'Messages of the fast path whose workflow took over', [], () => [
    [{}, sources.handedOver],
  ]);
  metrics.gauge('fleet_dispatches_in_flight', 'Dispatches that run on this node', [], () =>
    sources.mesh ? [[{}, sources.mesh.runner.size]] : [],
  );
  metrics.counter('fleet_dispatches_total', 'Dispatches that ended on this node', ['path', 'end'], () =>
    Object.entries(sources.mesh?.runner.counts ?? {}).flatMap(([path, { byEnd }]) =>
      [...labelled('end', byEnd)].map(([labels, count]): Sample => [{ path, ...labels }, count]),
    ),
  );
  metrics.histogram('fleet_dispatch_duration_seconds', 'Time from sending a dispatch until its end was recorded', () =>
    Object.entries(sources.mesh?.runner.counts ?? {}).map(([path, counts]) => durations({ path }, counts)),
  );
}

function defineMesh(metrics: CollectedMetrics, sources: MetricSources): void {
  const stats = () => sources.mesh?.stats();
  metrics.gauge('fleet_mesh_connections', 'Connections of agents on this node', ['state'], () => {
    const now = stats();
    return now ? labelled('state', { ready: now.ready, draining: now.draining, suspended: now.suspended }) : [];
  });
  metrics.gauge('fleet_mesh_certificate_end_seconds', 'When the certificate of the mesh ends, since 1970', [], () => {
    const endsAtMs = sources.mesh?.certificateEndsAtMs() ?? null;
    return endsAtMs === null ? [] : [[{}, endsAtMs / 1_000]];
  });
  metrics.counter('fleet_mesh_handshakes_total', 'WebSocket upgrades', ['result'], () =>
    labelled('result', stats()?.handshakes ?? {}),
  );
  metrics.counter('fleet_mesh_transitions_total', 'Changes of the state of connections', ['event'], () =>
    labelled('event', stats()?.transitions ?? {}),
  );
}

/** Bounds of the sizes of statements that are shown apart. */
const BATCH_BOUNDS = [1, 2, 4, 8, 16, 32];

/** @param bySize how many statements had as many calls, by their number */
function batchSizes(statement: string, bySize: readonly number[]): Distribution {
  const upTo = (bound: number) => bySize.slice(0, bound + 1).reduce((sum, count) => sum + count, 0);
  return {
    labels: { statement },
    atMost: BATCH_BOUNDS.map((bound) => [bound, upTo(bound)] as const),
    count: upTo(bySize.length),
    sum: bySize.reduce((sum, count, size) => sum + count * size, 0),
  };
}

function defineDatabase(metrics: CollectedMetrics, { database }: MetricSources): void {
  const pools = (count: (pool: DbCounts['pools']['fleet_app']) => number) => () =>
    Object.entries(database().pools).map(([role, pool]): Sample => [{ role }, count(pool)]);
  metrics.gauge(
    'fleet_database_connections',
    'Open connections',
    ['role'],
    pools(({ open }) => open),
  );
  metrics.gauge(
    'fleet_database_connections_idle',
    'Open connections without work',
    ['role'],
    pools(({ idle }) => idle),
  );
  metrics.gauge(
    'fleet_database_connections_max',
    'Connections that may be open',
    ['role'],
    pools(({ max }) => max),
  );
  metrics.gauge(
    'fleet_database_waiting',
    'Work that waits for a connection',
    ['role'],
    pools(({ waiting }) => waiting),
  );
  metrics.gauge('fleet_database_turns_waiting', 'Work of tenants that waits for its turn', [], () => [
    [{}, database().turns.waiting],
  ]);
  metrics.counter('fleet_database_turns_waited_total', 'Work of tenants that had to wait', [], () => [
    [{}, database().turns.waited],
  ]);
  metrics.counter('fleet_database_turns_wait_seconds_total', 'How long it waited', [], () => [
    [{}, database().turns.waitedMs / 1_000],
  ]);
  metrics.counter('fleet_database_turns_refused_total', 'Work of tenants that was refused with 429', [], () => [
    [{}, database().turns.refused],
  ]);
  const batches = () => Object.entries(database().batches);
  metrics.histogram('fleet_batch_size', 'Calls in one statement', () =>
    batches().map(([statement, { statementsBySize }]) => batchSizes(statement, statementsBySize)),
  );
  metrics.gauge('fleet_batch_calls_waiting', 'Calls that wait for a statement', ['statement'], () =>
    batches().map(([statement, { waiting }]): Sample => [{ statement }, waiting]),
  );
  metrics.counter('fleet_batch_calls_repeated_total', 'Calls that were repeated', ['statement'], () =>
    batches().map(([statement, { repeated }]): Sample => [{ statement }, repeated]),
  );
}

function defineDeliveries(metrics: CollectedMetrics, { deliveries, spans }: MetricSources): void {
  metrics.counter('fleet_trace_spans_total', 'Spans that were exported, refused or dropped', ['result'], () =>
    labelled('result', { ...spans }),
  );
  const byChannel = (label: string, counts: Record<string, Record<string, number>>) => () =>
    Object.entries(counts).flatMap(([channel, of]) =>
      [...labelled(label, of)].map(([labels, count]): Sample => [{ channel, ...labels }, count]),
    );
  const { attempts, ended } = deliveries;
  const labels = (label: string) => ['channel', label];
  metrics.counter('fleet_delivery_attempts_total', 'Attempts', labels('outcome'), byChannel('outcome', attempts));
  metrics.counter('fleet_deliveries_ended_total', 'Ended deliveries', labels('result'), byChannel('result', ended));
}

function defineQueues(metrics: CollectedMetrics, sources: MetricSources): void {
  const read = async () => (await sources.queues?.())?.queues ?? [];
  metrics.gauge('fleet_queue_depth', 'What waits in Postgres; counts up to 10000', ['queue'], async () =>
    (await read()).map(({ queue, depth }): Sample => [{ queue }, depth]),
  );
  metrics.gauge('fleet_queue_oldest_seconds', 'How long the oldest of it waits', ['queue'], async () =>
    (await read()).map(({ queue, oldest_seconds }): Sample => [{ queue }, oldest_seconds]),
  );
  metrics.gauge(
    'fleet_events_unread',
    'Groups of events, each of a transaction and a message, that a background reader has not read',
    ['reader'],
    async () => ((await sources.queues?.())?.readers ?? []).map(({ reader, unread }): Sample => [{ reader }, unread]),
  );
  const unavailable = 'Receivers of a tenant whose breaker is open and for which deliveries wait; counts up to 10000';
  metrics.gauge('fleet_receivers_unavailable', unavailable, [], async () => {
    const depths = await sources.queues?.();
    return depths ? [[{}, depths.unavailableReceivers]] : [];
  });
}
