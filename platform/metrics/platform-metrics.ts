import { collectDefaultMetrics } from 'prom-client';
import type { HttpCounts } from '../../api/plugins/http-counts.js';
import type { HealthResponse } from '../../contracts/api/health.js';
import type { DbCounts } from '../../db/pool.js';
import type { DeliveryCounts } from '../../deliveries/attempts.js';
import type { DroppedMessage } from '../../mesh/nodes/signed-message.js';
import type { MeshStats } from '../../mesh/server/server.js';
import type { VerdictCounts } from '../../messages/accept/verdicts.js';
import type { DispatchRunner } from '../../messages/runner/runner.js';
import type { LogCounts } from '../../runtime/logger.js';
import { Loop } from '../../runtime/loop.js';
import type { SpanCounts } from '../../telemetry/traces/span-recorder.js';
import { type CollectedMetrics, type Distribution, durations, labelled, type Sample } from './collected.js';
import type { METRICS } from './metric-table.js';
import type { QueueDepths } from './queue-depths.js';

/** Where the metrics are read. What a role brings is null in a process without it, and until it has started. */
export interface MetricSources {
  version: string;
  logCounts: LogCounts;
  health(): Promise<HealthResponse>;
  database(): DbCounts;
  verdicts: VerdictCounts;
  droppedNodeMessages: Record<DroppedMessage, number>;
  /** Messages that agents had for so long that they got workflows. */
  watched: number;
  deliveries: DeliveryCounts;
  spans: SpanCounts;
  http: HttpCounts;
  mesh: {
    runner: Pick<DispatchRunner, 'running' | 'counts'>;
    stats(): MeshStats;
    /** Of the certificate in use; null behind a proxy that ends TLS. */
    certificateEndsAtMs(): number | null;
  } | null;
  /** Of the whole platform; read by the worker role alone, so that each process does not count the same. */
  queues: (() => Promise<QueueDepths>) | null;
}

type PlatformMetrics = CollectedMetrics<keyof typeof METRICS>;

/**
 * Says where each metric of the table is read. Labels have few values: none names a tenant, session, agent or message.
 * @param database its counts before the scrape
 */
export function definePlatformMetrics(
  metrics: PlatformMetrics,
  sources: MetricSources,
  database: () => DbCounts,
): void {
  collectDefaultMetrics({ register: metrics.registry });
  defineProcess(metrics, sources);
  defineHttp(metrics, sources);
  defineMessages(metrics, sources);
  defineMesh(metrics, sources);
  defineDatabase(metrics, database);
  defineDeliveries(metrics, sources);
  defineQueues(metrics, sources);
}

function defineProcess(metrics: PlatformMetrics, { version, logCounts, health }: MetricSources): void {
  metrics.values('fleet_build_info', () => [[{ version }, 1]]);
  metrics.values('fleet_part_up', async () =>
    Object.entries((await health()).checks).map(([part, state]): Sample => [{ part }, state === 'ok' ? 1 : 0]),
  );
  metrics.values('fleet_loop_failing', () => [...Loop.failing].map(({ name }): Sample => [{ loop: name }, 1]));
  metrics.values('fleet_log_lines_total', () => labelled('level', logCounts.lines));
  metrics.values('fleet_log_lines_dropped_total', () => [[{}, logCounts.dropped()]]);
}

function defineHttp(metrics: PlatformMetrics, { http }: MetricSources): void {
  metrics.values('fleet_http_requests_total', () =>
    http.flatMap(({ method, route, byStatus }) =>
      Object.entries(byStatus).map(([status, count]): Sample => [{ method, route, status }, count]),
    ),
  );
  metrics.histogram('fleet_http_request_duration_seconds', () =>
    http
      .filter(({ byStatus }) => Object.keys(byStatus).length > 0)
      .map((route) => durations({ method: route.method, route: route.route }, route)),
  );
}

type Verdict = keyof VerdictCounts;
type Outcome = 'dispatched' | 'queued' | 'waits' | 'failed';

/** As what each verdict counts: the outcome of a message that is accepted, a repeat, or a refusal; null for one that no caller sees. */
const COUNTED_AS: Record<Verdict, Outcome | 'repeated' | 'refused' | null> = {
  dispatched: 'dispatched',
  queued: 'queued',
  rests: 'waits',
  asked: 'waits',
  unavailable: 'failed',
  denied: 'failed',
  repeat: 'repeated',
  mismatch: 'refused',
  no_session: 'refused',
  session_closed: 'refused',
  target_required: 'refused',
  queued_full: 'refused',
  waiting_full: 'refused',
  other_user: 'refused',
  too_many_hops: 'refused',
  quota_exceeded: 'refused',
  usage_unknown: 'refused',
  refused: 'refused',
  target_unknown: null,
  locked: null,
};
const OUTCOMES: readonly Outcome[] = ['dispatched', 'queued', 'waits', 'failed'];

const verdictsOf = (counted: Outcome | 'repeated' | 'refused'): Verdict[] =>
  (Object.keys(COUNTED_AS) as Verdict[]).filter((verdict) => COUNTED_AS[verdict] === counted);

function defineMessages(metrics: PlatformMetrics, sources: MetricSources): void {
  const { verdicts } = sources;
  const count = (of: Verdict[]) => of.reduce((sum, verdict) => sum + (verdicts[verdict] ?? 0), 0);
  metrics.values('fleet_messages_accepted_total', () =>
    OUTCOMES.map((outcome): Sample => [{ outcome }, count(verdictsOf(outcome))]),
  );
  metrics.values('fleet_messages_repeated_total', () => [[{}, count(verdictsOf('repeated'))]]);
  metrics.values('fleet_messages_refused_total', () =>
    verdictsOf('refused').map((reason): Sample => [{ reason }, verdicts[reason] ?? 0]),
  );
  metrics.values('fleet_messages_watched_total', () => [[{}, sources.watched]]);
  metrics.values('fleet_dispatches_in_flight', () => (sources.mesh ? [[{}, sources.mesh.runner.running.size]] : []));
  metrics.values('fleet_dispatches_total', () => [...labelled('end', sources.mesh?.runner.counts.byEnd ?? {})]);
  metrics.histogram('fleet_dispatch_duration_seconds', () =>
    sources.mesh ? [durations({}, sources.mesh.runner.counts)] : [],
  );
}

function defineMesh(metrics: PlatformMetrics, sources: MetricSources): void {
  metrics.values('fleet_node_messages_dropped_total', () => labelled('reason', sources.droppedNodeMessages));
  const stats = () => sources.mesh?.stats();
  metrics.values('fleet_mesh_connections', () => {
    const now = stats();
    return now ? labelled('state', { ready: now.ready, draining: now.draining, suspended: now.suspended }) : [];
  });
  metrics.values('fleet_mesh_certificate_end_seconds', () => {
    const endsAtMs = sources.mesh?.certificateEndsAtMs() ?? null;
    return endsAtMs === null ? [] : [[{}, endsAtMs / 1_000]];
  });
  metrics.values('fleet_mesh_handshakes_total', () => labelled('result', stats()?.handshakes ?? {}));
  metrics.values('fleet_mesh_transitions_total', () => labelled('event', stats()?.transitions ?? {}));
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

function defineDatabase(metrics: PlatformMetrics, database: () => DbCounts): void {
  const pools = (count: (pool: DbCounts['pools']['fleet_app']) => number) => () =>
    Object.entries(database().pools).map(([role, pool]): Sample => [{ role }, count(pool)]);
  metrics.values(
    'fleet_database_connections',
    pools(({ open }) => open),
  );
  metrics.values(
    'fleet_database_connections_idle',
    pools(({ idle }) => idle),
  );
  metrics.values(
    'fleet_database_connections_max',
    pools(({ max }) => max),
  );
  metrics.values(
    'fleet_database_waiting',
    pools(({ waiting }) => waiting),
  );
  metrics.values('fleet_database_turns_waiting', () => [[{}, database().turns.waiting]]);
  metrics.values('fleet_database_turns_waited_total', () => [[{}, database().turns.waited]]);
  metrics.values('fleet_database_turns_wait_seconds_total', () => [[{}, database().turns.waitedMs / 1_000]]);
  metrics.values('fleet_database_turns_refused_total', () => [[{}, database().turns.refused]]);
  const batches = () => Object.entries(database().batches);
  metrics.histogram('fleet_batch_size', () =>
    batches().map(([statement, { statementsBySize }]) => batchSizes(statement, statementsBySize)),
  );
  metrics.values('fleet_batch_calls_waiting', () =>
    batches().map(([statement, { waiting }]): Sample => [{ statement }, waiting]),
  );
  metrics.values('fleet_batch_calls_repeated_total', () =>
    batches().map(([statement, { repeated }]): Sample => [{ statement }, repeated]),
  );
}

function defineDeliveries(metrics: PlatformMetrics, { deliveries, spans }: MetricSources): void {
  metrics.values('fleet_trace_spans_total', () => labelled('result', { ...spans }));
  const byChannel = (label: string, counts: Record<string, Record<string, number>>) => () =>
    Object.entries(counts).flatMap(([channel, of]) =>
      [...labelled(label, of)].map(([labels, count]): Sample => [{ channel, ...labels }, count]),
    );
  const { attempts, ended } = deliveries;
  metrics.values('fleet_delivery_attempts_total', byChannel('outcome', attempts));
  metrics.values('fleet_deliveries_ended_total', byChannel('result', ended));
}

function defineQueues(metrics: PlatformMetrics, sources: MetricSources): void {
  const read = async () => (await sources.queues?.())?.queues ?? [];
  metrics.values('fleet_queue_depth', async () => (await read()).map(({ queue, depth }): Sample => [{ queue }, depth]));
  metrics.values('fleet_queue_oldest_seconds', async () =>
    (await read()).map(({ queue, oldest_seconds }): Sample => [{ queue }, oldest_seconds]),
  );
  metrics.values('fleet_events_unread', async () =>
    ((await sources.queues?.())?.readers ?? []).map(({ reader, unread }): Sample => [{ reader }, unread]),
  );
  metrics.values('fleet_receivers_unavailable', async () => {
    const depths = await sources.queues?.();
    return depths ? [[{}, depths.unavailableReceivers]] : [];
  });
}
