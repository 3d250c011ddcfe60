/**
 * The cost of the mesh: a frame compared with a bare `ws` echo, an idle agent, chunks to many streams, a node failure (docs/performance.md).
 *
 *     npm run bench:mesh -- [--json FILE] [--agents N] [--rows name,name]
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { migrate } from '../dist/db/migrate.js';
import { CpuMeter } from './harness/cpu.mjs';
import { createDatabase, Harness } from './harness/harness.mjs';
import { quantile } from './harness/measure.mjs';
import { machineLine, markdownTable } from './harness/report.mjs';
import { Streams } from './mesh/streams.mjs';

const TENANT = 'ten_00000000-0000-7000-8000-000000000000';
/** Concurrent dispatches when the cost of a frame is measured. */
const WIDTHS = [1, 64];
const MEASURE_MS = 2_000;
const WARM_UP = { width: 64, rampMs: 0, ms: 1_000 };
/** Code that has not been compiled yet would be measured as slow. */
const WARM_UP_DISPATCHES = 20_000;
const ROUNDS = 5;
const FIRST_CHUNKS = 300;
const STREAMS = 100;
const CHUNKS = 200;
const RECONNECTING = 1_000;
const IDLE_WINDOW_MS = 3_000;
const POLL_MS = 100;

const { values: given } = parseArgs({
  options: { json: { type: 'string' }, rows: { type: 'string' }, agents: { type: 'string', default: '5000' } },
});
const agentCount = Number(given.agents);
const print = (text) => process.stdout.write(`${text}\n`);
const progress = (text) => process.stderr.write(`[bench] ${text}\n`);
const median = (values) => quantile(values, 0.5);
const plain = { authorization: 'Bearer bench', 'x-forwarded-proto': 'https' };

/** Registers connected agents `prefix-0`, … */
async function register(context, prefix, count) {
  await context.database.query(
    `INSERT INTO agents (tenant_id, instance_id, agent_type, deployment_mode, status, max_concurrent_sessions)
     SELECT $1, $2 || '-' || n, 'echo', 'connected', 'offline', 0 FROM generate_series(0, $3 - 1) AS n`,
    [TENANT, prefix, count],
  );
}

/** Starts a mesh node. @returns the child process, and the connection options of its agents */
async function meshNode(context, tls) {
  const node = await context.harness.child('mesh/node.mjs', {
    databaseUrl: context.databaseUrl,
    tenantId: TENANT,
    tls: tls ? context.tls : undefined,
  });
  return { node, target: { url: node.ready.url, headers: plain, ca: tls ? context.ca : undefined } };
}

async function warmUp(child) {
  for (let done = 0; done < WARM_UP_DISPATCHES; ) done += (await child.ask('throughput', WARM_UP)).total;
}

/** CPU microseconds of the serving process for one frame, averaged over both directions. */
async function frameCost(child, width) {
  const meter = new CpuMeter({ child: child.pid });
  const before = meter.read().child;
  const { total } = await child.ask('throughput', { width, rampMs: 0, ms: MEASURE_MS });
  await delay(POLL_MS);
  return ((meter.read().child - before) * 1_000) / (2 * total);
}

/** Dispatch and result through the mesh, compared with the same text through a bare `ws` server in alternating rounds. */
async function frames(context, tls) {
  const name = tls ? 'tls' : 'plain';
  progress(`frames, ${name}`);
  const { node, target } = await meshNode(context, tls);
  const echo = await context.harness.child('mesh/echo.mjs', { tls: tls ? context.tls : undefined });
  const agents = await context.harness.child('mesh/agents.mjs');
  await register(context, name, 1);
  await agents.ask('join', { ...target, prefix: name, count: 1 });
  await agents.ask('answer', { url: echo.ready.url, ca: target.ca });
  await node.ask('target', `${name}-0`);
  for (const child of [node, echo]) await warmUp(child);
  const results = [];
  for (const width of WIDTHS) {
    const { ours, bare } = await alternate(node, echo, width);
    const unit = `× (${ours.toFixed(1)} / ${bare.toFixed(1)} µs), ${width} at a time`;
    results.push({ name: `frame_${name}_${width}`, is: ours / bare, unit, ...(width === 1 && { goal: 2 }) });
  }
  for (const child of [node, echo, agents]) await child.stop();
  return results;
}

/** Medians of both. The rounds alternate so that other load on the machine affects both alike. */
async function alternate(node, echo, width) {
  const [ours, bare] = [[], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    ours.push(await frameCost(node, width));
    bare.push(await frameCost(echo, width));
  }
  return { ours: median(ours), bare: median(bare) };
}

/** Resident memory of connected, idle agents. */
async function idle(context, tls) {
  const name = tls ? 'idle_tls' : 'idle_plain';
  progress(`${agentCount} idle agents, ${tls ? 'tls' : 'plain'}`);
  const { node, target } = await meshNode(context, tls);
  const agents = await context.harness.child('mesh/agents.mjs');
  await register(context, name, agentCount);
  // The first hundred agents warm the node up: compiled code and pools are not a cost of an agent.
  const warm = Math.min(100, agentCount);
  await register(context, `${name}-warm`, warm);
  await agents.ask('join', { ...target, prefix: `${name}-warm`, count: warm });
  const before = await node.ask('memory');
  await agents.ask('join', { ...target, prefix: name, count: agentCount });
  await delay(IDLE_WINDOW_MS);
  const after = await node.ask('memory');
  for (const child of [node, agents]) await child.stop();
  const kB = (field) => ((after[field] - before[field]) * 2 ** 20) / 1_000 / agentCount;
  const unit = `kB an agent, ${kB('heapMiB').toFixed(1)} of it heap`;
  return [{ name, is: kB('residentMiB'), unit, goal: tls ? 45 : 20 }];
}

/** Chunks from one agent to many callers, through a whole platform. */
async function streams(context) {
  progress(`${STREAMS} streams`);
  const agents = await context.harness.child('mesh/agents.mjs');
  const { platform } = context;
  const registered = await platform.post('/agents/register', {
    agent_type: 'streamer',
    instance_id: 'streamer-0',
    max_concurrent_sessions: 0,
  });
  const target = { url: new URL(registered.connect_url).origin, ca: platform.ca };
  const headers = { authorization: `Bearer ${platform.token}` };
  await agents.ask('join', { ...target, headers, prefix: 'streamer', count: 1 });
  const callers = new Streams(platform, 'streamer');
  const times = [];
  for (let call = 0; call < FIRST_CHUNKS + 100; call += 1) times.push(await callers.first());
  const first = times.slice(100);
  await callers.many(STREAMS, CHUNKS);
  const rounds = [];
  for (let round = 0; round < 3; round += 1) rounds.push(await callers.many(STREAMS, CHUNKS));
  await callers.close();
  await agents.stop();
  const lost = rounds.reduce((sum, round) => sum + round.lost, 0);
  const total = rounds.length * STREAMS * CHUNKS;
  return [
    { name: 'first_chunk_p50', is: median(first), unit: `ms (p95 ${quantile(first, 0.95).toFixed(1)})`, goal: 5 },
    { name: 'chunks', is: median(rounds.map(({ perSecond }) => perSecond)), unit: 'a second' },
    { name: 'chunks_lost', is: lost, unit: `of ${total}`, goal: 0 },
  ];
}

/** Kills a node; its agents reconnect to another one. Measures how that node serves an agent that was connected to it before. */
async function nodeFailure(context, backOff) {
  const name = backOff ? 'return' : 'return_at_once';
  progress(`${RECONNECTING} agents reconnect after a node failure${backOff ? '' : ', without delay'}`);
  const [first, second] = [await meshNode(context, true), await meshNode(context, true)];
  const agents = await context.harness.child('mesh/agents.mjs');
  const resident = await context.harness.child('mesh/agents.mjs');
  await register(context, name, RECONNECTING);
  await register(context, `${name}-resident`, 1);
  await resident.ask('join', { ...second.target, prefix: `${name}-resident`, count: 1 });
  await second.node.ask('target', `${name}-resident-0`);
  await agents.ask('join', { ...first.target, prefix: name, count: RECONNECTING, reconnects: true });
  await agents.ask('reconnectTo', { url: second.target.url, backOff });
  await warmUp(second.node);
  await second.node.ask('startProbe');
  const from = performance.timeOrigin + performance.now();
  process.kill(first.node.pid, 'SIGKILL');
  let reconnected = await agents.ask('reconnected');
  while (reconnected.count < RECONNECTING) {
    await delay(POLL_MS);
    reconnected = await agents.ask('reconnected');
  }
  const probe = await second.node.ask('stopProbe');
  const { ready } = await second.node.ask('stats');
  for (const child of [second.node, agents, resident]) await child.stop();
  const probeLine = `dispatches of another agent p50 ${probe.p50Ms.toFixed(1)}, p99 ${probe.p99Ms.toFixed(1)} ms, longest stall ${probe.stallMs.toFixed(0)} ms`;
  return [
    {
      name: `${name}_s`,
      is: (reconnected.last - from) / 1_000,
      unit: `s until the last has reconnected; ${probeLine}`,
    },
    { name: `${name}_refused`, is: reconnected.refused, unit: `of ${reconnected.attempts} attempts` },
    { name: `${name}_missing`, is: RECONNECTING + 1 - ready, unit: `of ${RECONNECTING} agents`, goal: 0 },
  ];
}

const ROWS = {
  frame_plain: (context) => frames(context, false),
  frame_tls: (context) => frames(context, true),
  idle_plain: (context) => idle(context, false),
  idle_tls: (context) => idle(context, true),
  streams,
  return: (context) => nodeFailure(context, true),
  return_at_once: (context) => nodeFailure(context, false),
};

function verdict({ is, goal }) {
  if (goal === undefined) return '';
  return is <= goal ? 'met' : 'missed';
}

function table(results) {
  const lines = results.map((result) => {
    const { name, is, unit, goal } = result;
    const figure = is.toFixed(is < 100 && !Number.isInteger(is) ? 2 : 0);
    return [`\`${name}\``, figure, unit, goal === undefined ? '' : `≤ ${goal}`, verdict(result)];
  });
  return markdownTable(['row', 'is', '', 'goal', ''], lines);
}

async function bench(harness) {
  const machine = machineLine();
  const names = given.rows?.split(',') ?? Object.keys(ROWS);
  const unknown = names.find((name) => !(name in ROWS));
  if (unknown) throw new Error(`--rows: ${unknown} is not one of ${Object.keys(ROWS).join(', ')}`);
  progress('starting the platform');
  const platform = await harness.platform('mesh', {});
  const databaseUrl = await createDatabase(platform.dev.database_url, 'mesh_alone');
  await migrate(databaseUrl, { info: () => undefined, warn: () => undefined });
  const database = new pg.Pool({ connectionString: databaseUrl, max: 1 });
  harness.onStop(() => database.end());
  await database.query("INSERT INTO tenants (tenant_id, name) VALUES ($1, 'bench')", [TENANT]);
  const file = (name) => readFileSync(join(platform.dataDir, 'tls', name), 'utf8');
  const tls = { cert: file('server.pem'), key: file('server-key.pem') };
  const context = { harness, platform, databaseUrl, database, tls, ca: platform.ca };
  const results = [];
  for (const name of names) {
    const rows = await ROWS[name](context);
    for (const row of rows) progress(`${row.name}: ${row.is.toFixed(2)} ${row.unit}`);
    results.push(...rows);
  }
  print(`${machine}\n\n${table(results)}`);
  if (given.json) {
    const figures = results.map((row) => ({ ...row, verdict: verdict(row) }));
    writeFileSync(given.json, `${JSON.stringify({ machine, rows: figures }, null, 2)}\n`);
  }
  return 0;
}

process.exitCode = await Harness.run(bench);
