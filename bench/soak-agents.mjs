/**
 * Runs many connected agents while sockets are cut, networks stall and nodes are killed. Checks that every accepted message ends exactly once,
 * that only the losses of docs/durability.md occur, and that memory stays flat.
 *
 *     npm run soak:agent -- [--minutes 10] [--agents 200] [--nodes 3] [--rate 8]
 *
 * Exits with 1 on a violation. Memory is compared after the first fifth of the run, and only in runs of five minutes or more.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Cluster } from './harness/cluster/cluster.mjs';
import { judgeFlatness } from './harness/cluster/flatness.mjs';
import { between, every, randomOf } from './harness/cluster/pace.mjs';
import { readRecord } from './harness/cluster/record.mjs';
import { hasProc, residentMiB } from './harness/cpu.mjs';
import { Harness } from './harness/harness.mjs';
import { machineLine, markdownTable } from './harness/report.mjs';
import { Load } from './soak/load.mjs';
import { judgeRecord } from './soak/record.mjs';

const TYPES = 10;
const CUT_EVERY_MS = 500;
const STALL_EVERY_MS = 3_000;
/** Range of a stall: shorter than an agent may be disconnected. */
const STALL_MS = [1_000, 15_000];
const RESTART_EVERY_MS = 30_000;
const SAMPLES = 40;
const SHOWN_MAX = 20;

const text = { type: 'string' };
const { values: given } = parseArgs({ options: { minutes: text, agents: text, nodes: text, rate: text } });
const settings = {
  minutes: Number(given.minutes ?? 10),
  agents: Number(given.agents ?? 200),
  nodes: Number(given.nodes ?? 3),
  rate: Number(given.rate ?? 8),
};
const print = (line) => process.stdout.write(`${line}\n`);

/** Injects faults until the signal aborts. @returns how many nodes were killed and how many stopped */
async function injectFaults(cluster, signal) {
  const ended = { kill: 0, stop: 0 };
  await Promise.all([
    every(CUT_EVERY_MS, signal, () => randomOf(cluster.proxies).cutOne()),
    every(STALL_EVERY_MS, signal, () => randomOf(cluster.proxies).stallOne(between(STALL_MS))),
    every(Math.min(RESTART_EVERY_MS, settings.minutes * 20_000), signal, async () => {
      const method = await cluster.restartNext();
      if (method) ended[method] += 1;
    }),
  ]);
  return ended;
}

/** Reads the journal of the agents until the signal aborts. */
async function readJournal(agents, cluster, seen, signal) {
  const read = async () => {
    const { started, connected } = await agents.ask('journal');
    for (const id of started) seen.started.set(id, (seen.started.get(id) ?? 0) + 1);
    for (const { node, meshId, resumed } of connected) {
      cluster.nodes[node].connected(meshId);
      seen.connections[resumed ? 'resumed' : 'fresh'] += 1;
    }
  };
  await every(500, signal, read);
  await read();
}

/** Samples the memory of processes that run for the whole soak. */
async function sampleMemory(pids, signal, load) {
  const samples = [];
  let count = 0;
  await every((settings.minutes * 60_000) / SAMPLES, signal, () => {
    if (hasProc)
      samples.push(Object.fromEntries(Object.entries(pids).map(([name, pid]) => [`MiB of ${name}`, residentMiB(pid)])));
    count += 1;
    if (count % 4 === 0)
      print(
        `${(count * 100) / SAMPLES} %: ${load.sent} sent, ${load.inFlight} in flight, ${JSON.stringify(samples.at(-1))}`,
      );
  });
  return samples;
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
  print(machineLine());
  const cluster = await Cluster.start(harness, settings.nodes);
  const agents = await harness.child('soak/agents.mjs');
  print(
    `${await agents.ask('join', { nodes: cluster.accessOptions, count: settings.agents, types: TYPES })} agents are connected`,
  );
  const load = new Load(cluster.accessOptions, TYPES);
  harness.onStop(async () => load.close());
  const seen = { started: new Map(), connections: { resumed: 0, fresh: 0 } };
  const [running, journaling] = [new AbortController(), new AbortController()];
  const journal = readJournal(agents, cluster, seen, journaling.signal);
  const first = cluster.nodes[0].platform.pid;
  const samples = sampleMemory({ 'the agents': agents.pid, 'the first node': first }, running.signal, load);
  const ended = injectFaults(cluster, running.signal);
  const endsAtMs = performance.now() + settings.minutes * 60_000;
  const messages = load.run(settings.rate, endsAtMs);
  await delay(endsAtMs - performance.now());
  running.abort();
  await Promise.all([messages, samples, ended]);
  journaling.abort();
  await journal;
  return report(cluster, load, seen, await ended, await samples);
}

async function report(cluster, load, seen, ended, samples) {
  const record = await readRecord(cluster.dev.database_url);
  const memory = judgeFlatness(samples, settings);
  const { accepted } = load;
  const killed = [...cluster.killed.keys()];
  const violations = [
    ...load.violations,
    ...judgeRecord(record, { accepted, started: seen.started, killed }),
    ...memory.violations,
  ];
  const faultCount = (kind) => cluster.proxies.reduce((sum, { faults }) => sum + faults[kind], 0);
  print(
    `\n${markdownTable(
      ['', ''],
      [
        ['messages sent', load.sent],
        ...countBy(record),
        ['connections cut', faultCount('cut')],
        ['connections stalled', faultCount('stalled')],
        ['nodes killed, stopped', `${ended.kill}, ${ended.stop}`],
        ['connections resumed, not resumed', `${seen.connections.resumed}, ${seen.connections.fresh}`],
        ...memory.rows,
        ['violations', violations.length],
      ],
    )}\n`,
  );
  for (const violation of violations.slice(0, SHOWN_MAX)) print(violation);
  return violations.length === 0 ? 0 : 1;
}

process.exitCode = await Harness.run(run);
