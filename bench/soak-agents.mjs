/**
 * Hundreds of connected agents on both SDKs on three nodes for a long time, while connections are cut and stalled, and nodes and processes of agents
 * are killed and started again. At the end compares what callers were told with the record, with what agents did, and looks for what has grown
 * (docs/performance.md).
 *
 *     npm run soak:agent -- [--minutes 10] [--agents 200]
 *
 * Exits with 0 only where nothing is violated. Memory and connections are judged in runs of five minutes or more.
 */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Fleet, LEAVING } from './campaign/fleet.mjs';
import { judgeMessages } from './campaign/judge/messages.mjs';
import { SOAK_KINDS } from './campaign/messages.mjs';
import { judgeSamples, sample } from './campaign/samples.mjs';
import { CampaignTenant } from './campaign/tenant.mjs';
import { Cluster } from './harness/cluster/cluster.mjs';
import { Faults, MORTAL } from './harness/cluster/losses.mjs';
import { between, every, randomOf, SteadyRate } from './harness/cluster/pace.mjs';
import { readRecord } from './harness/cluster/record.mjs';
import { Harness } from './harness/harness.mjs';
import { findPython, installPackage } from './harness/python.mjs';
import { countBy, machineLine, print, printVerdict } from './harness/report.mjs';

const NODES = 3;
const RATE = 8;
/** Every fourth agent is in a process that is killed, every fifth has the tool, and half of both are on the Python SDK. */
const MORTAL_EACH = 4;
const TOOLS_EACH = 5;
const CUT_EVERY_MS = 500;
const STALL_EVERY_MS = 3_000;
/** Range of a stall: shorter than an agent may be disconnected. */
const STALL_MS = [1_000, 15_000];
const RESTART_EVERY_MS = 30_000;
const KILL_AGENTS_EVERY_MS = 20_000;
const LEAVE_EVERY_MS = 2_000;

const { values: given } = parseArgs({
  options: { minutes: { type: 'string', default: '10' }, agents: { type: 'string', default: '200' } },
});
const minutes = Number(given.minutes);
const runMs = minutes * 60_000;

function instancesOf({ id: tenant, access }, python) {
  return Array.from({ length: Number(given.agents) }, (_, index) => {
    const type = index % TOOLS_EACH === 0 ? 'tools' : 'worker';
    const instanceId = `${index % MORTAL_EACH === 0 ? MORTAL : LEAVING}${index}`;
    const sdk = python && index % (2 * MORTAL_EACH) < MORTAL_EACH ? 'python' : undefined;
    return { access: access[index % NODES], node: index % NODES, tenant, type, instanceId, sdk };
  });
}

/** Injects faults until the signal aborts. @returns how many nodes were killed and how many stopped */
async function injectFaults(cluster, fleet, signal) {
  const ended = { kill: 0, stop: 0 };
  await Promise.all([
    every(CUT_EVERY_MS, signal, () => randomOf(cluster.proxies).cutOne()),
    every(STALL_EVERY_MS, signal, () => randomOf(cluster.proxies).stallOne(between(STALL_MS))),
    every(Math.min(RESTART_EVERY_MS, runMs / 3), signal, async () => {
      fleet.readJournal();
      const method = await cluster.restartNext();
      if (method) ended[method] += 1;
    }),
    every(Math.min(KILL_AGENTS_EVERY_MS, runMs / 4), signal, () => fleet.killMortals()),
    every(LEAVE_EVERY_MS, signal, () => void fleet.leaveAndReturn()),
  ]);
  return ended;
}

async function run(harness) {
  print(machineLine());
  const program = findPython();
  if (!program) print('no Python 3.11 or newer on the PATH: all agents are on the TypeScript SDK');
  const [cluster, python] = await Promise.all([
    Cluster.start(harness, NODES),
    program && installPackage(program, join(harness.folder, 'python')),
  ]);
  const access = cluster.accessOptions;
  const tenant = new CampaignTenant({ tenant_id: cluster.dev.tenant_id, access, kinds: SOAK_KINDS });
  harness.onStop(() => tenant.close());
  const fleet = await Fleet.start(harness, cluster, instancesOf(tenant, Boolean(python)), python);
  print(`${given.agents} agents are connected, ${python ? 'half' : 'none'} of them on the Python SDK`);
  const running = new AbortController();
  const load = new SteadyRate();
  const samples = sample({ cluster, fleet, load, runMs, signal: running.signal });
  const faults = injectFaults(cluster, fleet, running.signal);
  const messages = load.run(RATE, performance.now() + runMs, (index) => tenant.sendOne(`n${index}`));
  await Promise.race([Promise.all([samples, faults, messages]), delay(runMs)]); // what fails ends the run at once
  running.abort();
  await Promise.all([messages, samples, faults]);
  await fleet.settled();
  return report({ cluster, tenant, fleet, ended: await faults, samples: await samples });
}

async function report({ cluster, tenant, fleet, ended, samples }) {
  const record = await readRecord(cluster.dev.database_url);
  const journal = fleet.readJournal();
  const faults = Object.assign(new Faults(), {
    ...{ nodes: cluster.killed, agents: fleet.kills, leaves: fleet.leaves, isNetworkFaulty: true },
  });
  const flat = judgeSamples(samples, minutes);
  const violations = [
    ...tenant.violations,
    ...judgeMessages(record, [tenant], journal, faults, new Map()),
    ...flat.violations,
  ];
  const faultCount = (kind) => cluster.proxies.reduce((sum, { faults: of }) => sum + of[kind], 0);
  const resumed = journal.connections.filter((each) => each.resumed).length;
  const table = [
    ['messages sent', tenant.sent],
    ...countBy(record.map(({ state, error_code }) => (error_code ? `${state}, ${error_code}` : state))),
    ['connections cut, stalled', `${faultCount('cut')}, ${faultCount('stalled')}`],
    ['nodes killed, stopped', `${ended.kill}, ${ended.stop}`],
    ['processes of agents killed', fleet.kills.length],
    ['agents that left and came back', fleet.leaves.length],
    ['connections resumed, not resumed', `${resumed}, ${journal.connections.length - resumed}`],
    ...flat.rows,
  ];
  return printVerdict(table, violations);
}

process.exitCode = await Harness.run(run);
