import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { Task } from '../../contracts/a2a/a2a.js';
import { MessageCancelResponse } from '../../contracts/api/messages.js';
import { SessionInitResponse } from '../../contracts/api/sessions.js';
import { TenantLimitsResponse } from '../../contracts/api/tenants/tenants.js';
import { CollectedMetrics } from '../../platform/metrics/collected.js';
import { METRICS } from '../../platform/metrics/metric-table.js';
import { MetricsServer, type MetricsServerOptions } from '../../platform/metrics/metrics-server.js';
import { echo, silent } from '../setup/agent.js';
import { joinAgent, registerAgent } from '../setup/platform/fleet.js';
import { startPlatform } from '../setup/platform/platform.js';
import { fires, readRules, seriesOf } from '../setup/promql.js';
import { receiver, status } from '../setup/receiver.js';
import { until } from '../setup/until.js';
import { connect } from '../telemetry/event-writer.js';

const root = join(import.meta.dirname, '..', '..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

const shared = await startPlatform({
  WATCH_AFTER_MS: '500',
  FLEET_LOG_LEVEL: 'debug',
  OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1', // nobody is there
});
const { platform } = shared;
const { client } = platform;
const agent = await joinAgent(platform, { instanceId: 'echo-1', agentType: 'echo', maxConcurrentSessions: 0 }, echo);
const toEcho = { metadata: { agent_type: 'echo' } };
const metricsUrl = await platform.metricsUrl();

async function scrape(): Promise<string> {
  const answer = await fetch(metricsUrl);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
  return answer.text();
}

/** The value of a series, by its name with its labels in the order in which they are written; 0 when there is none. */
function seriesValue(text: string, series: string): number {
  const line = text.split('\n').find((one) => one.startsWith(`${series} `));
  return Number(line?.slice(series.length + 1) ?? 0);
}

/** What `work` adds to each series. */
async function growth(series: string[], work: () => Promise<unknown>): Promise<number[]> {
  const before = await scrape();
  await work();
  const after = await scrape();
  return series.map((one) => seriesValue(after, one) - seriesValue(before, one));
}

const namesIn = (text: string, pattern: RegExp): string[] =>
  [...new Set([...text.matchAll(pattern)].map(([, name = '']) => name))].sort();

test('a platform that does nothing fires no alert', async () => {
  const scrapes: Map<string, number>[] = [];
  const gauges = new Set(namesIn(await scrape(), /^# TYPE (\w+) gauge$/gm));
  for (let nth = 0; nth < 5; nth += 1) {
    const lines = (await scrape()).split('\n').filter((line) => line && !line.startsWith('#'));
    const values = lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))] as const);
    scrapes.push(new Map(values));
  }
  /** Gauges go round, because a loop may be at work in one scrape; counters stay as they were last. */
  const at = (name: string) => (seconds: number) => {
    const nth = seconds / 15;
    const isGauge = gauges.has(name.split('{', 1)[0] ?? '');
    return scrapes[isGauge ? nth % scrapes.length : Math.min(nth, scrapes.length - 1)]?.get(name);
  };
  const names = [...(scrapes.at(-1)?.keys() ?? [])];
  const certificate = 'fleet_mesh_certificate_end_seconds';
  const values = { ...Object.fromEntries(names.map((name) => [name, at(name)])), 'up{job="fleet"}': 1 };
  const series = seriesOf({ ...values, [certificate]: seriesValue(await scrape(), certificate) - Date.now() / 1_000 });
  const rules = readRules(read('deploy/prometheus/fleet-rules.yml'));
  expect(rules.filter((rule) => fires(rule, series)).map(({ alert }) => alert)).toEqual([]);
});

test('messages are counted where they pass', async () => {
  const series = [
    'fleet_messages_accepted_total{outcome="dispatched"}',
    'fleet_dispatches_total{end="completed"}',
    'fleet_dispatch_duration_seconds_count',
    'fleet_dispatch_duration_seconds_bucket{le="+Inf"}',
    'fleet_http_requests_total{method="POST",route="/send",status="200"}',
    'fleet_http_request_duration_seconds_count{method="POST",route="/send"}',
    'fleet_batch_size_sum{statement="accept_messages"}',
    'fleet_batch_size_sum{statement="end_dispatches"}',
    'fleet_messages_accepted_total{outcome="queued"}',
  ];
  const added = await growth(series, () =>
    Promise.all(Array.from({ length: 5 }, (_, index) => client.send(`hello ${index}`, toEcho))),
  );
  expect(added).toEqual([5, 5, 5, 5, 5, 5, 5, 5, 0]);
});

test('repeats, refusals and unknown paths are counted apart', async () => {
  const { tenant_id: tenantId } = platform.devJson();
  const series = [
    'fleet_messages_repeated_total',
    'fleet_messages_refused_total{reason="no_session"}',
    'fleet_messages_refused_total{reason="other_user"}',
    'fleet_messages_accepted_total{outcome="failed"}',
    'fleet_messages_accepted_total{outcome="dispatched"}',
    'fleet_http_requests_total{method="any",route="unknown",status="404"}',
  ];
  const added = await growth(series, async () => {
    await client.send('once', { ...toEcho, messageId: 'sent-twice' });
    await client.send('once', { ...toEcho, messageId: 'sent-twice' });
    await client.rpc('lost', { contextId: 'ses_00000000-0000-7000-8000-000000000000' });
    const { session_id } = await client.ok('/sessions/init', { user_id: 'ann' }, SessionInitResponse);
    await client.rpc('not hers', { metadata: { user_id: 'bob' }, contextId: session_id });
    await client.send('nobody', { metadata: { agent_type: 'nobody' } });
    await client.get(`/no/such/path/${tenantId}`);
  });
  expect(added).toEqual([1, 1, 1, 1, 1, 1]);
});

test('a message that waits for its agent shows in the queue, and then as dispatched', async () => {
  await registerAgent(client, { instanceId: 'late-1', agentType: 'late' });
  const series = [
    'fleet_messages_accepted_total{outcome="queued"}',
    'fleet_dispatches_total{end="completed"}',
    'fleet_mesh_handshakes_total{result="accepted"}',
    'fleet_mesh_transitions_total{event="welcomed"}',
  ];
  const added = await growth(series, async () => {
    const { id } = await client.send('wait', { metadata: { agent_type: 'late' }, blocking: false });
    const depth = 'fleet_queue_depth{queue="messages_without_agent"}';
    await until(async () => seriesValue(await scrape(), depth) === 1, { what: 'the message in the queue' });
    await joinAgent(platform, { instanceId: 'late-1', agentType: 'late' }, echo);
    await client.untilState(id, 'completed');
    // The row says it before the node has counted it.
    await until(async () => seriesValue(await scrape(), series[1] ?? '') > 0, { what: 'the counted dispatch' });
  });
  expect(added).toEqual([1, 1, 1, 1]);
  expect(seriesValue(await scrape(), 'fleet_mesh_connections{state="ready"}')).toBe(2);
});

test('a message that its agent has for long is counted as watched', async () => {
  await joinAgent(platform, { instanceId: 'slow-1', agentType: 'slow' }, silent);
  const watched = 'fleet_messages_watched_total';
  const before = seriesValue(await scrape(), watched);
  const { id } = await client.send('take your time', { metadata: { agent_type: 'slow' }, blocking: false });
  await until(async () => seriesValue(await scrape(), watched) === before + 1, { what: 'the watched message' });
  await client.ok('/messages/cancel', { message_id: id }, MessageCancelResponse);
});

test('deliveries are counted by channel and what came of them', async () => {
  const series = [
    'fleet_delivery_attempts_total{channel="push",outcome="accepted"}',
    'fleet_deliveries_ended_total{channel="push",result="delivered"}',
    'fleet_delivery_attempts_total{channel="push",outcome="refused"}',
    'fleet_deliveries_ended_total{channel="push",result="failed"}',
  ];
  const [takes, refuses] = [await receiver(), await receiver(status(400))];
  const before = await scrape();
  const added = (text: string, one: string) => seriesValue(text, one) - seriesValue(before, one);
  for (const { url } of [takes, refuses]) await client.send('tell', { ...toEcho, pushNotificationConfig: { url } });
  await until(
    async () => {
      const text = await scrape();
      return series.every((one) => added(text, one) > 0);
    },
    { what: 'counted deliveries' },
  );
});

test('what quotas refuse, usage that is not added up, traces that wait and erasures show', async () => {
  const refused = (reason: string) => `fleet_messages_refused_total{reason="${reason}"}`;
  const reasons = ['quota_exceeded', 'usage_unknown'].map(refused);
  const { tenant_id: tenantId } = platform.devJson();
  const status = async () => (await client.rpc('no more', toEcho)).status;
  const setLimits = (limits: object) => client.ok('/tenants/set_limits', limits, TenantLimitsResponse);
  onTestFinished(async () => void (await setLimits({ messages_per_day: null, tokens_per_day: null })));
  const over = await growth(reasons, async () => {
    await setLimits({ messages_per_day: 1 });
    expect(await status()).toBe(429);
  });
  expect(over).toEqual([1, 0]);
  await shared.database.query(
    `INSERT INTO erasures (erasure_id, tenant_id, kind, selection, digest, requested_by, requested_at, next_at)
     VALUES ('ers_late', $1, 'messages', '{}', '', 'x', now() - interval '1 hour', now() + interval '1 day')`,
    [tenantId],
  );
  await setLimits({ messages_per_day: null });
  const holder = await connect(shared.database.url);
  await holder.query(`BEGIN; SELECT 1 FROM event_cursors WHERE consumer = 'usage' FOR UPDATE`);
  await client.send('counted later', toEcho);
  const unknown = await growth(reasons, async () => {
    await setLimits({ messages_per_day: 1_000 });
    expect(await status()).toBe(503);
  });
  expect(unknown).toEqual([0, 1]);
  await until(async () => seriesValue(await scrape(), 'fleet_events_unread{reader="usage"}') > 0);
  const text = await scrape();
  expect(seriesValue(text, 'fleet_events_unread{reader="traces"}')).toBeGreaterThan(0);
  expect(seriesValue(text, 'fleet_queue_depth{queue="erasures"}')).toBe(1);
  expect(seriesValue(text, 'fleet_queue_oldest_seconds{queue="erasures"}')).toBeGreaterThanOrEqual(3_600);
  await holder.query('ROLLBACK');
  await until(async () => seriesValue(await scrape(), 'fleet_events_unread{reader="usage"}') === 0);
});

test('a scrape has every metric of the table', async () => {
  expect(namesIn(await scrape(), /^# TYPE (fleet_\w+) /gm)).toEqual(Object.keys(METRICS).sort());
});

test('dashboard and alert rules use only metrics that a scrape shows', async () => {
  const text = await scrape();
  const types = [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].flatMap(([, name = '', type]) =>
    type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
  );
  const dashboard = JSON.parse(read('deploy/grafana/fleet-dashboard.json')) as {
    panels: { targets?: { expr: string }[] }[];
  };
  const queries = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  const rules = read('deploy/prometheus/fleet-rules.yml');
  for (const source of [queries.join('\n'), rules]) {
    const used = namesIn(source, /\b((?:fleet|temporal|nodejs|process)_\w+)\b/g);
    expect(used.length).toBeGreaterThan(10);
    expect(used.filter((name) => !types.includes(name))).toEqual([]);
  }
});

test('every alert has a severity and says what to do', () => {
  const rules = read('deploy/prometheus/fleet-rules.yml')
    .split(/^ {6}- alert: /m)
    .slice(1);
  expect(rules.length).toBeGreaterThan(15);
  for (const rule of rules) {
    const name = rule.split('\n', 1)[0];
    const parts = ['expr', 'severity', 'summary', 'remedy'].filter((part) =>
      new RegExp(`^ +${part}: \\S`, 'm').test(rule),
    );
    expect({ name, parts }).toEqual({ name, parts: ['expr', 'severity', 'summary', 'remedy'] });
  }
});

test('no label names a tenant, session, message, agent or node', async () => {
  const text = await scrape();
  expect(text).not.toMatch(/\b(ten|ses|msg|dsp|cred|mesh)_[0-9a-f]{8}-/);
  for (const id of ['echo-1', 'late-1', 'sent-twice']) expect(text).not.toContain(id);
});

test('the log leads from a request to its message, and has neither tokens nor what messages say', async () => {
  const { headers, result } = await client.rpc('a secret of mine', toEcho);
  const { id: message_id, contextId: session_id } = Task.parse(result);
  const request_id = headers.get('x-request-id');
  const lines = () =>
    platform
      .log()
      .split('\n')
      .filter((line) => line.includes(`"request_id":"${request_id}"`));
  const [accepted = '', answered] = await until(() => (lines().length === 2 ? lines() : undefined));
  const { tenant_id, client_secret } = platform.devJson();
  expect(JSON.parse(accepted)).toMatchObject({
    ...{ request_id, tenant_id, message_id, session_id },
    ...{ msg: 'message accepted', duplicate: false, dispatched: true },
  });
  expect(JSON.parse(answered ?? '')).toMatchObject({ msg: 'answered', route: '/send', status: 200 });
  for (const secret of ['a secret of mine', await client.token(), client_secret])
    expect(platform.log().includes(secret)).toBe(false);
});

test('the address answers nothing but GET /metrics and /health', async () => {
  const answers = [await fetch(new URL('/', metricsUrl)), await fetch(metricsUrl, { method: 'POST' })];
  expect(answers.map(({ status }) => status)).toEqual([404, 405]);
});

test('lost connections of agents are counted', async () => {
  const [lost] = await growth(['fleet_mesh_transitions_total{event="socket_lost"}'], async () => {
    agent.close();
    await until(async () => seriesValue(await scrape(), 'fleet_mesh_connections{state="suspended"}') === 1);
  });
  expect(lost).toBe(1);
});

test('a taken port and a metric that cannot be read are logged, once, and scrapes at one time do not disturb each other', async () => {
  const lines: string[] = [];
  const note = (_fields: object, text: string) => lines.push(text);
  const log = { info: note, warn: note, error: note } as unknown as MetricsServerOptions['log'];
  const config = { FLEET_HOST: '127.0.0.1', FLEET_METRICS_PORT: Number(new URL(metricsUrl).port) };
  const sources = {
    http: [],
    deliveries: { attempts: {}, ended: {} },
    database: () => ({}),
  } as unknown as MetricsServerOptions['sources'];
  const server = new MetricsServer({ config, log, sources, temporalAddress: '127.0.0.1:1' });
  onTestFinished(() => server.stop());
  expect(await server.listen()).toBeNull();
  const metrics = new CollectedMetrics(log, {
    good: { type: 'gauge', help: 'x', labels: [] },
    count: { type: 'counter', help: 'x', labels: [] },
    bad: { type: 'gauge', help: 'x', labels: [] },
  });
  let isAway = true;
  metrics.values('good', () => [[{}, 1]]);
  metrics.values('count', async () => [[{}, 3]]);
  metrics.values('bad', () => (isAway ? Promise.reject(new Error('away')) : [[{}, 2]]));
  for (let round = 0; round < 2; round += 1) expect(await metrics.registry.metrics()).toContain('\ngood 1\n');
  const together = await Promise.all([metrics.registry.metrics(), metrics.registry.metrics()]);
  for (const text of together) expect(text).toContain('\ncount 3\n');
  isAway = false;
  expect(await metrics.registry.metrics()).toContain('\nbad 2\n');
  expect(lines).toEqual(['metrics are not served', 'a metric cannot be read', 'a metric can be read again']);
});
