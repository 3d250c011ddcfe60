/**
 * Many connected agents through cut sockets, stalled and slow networks and nodes that die: does every accepted message end once, is nothing
 * lost but what docs/durability.md says, does memory stay flat?
 *
 *     npm run soak:agent -- [--minutes 10] [--agents 200] [--nodes 3] [--rate 8]
 *
 * Exit code 1 on a violation. Memory counts from a fifth of the way on, and is judged in runs of five minutes or more.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { hasProc, residentMiB } from './cpu.mjs';
import { Harness } from './harness.mjs';
import { machineLine, markdownTable } from './report.mjs';
import { Cluster } from './soak-cluster.mjs';
import { Load } from './soak-load.mjs';
import { judgeRecord, readRecord } from './soak-record.mjs';

const TYPES = 10;
const CUT_EVERY_MS = 500;
const STALL_EVERY_MS = 3_000;
/** Shorter than an agent may be away. */
const STALL_MS = [1_000, 15_000];
const NODE_EVERY_MS = 30_000;
const SAMPLES = 40;
/** Where memory is compared from: by then every cache and pool has its size. */
const STEADY_SHARE = 0.2;
/** Of the last quarter's mean to the first's. */
const GROWTH_MAX = 1.25;
const JUDGED_FROM_MINUTES = 5;
const SHOWN_MAX = 20;

const text = { type: 'string' };
const { values: given } = parseArgs({ options: { minutes: text, agents: text, nodes: text, rate: text } });
const settings = {
  minutes: Number(given.minutes ?? 10),
  agents: Number(given.agents ?? 200),
  nodes: Number(given.nodes ?? 3),
  rate: Number(given.rate ?? 8),
};
const say = (line) => process.stdout.write(`${line}\n`);
const any = (list) => list[Math.floor(Math.random() * list.length)];

/** Does `work` every so often until the signal. */
async function every(ms, signal, work) {
  while (!signal.aborted) {
    await delay(ms, undefined, { signal }).catch(() => undefined);
    if (!signal.aborted) await work();
  }
}

/** Everything that goes wrong until the signal. @returns how often nodes were ended, by how */
async function faults(cluster, signal) {
  const ended = { kill: 0, stop: 0 };
  const [from, to] = STALL_MS;
  await Promise.all([
    every(CUT_EVERY_MS, signal, () => any(cluster.proxies).cutOne()),
    every(STALL_EVERY_MS, signal, () => any(cluster.proxies).stallOne(from + Math.random() * (to - from))),
    every(Math.min(NODE_EVERY_MS, settings.minutes * 20_000), signal, async () => {
      const how = await cluster.restartNext();
      if (how) ended[how] += 1;
    }),
  ]);
  return ended;
}

/** Reads what the agents say of themselves, until the signal. */
async function listen(agents, cluster, seen, signal) {
  const read = async () => {
    const { begun, connected } = await agents.ask('journal');
    for (const id of begun) seen.begun.set(id, (seen.begun.get(id) ?? 0) + 1);
    for (const { node, meshId, resumed } of connected) {
      cluster.nodes[node].connected(meshId);
      seen.connections[resumed ? 'resumed' : 'anew'] += 1;
    }
  };
  await every(500, signal, read);
  await read();
}

/** Memory of those processes that live through the whole run. */
async function sample(pids, signal, load) {
  const samples = [];
  let count = 0;
  await every((settings.minutes * 60_000) / SAMPLES, signal, () => {
    if (hasProc) samples.push(Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, residentMiB(pid)])));
    count += 1;
    if (count % 4 === 0)
      say(
        `${(count * 100) / SAMPLES} %: ${load.sent} sent, ${load.inFlight} in flight, ${JSON.stringify(samples.at(-1))}`,
      );
  });
  return samples;
}

function growth(all, name) {
  const samples = all.slice(Math.floor(all.length * STEADY_SHARE));
  const quarter = Math.floor(samples.length / 4);
  const mean = (list) => list.reduce((sum, each) => sum + each[name], 0) / list.length;
  return quarter === 0 ? 1 : mean(samples.slice(-quarter)) / mean(samples.slice(0, quarter));
}

function judgeMemory(samples) {
  const names = Object.keys(samples[0] ?? {});
  const rows = names.map((name) => [`memory of ${name}, last quarter / first`, growth(samples, name).toFixed(2)]);
  const grown = names.filter((name) => growth(samples, name) > GROWTH_MAX);
  const violations = settings.minutes < JUDGED_FROM_MINUTES ? [] : grown.map((name) => `memory of ${name} grows`);
  return { rows, violations };
}

function countBy(rows) {
  const counts = new Map();
  for (const { state, error_code } of rows) {
    const name = error_code ? `${state}, ${error_code}` : state;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts];
}

async function run(harness) {
  say(machineLine());
  const cluster = await Cluster.start(harness, settings.nodes);
  const agents = await harness.child('agent-many.mjs');
  say(
    `${await agents.ask('join', { places: cluster.places, count: settings.agents, types: TYPES })} agents are connected`,
  );
  const load = new Load(cluster.places, TYPES);
  harness.onStop(async () => load.close());
  const seen = { begun: new Map(), connections: { resumed: 0, anew: 0 } };
  const [during, listening] = [new AbortController(), new AbortController()];
  const heard = listen(agents, cluster, seen, listening.signal);
  const first = cluster.nodes[0].platform.pid;
  const samples = sample({ 'the agents': agents.pid, 'the first node': first }, during.signal, load);
  const ended = faults(cluster, during.signal);
  const endsAtMs = performance.now() + settings.minutes * 60_000;
  const all = load.run(settings.rate, endsAtMs);
  await delay(endsAtMs - performance.now());
  during.abort();
  await Promise.all([all, samples, ended]);
  listening.abort();
  await heard;
  return report(cluster, load, seen, await ended, await samples);
}

async function report(cluster, load, seen, ended, samples) {
  const record = await readRecord(cluster.dev.database_url);
  const memory = judgeMemory(samples);
  const { accepted } = load;
  const killed = cluster.killedMeshIds;
  const violations = [
    ...load.violations,
    ...judgeRecord(record, { accepted, begun: seen.begun, killed }),
    ...memory.violations,
  ];
  const faultsOf = (kind) => cluster.proxies.reduce((sum, { faults }) => sum + faults[kind], 0);
  say(
    `\n${markdownTable(
      ['', ''],
      [
        ['messages sent', load.sent],
        ...countBy(record),
        ['connections cut', faultsOf('cut')],
        ['connections stalled', faultsOf('stalled')],
        ['nodes killed, stopped', `${ended.kill}, ${ended.stop}`],
        ['agents that resumed, came anew', `${seen.connections.resumed}, ${seen.connections.anew}`],
        ...memory.rows,
        ['violations', violations.length],
      ],
    )}\n`,
  );
  for (const violation of violations.slice(0, SHOWN_MAX)) say(violation);
  return violations.length === 0 ? 0 : 1;
}

process.exitCode = await Harness.run(run);
