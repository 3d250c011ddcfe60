import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { MetricsServer, type MetricsServerOptions } from '../../platform/metrics/metrics-server.js';
import { createLogger } from '../../runtime/logger.js';
import { fires, readRules, type Series, seriesOf } from '../setup/promql.js';

const RULES = readRules(readFileSync(join(import.meta.dirname, '../../deploy/prometheus/fleet-rules.yml'), 'utf8'));
const HOUR = 3_600;
/** A counter that rises evenly. */
const perSecond = (rate: number) => (seconds: number) => rate * seconds;
/** A value for the first minutes, and another one from then on. */
const until = (minutes: number, first: number, then: number) => (seconds: number) =>
  seconds < minutes * 60 ? first : then;
const api = (name: string, labels: string) => `${name}{instance="api-1",${labels}}`;
const worker = (name: string, labels: string) => `${name}{instance="worker-1",${labels}}`;
const oldest = (queue: string) => worker('fleet_queue_oldest_seconds', `queue="${queue}"`);
const unread = (reader: string) => worker('fleet_events_unread', `reader="${reader}"`);
const [TEMPORAL, POOL] = [api('fleet_part_up', 'part="temporal"'), api('fleet_database_waiting', 'role="fleet_app"')];
const SWEEPER = worker('fleet_loop_failing', 'loop="sweeper"');
const WAITING = worker('fleet_queue_depth', 'queue="messages_without_agent"');
const bucket = (le: string) => api('fleet_http_request_duration_seconds_bucket', `route="/agents/get",le="${le}"`);

/** Series in which nothing is wrong: most stand still. */
const HEALTHY: Parameters<typeof seriesOf>[0] = {
  'up{job="fleet",instance="api-1"}': 1,
  [api('fleet_part_up', 'part="database"')]: 1,
  [TEMPORAL]: 1,
  [api('fleet_part_up', 'part="redis"')]: 1,
  [api('fleet_part_up', 'part="mesh"')]: 1,
  [api('fleet_log_lines_total', 'level="info"')]: perSecond(1),
  [api('fleet_log_lines_total', 'level="error"')]: 3,
  'fleet_log_lines_dropped_total{instance="api-1"}': 0,
  [api('fleet_http_requests_total', 'route="/send",status="200"')]: perSecond(5),
  [api('fleet_http_requests_total', 'route="/send",status="503"')]: 7,
  [bucket('0.1')]: perSecond(2),
  [bucket('4')]: perSecond(2),
  [bucket('+Inf')]: perSecond(2),
  'nodejs_eventloop_lag_p99_seconds{instance="api-1"}': 0.01,
  [api('fleet_messages_refused_total', 'reason="queued_full"')]: 0,
  [api('fleet_messages_refused_total', 'reason="quota_exceeded"')]: 0,
  [api('fleet_messages_refused_total', 'reason="usage_unknown"')]: 0,
  [WAITING]: 3,
  [oldest('messages_without_agent')]: 2,
  [oldest('messages_to_wake')]: 0,
  [api('fleet_dispatches_total', 'end="completed"')]: perSecond(5),
  [api('fleet_dispatches_total', 'end="failed"')]: perSecond(0.1),
  [api('fleet_dispatches_total', 'end="unrecorded"')]: 0,
  [api('fleet_mesh_transitions_total', 'event="socket_lost"')]: perSecond(0.01),
  'fleet_mesh_certificate_end_seconds{instance="api-1"}': 30 * 24 * HOUR,
  [api('fleet_mesh_handshakes_total', 'result="refused"')]: perSecond(0.01),
  [api('fleet_node_messages_dropped_total', 'reason="forged"')]: 0,
  [POOL]: (seconds) => (seconds % 120 === 0 ? 4 : 0),
  [api('fleet_database_waiting', 'role="fleet_system"')]: 0,
  'fleet_database_turns_refused_total{instance="api-1"}': 0,
  [oldest('deliveries_waiting')]: 0,
  'fleet_receivers_unavailable{instance="worker-1"}': 0,
  [worker('fleet_deliveries_ended_total', 'channel="slack",result="delivered"')]: perSecond(1),
  [worker('fleet_deliveries_ended_total', 'channel="slack",result="failed"')]: perSecond(0.01),
  [unread('alerts')]: 3,
  [unread('usage')]: 3,
  [unread('traces')]: 3,
  [oldest('erasures')]: 0,
  [oldest('knowledge_jobs')]: 0,
  [worker('temporal_worker_task_slots_available', 'worker_type="WorkflowWorker"')]: (seconds) =>
    seconds % 120 === 0 ? 0 : 5,
};

/** What is wrong where an alert is to fire; then the same for too short a time, or too weakly, where it is to be quiet. */
const CASES: Record<string, [loud: Parameters<typeof seriesOf>[0], quiet?: Parameters<typeof seriesOf>[0]]> = {
  FleetProcessDown: [{ 'up{job="fleet",instance="api-1"}': 0 }, { 'up{job="fleet",instance="api-1"}': until(1, 0, 1) }],
  FleetDatabaseDown: [{ [api('fleet_part_up', 'part="database"')]: 0 }],
  FleetTemporalDown: [{ [TEMPORAL]: 0 }, { [TEMPORAL]: until(1, 0, 1) }],
  FleetRedisDown: [{ [api('fleet_part_up', 'part="redis"')]: 0 }],
  FleetMeshDown: [{ [api('fleet_part_up', 'part="mesh"')]: 0 }],
  FleetLoopFailing: [{ [SWEEPER]: 1 }, { [SWEEPER]: (seconds) => (seconds < 60 ? 1 : undefined) }],
  FleetErrorsLogged: [{ [api('fleet_log_lines_total', 'level="error"')]: until(60, 3, 4) }],
  FleetLogLinesDropped: [{ 'fleet_log_lines_dropped_total{instance="api-1"}': until(60, 0, 9) }],
  FleetRequestsFail: [{ [api('fleet_http_requests_total', 'route="/send",status="503"')]: perSecond(0.5) }],
  FleetApiSlow: [{ [bucket('0.1')]: perSecond(1) }],
  FleetEventLoopBlocked: [{ 'nodejs_eventloop_lag_p99_seconds{instance="api-1"}': 0.8 }],
  FleetMessagesRefused: [{ [api('fleet_messages_refused_total', 'reason="queued_full"')]: perSecond(2) }],
  FleetQuotasUsedUp: [{ [api('fleet_messages_refused_total', 'reason="quota_exceeded"')]: perSecond(1) }],
  FleetUsageUnknown: [{ [api('fleet_messages_refused_total', 'reason="usage_unknown"')]: perSecond(0.1) }],
  FleetMessagesWaitForAgents: [{ [WAITING]: 200 }, { [WAITING]: until(3, 200, 3) }],
  FleetMessagesNotPickedUp: [{ [oldest('messages_to_wake')]: 90 }],
  FleetDispatchesFail: [{ [api('fleet_dispatches_total', 'end="failed"')]: perSecond(3) }],
  FleetDispatchUnrecorded: [{ [api('fleet_dispatches_total', 'end="unrecorded"')]: until(60, 0, 1) }],
  FleetMessagesQueueLong: [{ [oldest('messages_without_agent')]: 400 }],
  FleetAgentsDisconnect: [{ [api('fleet_mesh_transitions_total', 'event="socket_lost"')]: perSecond(2) }],
  FleetCertificateEnds: [{ 'fleet_mesh_certificate_end_seconds{instance="api-1"}': 5 * 24 * HOUR }],
  FleetHandshakesRefused: [{ [api('fleet_mesh_handshakes_total', 'result="refused"')]: perSecond(2) }],
  FleetNodeMessagesDropped: [{ [api('fleet_node_messages_dropped_total', 'reason="forged"')]: until(60, 0, 1) }],
  FleetDatabasePoolExhausted: [{ [POOL]: 5 }, { [POOL]: until(4, 5, 0) }],
  FleetDatabaseRefusals: [{ 'fleet_database_turns_refused_total{instance="api-1"}': perSecond(1) }],
  FleetDeliveriesWait: [{ [oldest('deliveries_waiting')]: 400 }],
  FleetReceiversUnavailable: [{ 'fleet_receivers_unavailable{instance="worker-1"}': 1 }],
  FleetDeliveriesFail: [{ [worker('fleet_deliveries_ended_total', 'channel="slack",result="failed"')]: perSecond(1) }],
  FleetEventsUnread: [{ [unread('alerts')]: 5_000 }],
  FleetUsageBehind: [{ [unread('usage')]: 3_000 }],
  FleetTraceExportBehind: [{ [unread('traces')]: 20_000 }],
  FleetErasureLate: [{ [oldest('erasures')]: 7 * HOUR }],
  FleetKnowledgeJobsWait: [{ [oldest('knowledge_jobs')]: 2 * HOUR }],
  FleetTemporalSlotsUsedUp: [{ [worker('temporal_worker_task_slots_available', 'worker_type="WorkflowWorker"')]: 0 }],
};

const firing = (series: Series[], rules = RULES) =>
  rules.filter((rule) => fires(rule, series)).map(({ alert }) => alert);
const inCase = (wrong: Parameters<typeof seriesOf>[0]) => seriesOf({ ...HEALTHY, ...wrong });

test('every alert has its case, and none fires while nothing is wrong', () => {
  expect(Object.keys(CASES)).toEqual(RULES.map(({ alert }) => alert));
  expect(firing(seriesOf(HEALTHY))).toEqual([]);
});

test.each(Object.entries(CASES))('%s fires in its case', (alert, [loud, quiet]) => {
  const rule = RULES.filter((one) => one.alert === alert);
  expect(firing(inCase(loud), rule)).toEqual([alert]);
  if (quiet) expect(firing(inCase(quiet), rule)).toEqual([]);
});

test('a platform that does nothing fires no alert: no division of nothing by nothing', () => {
  const moving = Object.entries(HEALTHY).filter(
    ([name, value]) => typeof value !== 'number' && !name.includes('slots'),
  );
  const still = Object.fromEntries(moving.map(([name]) => [name, 0]));
  expect(firing(inCase(still))).toEqual([]);
});

test('a scrape does not count its own work as waiting for a connection', async () => {
  let waiting = 0;
  const pool = () => ({ open: 4, idle: 0, max: 4, waiting });
  const turns = { waiting: 0, waited: 0, waitedMs: 0, refused: 0 };
  const sources = {
    version: '0',
    logCounts: { lines: {}, dropped: () => 0 },
    health: async () => {
      waiting += 1;
      await new Promise(setImmediate);
      waiting -= 1;
      return { status: 'ok', version: '0', checks: {} };
    },
    database: () => ({ pools: { fleet_system: pool() }, turns, batches: {} }),
    ...{ verdicts: {}, watched: 0, droppedNodeMessages: {}, http: [], spans: {}, mesh: null, queues: null },
    deliveries: { attempts: {}, ended: {} },
  } as unknown as MetricsServerOptions['sources'];
  const config = { FLEET_HOST: '127.0.0.1', FLEET_METRICS_PORT: 0 };
  const log = createLogger({ level: 'silent' });
  const server = new MetricsServer({ config, log, sources, temporalAddress: '127.0.0.1:1' });
  onTestFinished(() => server.stop());
  const url = await server.listen();
  expect(await (await fetch(String(url))).text()).toContain('fleet_database_waiting{role="fleet_system"} 0\n');
});
