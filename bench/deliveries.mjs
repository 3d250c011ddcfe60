/**
 * What the alert relay keeps up with: events at a steady rate against 20 rules, one event in 25 delivered; first alone, then beside another
 * tenant whose webhooks, and one whose push notifications, go to a receiver that never answers (docs/performance.md).
 *
 *     npm run bench:deliveries -- [--json FILE] [--events N] [--rate N] [--dead-rate N] [--push-rate N]
 */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { DELIVERED_SHARE, eventTypes, RULES, rule, sendWithPush, writeEvents } from './deliveries/load.mjs';
import { hasProc, residentMiB } from './harness/cpu.mjs';
import { connectDatabase } from './harness/database.mjs';
import { Harness } from './harness/harness.mjs';
import { quantile } from './harness/measure.mjs';
import { machineLine, markdownTable } from './harness/report.mjs';
import { createTenant } from './harness/tenants.mjs';

const WARM_UP_EVENTS = 500;
const SETTLE_MS = 60_000;
const LATENCY_GOAL = 1.5;
const SAMPLE_MS = 200;

const { values: given } = parseArgs({
  options: {
    json: { type: 'string' },
    events: { type: 'string', default: '10000' },
    rate: { type: 'string', default: '500' },
    'dead-rate': { type: 'string', default: '10' },
    'push-rate': { type: 'string', default: '4' },
  },
});
const print = (text) => process.stdout.write(`${text}\n`);
const progress = (text) => process.stderr.write(`[bench] ${text}\n`);

/** A receiver that answers at once, or never; notes how long after its event each delivery came. */
async function receiver(harness, { answers }) {
  const lags = new Map();
  const server = createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      if (!answers) return;
      const { delivery_id, timestamp } = JSON.parse(Buffer.concat(chunks).toString());
      if (!lags.has(delivery_id)) lags.set(delivery_id, Date.now() - Date.parse(timestamp));
      response.writeHead(204).end();
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  harness.onStop(async () => server.closeAllConnections());
  harness.onStop(async () => server.close());
  return { url: `http://127.0.0.1:${server.address().port}/hook`, lags };
}

/** Makes a tenant. @returns its id, and what posts as it */
async function tenant(platform, name) {
  const { tenant_id, client_id, client_secret } = await createTenant(platform, name);
  const { token } = await platform.post('/auth/get_token', { client_id, client_secret });
  const post = async (path, body) => {
    const response = await fetch(`${platform.dev.base_url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
    return response.json();
  };
  return { tenant_id, post };
}

/** Watches how far the relay is behind, and the memory of the platform, until it is stopped. */
function watch(database, platform) {
  const behind = [];
  const resident = [];
  let running = true;
  const loop = (async () => {
    while (running) {
      const { rows } = await database.query(
        "SELECT (event_head() - min(position)) >> 8 AS behind FROM event_cursors WHERE consumer = 'alerts' OR starts_with(consumer, 'alerts/')",
      );
      behind.push(Number(rows[0].behind));
      if (hasProc) resident.push(residentMiB(platform.pid));
      await delay(SAMPLE_MS);
    }
  })();
  return async () => {
    running = false;
    await loop;
    return { behindMax: Math.max(...behind), residentMiB: hasProc ? Math.max(...resident) : null };
  };
}

/** One measurement: the events, and then the wait until everything is delivered. */
async function measure({ database, watcher, platform, good }, events, perSecond) {
  const before = good.lags.size;
  const stopWatching = watch(watcher, platform);
  const from = performance.now();
  await writeEvents(database, platform.dev.tenant_id, eventTypes(events), perSecond);
  const writtenMs = performance.now() - from;
  const wanted = before + Math.ceil(events / DELIVERED_SHARE);
  const deadline = performance.now() + SETTLE_MS;
  while (good.lags.size < wanted && performance.now() < deadline) await delay(SAMPLE_MS / 10);
  if (good.lags.size < wanted) throw new Error(`only ${good.lags.size - before} of ${wanted - before} deliveries came`);
  const settledMs = performance.now() - from - writtenMs;
  const lags = [...good.lags.values()].slice(before);
  const memory = await stopWatching();
  return {
    eventsPerSecond: (events * 1_000) / writtenMs,
    deliveriesPerSecond: (lags.length * 1_000) / (writtenMs + settledMs),
    p50Ms: quantile(lags, 0.5),
    p95Ms: quantile(lags, 0.95),
    settledMs,
    ...memory,
  };
}

async function connected(harness, platform) {
  const client = await connectDatabase(platform.dev.database_url);
  harness.onStop(() => client.end());
  return client;
}

/** Measures beside a tenant whose webhooks go to a receiver that never answers. */
async function besideWebhooks({ harness, platform, measured, seconds }, dead) {
  const beside = await tenant(platform, 'webhooks');
  const { rule_id } = await beside.post('/policies/new_alert', rule('dead', 'dead', dead.url));
  const writer = await connected(harness, platform);
  const perSecond = Number(given['dead-rate']);
  const types = Array.from({ length: Math.ceil(seconds * perSecond) }, () => 'dead');
  const [found] = await Promise.all([measured(), writeEvents(writer, beside.tenant_id, types, perSecond)]);
  await beside.post('/policies/delete_alert', { rule_id }); // what waits for the receiver is dropped
  return found;
}

/** Measures beside a tenant whose messages have push notifications for a receiver that never answers. */
async function besidePush({ harness, platform, measured, seconds }, dead) {
  const beside = await tenant(platform, 'push');
  const agent = await harness.child('harness/echo-hosted.mjs');
  const registration = { agent_type: 'echo', url: agent.ready.url, max_concurrent_sessions: 0 };
  await beside.post('/agents/register', registration);
  const perSecond = Number(given['push-rate']);
  const sent = { count: Math.ceil(seconds * perSecond), perSecond };
  const [found] = await Promise.all([measured(), sendWithPush(beside.post, 'echo', dead.url, sent)]);
  return found;
}

const ROWS = [
  ['events written, per s', 0, (one) => one.eventsPerSecond],
  ['deliveries, per s', 1, (one) => one.deliveriesPerSecond],
  ['event to receiver, p50 ms', 0, (one) => one.p50Ms],
  ['event to receiver, p95 ms', 0, (one) => one.p95Ms],
  ['relay behind, at most, events', 0, (one) => one.behindMax],
  ['last delivery after last event, ms', 0, (one) => one.settledMs],
  ['resident, at most, MiB', 0, (one) => one.residentMiB],
];

function report(alone, others) {
  const columns = [['alone', alone], ...others];
  const rows = ROWS.map(([name, digits, of]) => [name, ...columns.map(([, one]) => of(one)?.toFixed(digits) ?? '?')]);
  print(`${machineLine()}\n`);
  print(`${markdownTable(['', ...columns.map(([name]) => name)], rows)}\n`);
  for (const [name, one] of others) {
    const ratio = one.p95Ms / alone.p95Ms;
    const verdict = ratio <= LATENCY_GOAL ? 'met' : 'missed';
    print(`p95 ${name}: ${ratio.toFixed(2)} × (goal ≤ ${LATENCY_GOAL}: ${verdict})`);
  }
}

process.exitCode = await Harness.run(async (harness) => {
  const platform = await harness.platform('deliveries', {});
  const good = await receiver(harness, { answers: true });
  const dead = await receiver(harness, { answers: false });
  for (let number = 0; number < RULES; number += 1)
    await platform.post('/policies/new_alert', rule(`rule ${number}`, `rule-${number}`, good.url));
  const [database, watcher] = [await connected(harness, platform), await connected(harness, platform)];
  const [events, rate] = [Number(given.events), Number(given.rate)];
  const measured = (count = events) => measure({ database, watcher, platform, good }, count, rate);
  const context = { harness, platform, measured, seconds: events / rate };
  progress('warming up');
  await measured(WARM_UP_EVENTS);
  progress(`${events} events, alone`);
  const alone = await measured();
  progress(`${events} events, beside webhooks for a receiver that never answers`);
  const withWebhooks = await besideWebhooks(context, dead);
  progress(`${events} events, beside push notifications for a receiver that never answers`);
  const withPush = await besidePush(context, dead);
  report(alone, [
    ['beside dead webhooks', withWebhooks],
    ['beside dead push', withPush],
  ]);
  if (given.json) writeFileSync(given.json, JSON.stringify({ alone, withWebhooks, withPush }));
  return 0;
});
