/**
 * What the alert relay keeps up with: events at a steady rate against 20 rules, one event in 25 delivered; first alone, then beside another
 * tenant whose receiver never answers (docs/performance.md).
 *
 *     npm run bench:deliveries -- [--json FILE] [--events N] [--rate N] [--dead-rate N]
 */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { hasProc, residentMiB } from './harness/cpu.mjs';
import { connectDatabase } from './harness/database.mjs';
import { Harness } from './harness/harness.mjs';
import { quantile } from './harness/measure.mjs';
import { machineLine, markdownTable } from './harness/report.mjs';
import { createTenant } from './harness/tenants.mjs';

const RULES = 20;
const DELIVERED_SHARE = 25;
const TICK_MS = 50;
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
      const { delivery_id, timestamp } = JSON.parse(Buffer.concat(chunks).toString());
      if (!lags.has(delivery_id)) lags.set(delivery_id, Date.now() - Date.parse(timestamp));
      if (answers) response.writeHead(204).end();
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  harness.onStop(async () => server.closeAllConnections());
  harness.onStop(async () => server.close());
  return { url: `http://127.0.0.1:${server.address().port}/hook`, lags };
}

function rule(name, agentType, url) {
  const condition = { event: 'agent.health_changed', filters: { agent_type: agentType } };
  return { name, condition, notifications: [{ type: 'webhook', config: { url, secret: 'bench' } }] };
}

async function postAs(platform, { client_id, client_secret }, path, body) {
  const { token } = await platform.post('/auth/get_token', { client_id, client_secret });
  const response = await fetch(`${platform.dev.base_url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
}

const INSERT = `
  INSERT INTO event_groups (tenant_id, types, instance_mark, group_id, events)
    SELECT uuid_of($1), event_bit('agent.health_changed'), instance_mark('bench'), (left(uuidv7()::text, 34) || '00')::uuid,
           jsonb_build_array(jsonb_build_object('agent_type', t, 'instance_id', 'bench', 'status', 'offline', 'previous_status', 'available'))
      FROM unnest($2::text[]) AS t`;

/** Writes events of these agent types at a steady rate. @returns when all are written */
async function writeEvents(database, tenantId, agentTypes, perSecond) {
  const from = performance.now();
  for (let written = 0; written < agentTypes.length; ) {
    const due = Math.min(agentTypes.length, Math.ceil(((performance.now() - from) / 1_000) * perSecond));
    if (due > written) await database.query(INSERT, [tenantId, agentTypes.slice(written, due)]);
    written = Math.max(written, due);
    await delay(TICK_MS);
  }
}

/** The types of `count` events, of which one in 25 matches one of the rules. */
function eventTypes(count) {
  return Array.from({ length: count }, (_, index) =>
    index % DELIVERED_SHARE === 0 ? `rule-${(index / DELIVERED_SHARE) % RULES}` : 'no-rule',
  );
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

process.exitCode = await Harness.run(async (harness) => {
  const machine = machineLine();
  const platform = await harness.platform('deliveries', {});
  const good = await receiver(harness, { answers: true });
  const dead = await receiver(harness, { answers: false });
  for (let number = 0; number < RULES; number += 1)
    await platform.post('/policies/new_alert', rule(`rule ${number}`, `rule-${number}`, good.url));
  const beside = await createTenant(platform, 'beside');
  await postAs(platform, beside, '/policies/new_alert', rule('dead', 'dead', dead.url));
  const [database, watcher, deadWriter] = [
    await connected(harness, platform),
    await connected(harness, platform),
    await connected(harness, platform),
  ];
  const context = { database, watcher, platform, good };
  const events = Number(given.events);
  const rate = Number(given.rate);
  progress('warming up');
  await measure(context, WARM_UP_EVENTS, rate);
  progress(`${events} events, alone`);
  const alone = await measure(context, events, rate);
  progress(`${events} events, beside a receiver that never answers`);
  const deadEvents = Math.ceil((events / rate) * Number(given['dead-rate']));
  const deadTypes = Array.from({ length: deadEvents }, () => 'dead');
  const [withDead] = await Promise.all([
    measure(context, events, rate),
    writeEvents(deadWriter, beside.tenant_id, deadTypes, Number(given['dead-rate'])),
  ]);
  const ratio = withDead.p95Ms / alone.p95Ms;
  const row = (name, digits, of) => [name, of(alone)?.toFixed(digits) ?? '?', of(withDead)?.toFixed(digits) ?? '?'];
  print(`${machine}\n`);
  print(
    markdownTable(
      ['', 'alone', 'beside a dead receiver'],
      [
        row('events written, per s', 0, (one) => one.eventsPerSecond),
        row('deliveries, per s', 1, (one) => one.deliveriesPerSecond),
        row('event to receiver, p50 ms', 0, (one) => one.p50Ms),
        row('event to receiver, p95 ms', 0, (one) => one.p95Ms),
        row('relay behind, at most, events', 0, (one) => one.behindMax),
        row('last delivery after last event, ms', 0, (one) => one.settledMs),
        row('resident, at most, MiB', 0, (one) => one.residentMiB),
      ],
    ),
  );
  print(
    `\np95 beside a dead receiver: ${ratio.toFixed(2)} × (goal ≤ ${LATENCY_GOAL}: ${ratio <= LATENCY_GOAL ? 'met' : 'missed'})`,
  );
  if (given.json) writeFileSync(given.json, JSON.stringify({ alone, withDead, ratio }));
  return 0;
});
