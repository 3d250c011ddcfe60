/**
 * Runs many connected agents on both SDKs while sockets are cut, networks stall, agents leave, and nodes and agents are killed. Checks that every accepted message ends exactly once,
 * that only the losses of docs/durability.md occur, and that memory stays flat.
 *
 *     npm run soak:agent -- [--minutes 10] [--agents 200] [--nodes 3] [--rate 8] [--python 100]
 *
 * `--python`: how many of the agents are on the Python SDK; half of them by default, none where there is no Python.
 *
 * Exits with 1 on a violation. Memory is compared after the first fifth of the run, and only in runs of five minutes or more.
 */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Cluster } from './harness/cluster/cluster.mjs';
import { judgeFlatness } from './harness/cluster/flatness.mjs';
import { Faults } from './harness/cluster/losses.mjs';
import { between, every, randomOf } from './harness/cluster/pace.mjs';
import { readRecord } from './harness/cluster/record.mjs';
import { hasProc, residentMiB } from './harness/cpu.mjs';
import { Harness } from './harness/harness.mjs';
import { findPython, installPackage } from './harness/python.mjs';
import { machineLine, markdownTable } from './harness/report.mjs';
import { SoakFleet, sdkOf } from './soak/fleet.mjs';
import { Load } from './soak/load.mjs';
import { judgeRecord } from './soak/record.mjs';

const TYPES = 10;
const CUT_EVERY_MS = 500;
const STALL_EVERY_MS = 3_000;
/** Range of a stall: shorter than an agent may be disconnected. */
const STALL_MS = [1_000, 15_000];
const RESTART_EVERY_MS = 30_000;
const KILL_AGENTS_EVERY_MS = 20_000;
const LEAVE_EVERY_MS = 2_000;
const JOURNAL_EVERY_MS = 500;
const SAMPLES = 40;
const SHOWN_MAX = 20;

const text = { type: 'string' };
const { values: given } = parseArgs({
  options: { minutes: text, agents: text, nodes: text, rate: text, python: text },
});
const settings = {
  minutes: Number(given.minutes ?? 10),
  agents: Number(given.agents ?? 200),
  nodes: Number(given.nodes ?? 3),
  rate: Number(given.rate ?? 8),
};
const print = (line) => process.stdout.write(`${line}\n`);

/** How many agents are on the Python SDK, and the program that runs them. */
function choosePython() {
  const program = findPython();
  const count = Number(given.python ?? (program ? Math.floor(settings.agents / 2) : 0));
  if (!program && count > 0) throw new Error('--python needs Python 3.11 or newer on the PATH');
  if (!program) print('no Python 3.11 or newer on the PATH: all agents are on the TypeScript SDK');
  return { count: Math.min(count, settings.agents), program };
}

/** Injects faults until the signal aborts. @returns how many nodes were killed and how many stopped */
async function injectFaults(cluster, fleet, signal) {
  const ended = { kill: 0, stop: 0 };
  await Promise.all([
    every(CUT_EVERY_MS, signal, () => randomOf(cluster.proxies).cutOne()),
    every(STALL_EVERY_MS, signal, () => randomOf(cluster.proxies).stallOne(between(STALL_MS))),
    every(Math.min(RESTART_EVERY_MS, settings.minutes * 20_000), signal, async () => {
      const method = await cluster.restartNext();
      if (method) ended[method] += 1;
    }),
    every(Math.min(KILL_AGENTS_EVERY_MS, settings.minutes * 15_000), signal, () => fleet.killOne()),
    every(LEAVE_EVERY_MS, signal, () => fleet.leaveOne()),
  ]);
  return ended;
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

function countBy(rows, nameOf) {
  const counts = new Map();
  for (const row of rows) counts.set(nameOf(row), (counts.get(nameOf(row)) ?? 0) + 1);
  return [...counts];
}

const endOf = ({ state, error_code: code }) => (code ? `${state}, ${code}` : state);
const lastSdkOf = ({ dispatches }) => `ended by ${sdkOf(dispatches.at(-1)?.instance_id) ?? 'no'} agents`;

async function run(harness) {
  print(machineLine());
  const { count, program } = choosePython();
  const [cluster, python] = await Promise.all([
    Cluster.start(harness, settings.nodes),
    count > 0 ? installPackage(program, join(harness.folder, 'python'), print) : undefined,
  ]);
  const fleet = await SoakFleet.start(harness, cluster, { ...settings, python: count, types: TYPES }, python);
  print(`${settings.agents} agents are connected, ${count} of them on the Python SDK`);
  const load = new Load(cluster.accessOptions, TYPES);
  harness.onStop(async () => load.close());
  const [running, journaling] = [new AbortController(), new AbortController()];
  const journals = every(JOURNAL_EVERY_MS, journaling.signal, () => fleet.readJournals());
  const pids = { ...fleet.steadyPids, 'the first node': cluster.nodes[0].platform.pid };
  const samples = sampleMemory(pids, running.signal, load);
  const ended = injectFaults(cluster, fleet, running.signal);
  const endsAtMs = performance.now() + settings.minutes * 60_000;
  const messages = load.run(settings.rate, endsAtMs);
  await delay(endsAtMs - performance.now());
  running.abort();
  await Promise.all([messages, samples, ended]);
  await fleet.settled();
  journaling.abort();
  await journals;
  await fleet.readJournals();
  return report(cluster, load, fleet, await ended, await samples);
}

async function report(cluster, load, fleet, ended, samples) {
  const record = await readRecord(cluster.dev.database_url);
  const memory = judgeFlatness(samples, settings);
  const faults = Object.assign(new Faults(), { nodes: cluster.killed, agents: fleet.kills });
  const { accepted } = load;
  const violations = [
    ...load.violations,
    ...judgeRecord(record, { accepted, started: fleet.started, faults, leaves: fleet.leaves }),
    ...memory.violations,
  ];
  const faultCount = (kind) => cluster.proxies.reduce((sum, { faults }) => sum + faults[kind], 0);
  print(
    `\n${markdownTable(
      ['', ''],
      [
        ['messages sent', load.sent],
        ...countBy(record, endOf),
        ...countBy(record, lastSdkOf),
        ['connections cut', faultCount('cut')],
        ['connections stalled', faultCount('stalled')],
        ['nodes killed, stopped', `${ended.kill}, ${ended.stop}`],
        ['processes of agents killed', fleet.kills.length],
        ['agents that left and came back', fleet.leaves.length],
        ['connections resumed, not resumed', `${fleet.connections.resumed}, ${fleet.connections.fresh}`],
        ...memory.rows,
        ['violations', violations.length],
      ],
    )}\n`,
  );
  for (const violation of violations.slice(0, SHOWN_MAX)) print(violation);
  return violations.length === 0 ? 0 : 1;
}

process.exitCode = await Harness.run(run);
